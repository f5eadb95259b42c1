"""Every sentence a student or teacher reads from the grader: values go in, text that says what to do next comes out.

Names that came from outside pass through `shown` first, so that no terminal escape, line break or right-to-left mark
of theirs reaches a screen.
"""

from collections.abc import Sequence
from datetime import datetime
from signal import Signals

from grader.comparator import Difference, Kind
from grader.report import Cause
from sandbox.records import Ending, EndingKind, Limits, Resource

NAME_SHOWN_CHARS = 120
PITFALLS_NAMED = 3
SAID_CHARS = 700  # of what a test said, where only the first of it is told
INVALID_NAMED = 3
"""how many tests that reject correct code a student is told at once"""


def shown(name: str) -> str:
    """A name from outside, made safe to print: odd characters are escaped, long names are cut in the middle."""
    safe = escaped(name)
    if len(safe) <= NAME_SHOWN_CHARS:
        return safe
    half = NAME_SHOWN_CHARS // 2 - 1
    return f"{safe[:half]}…{safe[-half:]}"


def escaped(text: str) -> str:
    """One line of text from outside, whole but without control characters."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def listed(names: Sequence[str], most: int = 3) -> str:
    """'a.py, b.py and 5 more'."""
    head = ", ".join(shown(name) for name in names[:most])
    more = len(names) - most
    return head if more <= 0 else f"{head} and {more} more"


def size(count: int) -> str:
    """A number of bytes as people write it: '256 KiB'."""
    for unit, factor in (("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            value = count / factor
            return f"{value:.0f} {unit}" if value == int(value) else f"{value:.1f} {unit}"
    return f"{count} bytes"


# -- intake: refused -------------------------------------------------------------------------------------------------


REF_DEPS_INVALID = "ref_deps is all, none, or the ids of units with commas between them, such as L5.1,L0.4."


def missing_file(stem: str, path: str, wanted: Sequence[str]) -> str:
    fields = " ".join(f"-F {name}=@{name}.py" for name in wanted)
    return (
        f"The file {stem}.py is missing. This unit wants your {path}: send {fields} and your tests with -F tests=@..."
    )


NOT_OFFERED = "This unit is not offered yet: nothing can be handed in for it."


def other_language(language: str, path: str) -> str:
    return f"This unit is written in {language} ({shown(path)}). Only Python is graded here."


def needs_dep(first: str, title: str, stems: Sequence[str], after_it: Sequence[str]) -> str:
    """`stems` name the files of the unit to build first; `after_it` are the other units that are missing."""
    files = " ".join(f"-F {stem}=@{stem}.py" for stem in stems)
    also = f" (and {', '.join(after_it)} after it)" if after_it else ""
    return (
        f"This unit needs {first}{f', {title}' if title else ''}: build and pass it first{also}, "
        f"send yours with {files}, or take the reference with ref_deps=all."
    )


def unknown_file(stem: str, wanted: Sequence[str]) -> str:
    names = ", ".join(wanted)
    return f"There is no file {shown(stem)} in this unit. It takes: {names}, and your tests in the field tests."


NO_TESTS_SENT = (
    "No tests were sent. Send the folder with your tests as -F tests=@tests.zip (or .tar.gz), "
    "or file by file: -F tests=@test_a.py -F tests=@conftest.py"
)


def upload_too_large(limit: int) -> str:
    return (
        f"This upload is larger than {size(limit)}. Send only the folder with your tests, without data sets or a .venv."
    )


def file_too_large(limit: int) -> str:
    return f"This file is larger than {size(limit)}, the most one file may have. Make it smaller or leave it out."


def total_too_large(limit: int) -> str:
    return f"Your test files together are larger than {size(limit)}. Leave out data; make arrays in the tests."


def archive_bomb(limit: int) -> str:
    return f"This archive unpacks to more than {size(limit)}. Pack only the folder with your tests."


def too_many_files(limit: int) -> str:
    return f"There are more than {limit} files. Send only the folder with your tests for this unit."


def too_many_members(limit: int) -> str:
    return (
        f"This archive lists more than {limit} entries. Pack only the folder with your tests, without .venv and .git."
    )


def tree_outside(tops: Sequence[str]) -> str:
    return f"Paths of a course begin with {' or '.join(f'{top}/' for top in tops)}, as in a checkout."


def duplicate_upload() -> str:
    return "Two uploads have this name. Rename one of them, or send the whole folder as one .zip."


def same_name(other: str) -> str:
    return (
        f"This file and {shown(other)} become one name once packing folders are taken off and upper and lower case "
        "and accents are treated alike. Rename one of them."
    )


PATH_TRAVERSAL = "The name climbs out of its folder with '..'. Pack the folder from inside: zip -r tests.zip tests"
ABSOLUTE_NAME = "The name is an absolute path. Pack the folder with relative names: zip -r tests.zip tests"
NAME_CHARACTERS = (
    "The name holds a control, text-direction or other invisible character. Rename the file with plain letters."
)
NAME_ENCODING = "The name is in an encoding that cannot be read. Rename the file with plain letters."
NAME_EMPTY = "This file has no name. Give it one that ends in .py."
LINK = "This is a link, and links are not followed. Put a copy of the file in its place."
SPECIAL_FILE = "This is neither a file nor a folder (a device, a pipe or a sparse file). Leave it out."
TREE_SPECIAL_FILE = "A course tree holds files and folders, no links or devices. Leave it out."
TREE_REPEATED_NAME = "This path was sent twice. Send one of them."
TREE_COLLIDING_NAMES = "Two paths differ in capitals only, or one is a file and the folder of another. Rename one."
TREE_FILE_UNKNOWN = "The course has no such file or folder to be removed."
ENCRYPTED = "The archive is encrypted. Pack it again without a password."
UNSUPPORTED_COMPRESSION = (
    "The archive uses a compression that is not read here. Pack it again as an ordinary .zip or .tar.gz."
)
CORRUPT_ARCHIVE = "The archive is damaged or cut off. Pack it again and send the new file."
NESTED_ARCHIVE = "There is an archive inside. Unpack it and send the files themselves in one .zip or .tar.gz."
NOT_AN_ARCHIVE = "This is neither a .zip, a .tar, a .tar.gz nor a .py file. Send your tests as one of these."
UNREADABLE = "This cannot be read. Check that the path exists and that you may read it."
NUL_BYTE = "The source holds a NUL byte, as files saved as UTF-16 do. Save it as UTF-8."


def name_too_long(limit: int) -> str:
    return f"The name is longer than {limit} bytes. Use a shorter one."


def name_too_deep(limit: int) -> str:
    return f"The file lies more than {limit} folders deep. Send only the folder with your tests."


def not_utf8(line: int, offset: int, byte: int) -> str:
    return (
        f"Line {line} is not UTF-8 (byte 0x{byte:02x} at offset {offset}). "
        "In your editor choose 'Save with encoding: UTF-8' and send it again."
    )


def coding_cookie(line: int, encoding: str) -> str:
    return (
        f"Line {line} declares the encoding {shown(encoding)}. Files must be UTF-8: "
        "save the file as UTF-8 and delete that line."
    )


def shadows(name: str) -> str:
    return (
        f"This file would be imported in place of {shown(name)}. "
        f"Rename it, for example to my_{shown(name)}.py, and its imports with it."
    )


def unit_file_in_tests(stem: str) -> str:
    return (
        f"Your tests hold a file named {stem}.py, which is what they test. "
        f"Send it in the field {stem}; if it is something else, such as an oracle, rename it."
    )


def ambiguous_tests(first: str, second: str) -> str:
    return f"There are two folders with tests for this unit, {shown(first)} and {shown(second)}. Send only one."


# -- intake: done and told -------------------------------------------------------------------------------------------

NOTE_MAC_METADATA = "macOS metadata was left out"
NOTE_BYTECODE = "compiled Python was left out; it is made afresh here"
NOTE_VERSION_CONTROL = "version control data was left out"
NOTE_ENVIRONMENT = "a virtual environment was left out; numpy, pytest and hypothesis are there already"
NOTE_CACHE = "caches of tools were left out"
NOTE_EDITOR = "files of an editor or the desktop were left out"
NOTE_CONFIG = "has no effect here: tests run with fixed settings"
NOTE_STARTUP = "has no effect here: start-up files are not read"
NOTE_TYPE = "is neither Python nor a small data file, and was left out"
NOTE_BOM = "the byte order mark at the start was taken off"
NOTE_LINE_ENDS = "Windows or old Mac line ends became plain ones"
NOTE_SEPARATORS = "backslashes in names became folders"
NOTE_NAME_FORM = "accented names were brought to one form (NFC)"
NOTE_NAME_GUESSED = "names without a stated encoding were read as cp437"


def note_outside(folder: str) -> str:
    return f"only {shown(folder)}/ was taken; the rest was left out"


def note_wrapper(folder: str) -> str:
    return f"the outer folder {shown(folder)}/ was taken off"


def note_many(count: int, message: str, names: Sequence[str]) -> str:
    """One note for several files: '3 files: … (a, b, c)'."""
    return f"{count} files: {message} ({listed(names)})"


# -- contract --------------------------------------------------------------------------------------------------------


def syntax_error(reason: str) -> str:
    return f"Python cannot read this line: {shown(reason)}. Run python -m py_compile on the file and correct it."


TOO_COMPLEX = "The source is nested too deeply or too large to be read. Split long expressions into several lines."


def missing_class(name: str) -> str:
    return f"The class {name} is missing. The contract names it exactly so."


def missing_function(name: str) -> str:
    return f"The function {name} is missing. The contract names it exactly so."


def missing_method(owner: str, name: str, signature: str) -> str:
    return f"{owner} has no method {name}. Add: def {name}({signature})"


def not_a_class(name: str) -> str:
    return f"{name} must be a class; here it is a function."


def parameter_missing(function: str, name: str, position: int) -> str:
    return f"{function} has no parameter {name}. The contract has it as number {position}."


def parameter_renamed(function: str, expected: str, found: str, position: int) -> str:
    return f"Parameter {position} of {function} must be named {expected}; here it is {shown(found)}."


def parameter_order(function: str, expected: str, found: str, position: int) -> str:
    return f"Parameter {position} of {function} must be {expected}; {shown(found)} stands there."


def parameter_keyword_only(function: str, name: str) -> str:
    return f"{function} takes {name} by keyword only; the contract lets callers pass it by position."


def parameter_positional_only(function: str, name: str) -> str:
    return f"{function} takes {name} by position only; the contract lets callers pass it by name."


def parameter_default(function: str, name: str) -> str:
    return f"Parameter {name} of {function} needs a default value: the contract lets callers leave it out."


def parameter_extra(function: str, name: str) -> str:
    return f"{function} has a further parameter {shown(name)} without a default. Give it one: callers do not know it."


def parameter_variable(function: str, name: str) -> str:
    return f"{function} must take {name} as the contract does."


def forbidden_name(name: str) -> str:
    return f"{name} may not be used in this unit: build it from numpy and tinyllm instead."


def blackbox_module(module: str) -> str:
    return f"{shown(module)} has no contract, so tests may not import it: a correct tinyllm need not have it."


def blackbox_name(module: str, name: str) -> str:
    return (
        f"{shown(module)} promises no name {shown(name)}, so tests may not use it: "
        "a correct implementation need not have it. Use only names of the contract."
    )


# -- how runs and tests end ------------------------------------------------------------------------------------------

NOT_RUN = "This test did not run to an outcome."
OWN_UNIT_UNREADABLE = "Your file cannot be read by Python, so nothing could be run on it. See the contract problems."
NOT_GRADED = "It was not run; see the reasons for what to do first."


def cause(ending: Ending, *, tell_limit: bool = True) -> Cause:
    """How a run ended, with its limit and what was seen.

    `tell_limit` is False for time limits that were measured: equal gradings have equal words.
    """
    limit = ending.limit if tell_limit or ending.kind not in (EndingKind.CPU_TIME, EndingKind.NO_PROGRESS) else None
    seen = ending.seen
    match ending.kind:
        case EndingKind.CPU_TIME:
            text = f"It used up {_time(limit)} of CPU time. Look for an endless loop."
        case EndingKind.NO_PROGRESS:
            text = (
                f"It was not done after {_time(limit)} on the clock. "
                "Look for a sleep, a lock or input() that never returns, or for an endless loop."
            )
        case EndingKind.MEMORY:
            text = f"It ran out of memory; the limit is {_bytes(limit)}. Use smaller arrays."
        case EndingKind.PROCESSES:
            text = f"It started more processes than the limit of {_number(limit)}. Do the work in one process."
        case EndingKind.DISK:
            text = f"It filled its disk; the limit is {_bytes(limit)}. Write less, or remove files after use."
        case EndingKind.FILE_SIZE:
            text = f"It wrote a file larger than the limit of {_bytes(limit)}. Write less."
        case EndingKind.OUTPUT:
            text = f"It printed more than the limit of {_bytes(limit)}. Remove prints from loops."
        case EndingKind.RECORD:
            text = (
                f"Its results are larger than the limit of {_bytes(limit)}. Use fewer parameters and shorter messages."
            )
        case EndingKind.SIGNAL:
            text = f"The Python process crashed by signal {_signal(seen)}. Look for deep recursion or misused ctypes."
        case EndingKind.EARLY_EXIT:
            text = (
                "The Python process left before the tests were over. "
                "Remove calls such as os._exit, sys.exit at import and pytest.exit."
            )
        case EndingKind.DEADLINE:
            text = "The submission's time was over. Make the tests faster."
        case EndingKind.PROTOCOL_ERROR:
            text = "What the run sent as its result is not a result. Leave the test process's descriptors alone."
        case EndingKind.COMPLETE:
            text = "It ran to its end."
    told = seen if ending.kind in (EndingKind.SIGNAL, EndingKind.EARLY_EXIT) else None  # others differ from run to run
    return Cause(code=ending.kind.value, message=text, limit=limit, seen=told, unit=_UNITS.get(ending.kind, ""))


_UNITS = {
    EndingKind.CPU_TIME: "seconds",
    EndingKind.NO_PROGRESS: "seconds",
    EndingKind.DEADLINE: "seconds",
    EndingKind.MEMORY: "bytes",
    EndingKind.DISK: "bytes",
    EndingKind.FILE_SIZE: "bytes",
    EndingKind.OUTPUT: "bytes",
    EndingKind.RECORD: "bytes",
    EndingKind.PROCESSES: "processes",
    EndingKind.SIGNAL: "signal number",
    EndingKind.EARLY_EXIT: "exit status",
}


def resource_cause(resource: Resource, limits: Limits) -> Cause:
    """A limit that a test met and reported itself, as an exception."""
    kind = EndingKind[resource.name] if resource is not Resource.OPEN_FILES else None
    limit = {
        Resource.MEMORY: limits.memory_bytes,
        Resource.PROCESSES: limits.processes,
        Resource.DISK: limits.disk_bytes,
        Resource.FILE_SIZE: limits.file_bytes,
        Resource.OPEN_FILES: limits.open_files,
    }[resource]
    if kind is not None:
        return cause(Ending(kind, limit=limit))
    text = f"It opened more files than the limit of {limit}. Close files after use."
    return Cause(code=resource.value, message=text, limit=limit, unit="files")


def without_seen(cause: Cause) -> Cause:
    """A cause without what was measured, which code that ran beside the reference could have chosen."""
    text = "The Python process crashed by a signal. Look for deep recursion or misused ctypes."
    message = text if cause.code == EndingKind.SIGNAL else cause.message
    return cause.model_copy(update={"seen": None, "message": message})


def _time(seconds: float | None) -> str:
    return "many times what your tests need on correct code" if seconds is None else f"the limit of {seconds:.3g} s"


def _number(value: float | None) -> str:
    return "its share" if value is None else f"{value:.3g}"


def _bytes(value: float | None) -> str:
    return "its share" if value is None else size(int(value))


def _signal(number: float | None) -> str:
    try:
        return f"{int(number or 0)} ({Signals(int(number or 0)).name})"
    except ValueError:
        return str(number)


def cannot_import(message: str) -> str:
    return f"The tests could not be loaded on your code: {message}"


def not_deterministic(passed: int, total: int, message: str) -> str:
    return (
        f"It passed {passed} of {total} runs on the very same code. Look for randomness without a seed, values left "
        "over in uninitialised arrays, or something that one call keeps and the next one finds: the tests run "
        f"together in two orders, and alone if they fail there. One failing run said: {message}"
    )


EXPECTED, ACTUAL = "expected", "got"


def compared_place(axes: Sequence[str], shape: Sequence[int], at: Sequence[int]) -> str:
    where = _slice(axes, at)
    return f"They first differ at {list(at)} of the shape {list(shape)}{f' ({where})' if where else ''}:"


def _slice(axes: Sequence[str], at: Sequence[int]) -> str:
    """Of which slice a piece of two arrays is, and what its rows and columns are: 'batch 0, head 1; rows: query,
    columns: key'. Empty where there is nothing to say."""
    names = axes or [f"axis {place}" for place in range(len(at))]
    fixed = ", ".join(f"{name} {index}" for name, index in zip(names[:-2], at, strict=False))
    if len(at) < 2:
        across = f"entries: {names[-1]}" if axes else ""
    else:
        across = f"rows: {names[-2]}, columns: {names[-1]}" if axes else ""
    return "; ".join(filter(None, (fixed, across)))


# -- the oracle ------------------------------------------------------------------------------------------------------

NO_ANSWER = "There is a case without an answer. Run your unit on small random inputs, and see that each call returns."


def case_disagrees(case: str, what: str) -> str:
    """ "With 3 heads, ...: the gradient of k_proj.weight ..." """
    return f"{case[:1].upper()}{case[1:]}: {what}"


def case_failed(error: str) -> str:
    return f"your code ended with {error}"


def differs(what: str, difference: Difference, more: int) -> str:
    """What sets a result apart; `more` is how much else does in the same case."""
    place = f" at {list(difference.index)}" if difference.index else ""
    expected, actual = difference.expected, difference.actual
    match difference.kind:
        case Kind.MISSING:
            text = f"{what} is missing"
        case Kind.UNEXPECTED:
            text = f"there are {actual} results that nobody asked for"
        case Kind.TYPE:
            text = f"{what} is no array"
        case Kind.SHAPE:
            text = f"{what} has the shape {actual}, expected {expected}"
        case Kind.DTYPE:
            text = f"{what} has the dtype {actual}, expected {expected}"
        case _:
            text = f"{what}{place} is {actual}, expected {expected}"
    return text + (f" (and {more} more {'results' if more > 1 else 'result'} of this case)" if more else "")


def oracle_disagrees(wrong: int, cases: int, first: str) -> str:
    return (
        f"Your unit gives another result than independent code in {wrong} of {cases} random cases, although every "
        f"course test passed. Try it on a case like this one. {first}"
    )


# -- the verdict -----------------------------------------------------------------------------------------------------


def contract_broken(count: int, file: str, line: int, message: str) -> str:
    first = f"{shown(file)}{f' line {line}' if line else ''}: {message}"
    return f"{_count(count, 'contract problem')}{', the first in ' if count > 1 else ': '}{first}"


def course_tests_failed(passed: int, total: int, names: Sequence[str]) -> str:
    return f"{passed} of {total} course tests passed. Not passed: {listed(names)}."


UNNAMED_TEST = "a test whose name is made while it runs"


def rejects_correct_code(names: Sequence[str], *, more: bool) -> str:
    return (
        f"{_subject(names, more, 'rejects', 'reject')} correct code, so your tests get no score. "
        "A test must accept every correct implementation."
    )


def _subject(names: Sequence[str], more: bool, one: str, many: str) -> str:
    """'a, b and others reject': the named ones, whether there are more, and the verb. How many is not said: code that
    runs beside the reference could choose the number."""
    if not names:
        return f"Tests of yours whose names are made while they run {many}"
    return f"{_with_others(names, more)} {one if len(names) == 1 and not more else many}"


def _with_others(names: Sequence[str], more: bool) -> str:
    return listed(names, len(names)) + (" and others" if more else "")


def rejection(name: str, passed: int, total: int, flaky: bool, file: str, line: int) -> str:
    """`file` and `line` say where the test stands; `file` is left out if the name begins with it."""
    where = f"line {line}" if name.startswith(f"{file}::") else f"line {line} of {shown(file)}"
    place = f"{shown(name)} ({where})" if line else shown(name)
    if flaky:
        return (
            f"{place} passes and fails on the same correct code. "
            "Give every random draw a fixed seed, and do not let tests depend on time or on each other."
        )
    return f"{place} rejects correct implementations: it passed {passed} of {total} runs on correct code."


def denies(says: str) -> str:
    return f" The contract leaves this open: {says}"


_ASKS_MORE = " It may ask for more than the contract does: "


def may_deny(says: str) -> str:
    return f"{_ASKS_MORE}{says}"


def asks_more(advice: str) -> str:
    """What `may_deny` was told, and whatever follows it; '' of other advice."""
    return advice.partition(_ASKS_MORE)[2]


_HOLDS, _MISPRINT = " It holds the number ", ", a misprint in the chapter; the right value is "


def misprint(printed: str, correct: str, note: str) -> str:
    return f"{_HOLDS}{printed}{_MISPRINT}{correct}. {note}".rstrip()


def misprinted(advice: str) -> str:
    """The number as the chapter prints it, of advice that `misprint` is part of; '' of other advice."""
    before, found, _ = advice.partition(_MISPRINT)
    return before.rpartition(_HOLDS)[2] if found else ""


def said_on_own_code(message: str) -> str:
    return f" On your own code it said: {message}"


def found_there(package: str, libraries: Sequence[str]) -> str:
    """What a test may import."""
    there = ", ".join(("numpy", "pytest", *libraries))
    return (
        f" Where tests are graded there are the files that you sent, {package}, {there} and hypothesis: nothing else."
    )


def lacks_module(message: str) -> bool:
    """Whether what Python said is that it found no module."""
    return "No module named '" in message


KILLS_NOTHING = (
    "It fails on none of the mutants. Check a value, a shape or a gradient that a faulty unit would get wrong, or see "
    "what it tests that no other test does."
)


def did_not_load(path: str) -> str:
    return f"{shown(path)} cannot be loaded by pytest on correct code, so none of its tests ran."


def files_not_loaded(paths: Sequence[str], *, more: bool) -> str:
    what = _with_others(paths, more) if paths else "your tests"
    return (
        f"pytest cannot load {what} on correct code, so your tests get no score. "
        "Run pytest yourself, and correct what it says."
    )


def flaky_tests(names: Sequence[str], *, more: bool) -> str:
    return (
        f"{_subject(names, more, 'passes and fails', 'pass and fail')} on the same correct code, "
        "so your tests get no score. Fix every seed."
    )


def own_tests_fail(names: Sequence[str]) -> str:
    return (
        f"Your tests found this in your own code: {listed(names)} "
        f"{'fails' if len(names) == 1 else 'fail'} on it. Correct the code, or the test."
    )


OWN_TESTS_FAIL_TOO = (
    "Tests of yours fail on your own code too. Correct those that reject correct code first, then look at these."
)
OWN_TESTS_NOT_RUN = "Your tests could not be run to their end on your own code."
NO_TESTS = "There is no test to run. Write functions named test_... in files named test_....py."
ALL_SKIPPED = "Every test was skipped or marked xfail, so nothing was tested. Remove the marks."
NO_FAILURE_SEEN = (
    "No test of yours fails even when every call of the unit fails, so your tests get no score. "
    "Call the unit in your tests and assert on what it returns; a conftest.py must not hide failures."
)


def too_many_tests(most: int) -> str:
    return f"There are more tests than the limit of {most}. Keep those that tell right from wrong code."


def over_time_budget(budget: float) -> str:
    return (
        f"Your tests need more than their budget of {budget:.3g} s of CPU time on correct code. "
        "Use smaller sizes and fewer repetitions."
    )


def suite_ended(text: str) -> str:
    return f"Your tests did not run to their end on correct code. {text}"


OUT_OF_TIME = "The submission's time was over before all mutants were run. Make your tests faster."


def below_threshold(killed: int, total: int, threshold: float) -> str:
    return f"Your tests caught {killed} of {total} mutants; the unit asks for {threshold:.0%}."


def required_survived(ids: Sequence[str]) -> str:
    return f"Your tests miss faults that they must catch: {listed(ids, 10)}."


PASSED = "Everything passed."
GRADER_FAILED = "Grading failed on our side. This costs no attempt; the submission is not at fault."


def repeats(graded_at: datetime) -> str:
    return (
        f"The same files were graded before, at {graded_at:%Y-%m-%d %H:%M:%S} UTC; this is that report. "
        "Grading them again gives the same."
    )


def grader_failed(kind: str) -> str:
    return f"{GRADER_FAILED} ({kind})"


# -- what to do next -------------------------------------------------------------------------------------------------

NEXT_PASSED = "Nothing: this unit is passed."
NEXT_WAIT = "Wait, and submit again later or tell your teacher; the report names the cause."


def next_contract(file: str, line: int, message: str) -> str:
    return f"Correct {shown(file)}{f' line {line}' if line else ''}: {message}"


def next_course_test(name: str, chapter: str, message: str, pitfalls: Sequence[str]) -> str:
    """`pitfalls`: what is told of the pitfalls that it may be."""
    where = f" ({chapter})" if chapter else ""
    said = said_first(message) or "See its line in the list of course tests."
    return f"Make {name} pass{where}: {said}{_may_be(pitfalls)}"


def _may_be(pitfalls: Sequence[str]) -> str:
    if not pitfalls:
        return ""
    first = [public.partition(". ")[0].removesuffix(".") for public in pitfalls[:PITFALLS_NAMED]]
    return f" It may be {'this' if len(first) == 1 else 'one of these'}: {'; or '.join(first)}."


def said_first(message: str) -> str:
    """Of what a test said the first line, without the name of the exception that it said it with."""
    first = message.partition("\n")[0].removeprefix("AssertionError: ")
    return first if len(first) <= SAID_CHARS else f"{first[:SAID_CHARS].rstrip()} …"


def next_rejection(advice: str) -> str:
    return f"Correct your test first. {advice}"


def next_mutant(mutant: str, hint: str) -> str:
    return f"Write a test that catches {mutant}: {hint}"


def hint(text: str, section: str) -> str:
    """A hint with where the chapter speaks of it, if it does."""
    return f"{text} ({section})" if section else text


def distinct_sizes(nothing_changes: Sequence[str], shapes_stay: Sequence[str]) -> str:
    """Which sizes hide a fault, each as "the batch size is 1": altogether, or from whoever looks at no numbers."""
    start = "Use distinct sizes, all larger than 1" if nothing_changes else "Use distinct sizes"
    parts = []
    if nothing_changes:
        parts.append(f"where {' or '.join(nothing_changes)}, this fault changes nothing that a test could see")
    if shapes_stay:
        who = "it" if parts else "this fault"
        parts.append(
            f"where {' or '.join(shapes_stay)}, {who} raises no error and changes no shape; with others it does"
        )
    return f"{start}: {'; '.join(parts)}."


def next_void(mutant: str, message: str) -> str:
    return f"A run of your tests on {mutant} did not end by itself, so it is not caught. {message}"


def next_own(name: str) -> str:
    return f"Run {shown(name)} on your own code and find out which of the two is wrong."


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


# -- where the course tells less -------------------------------------------------------------------------------------

FEEDBACK = {
    "none": "For this submission the course tells verdict and score, and nothing of how they came about.",
    "counts": "For this submission the course tells how many tests passed and how many mutants were caught, not which.",
    "categories": "For this submission the course tells how many tests passed and how many mutants of each category "
    "were caught, not which.",
    "names": "For this submission the course tells which tests passed and which mutants were caught, without hints.",
}

_BARE_REASONS = {
    "contract": "The file does not keep to the contract.",
    "course_tests": "Not every course test passed.",
    "oracle_disagrees": "The unit disagrees with independent code on random cases.",
    "rejects_correct_code": "A test of yours rejects correct code, so your tests get no score.",
    "flaky_tests": "A test of yours passes only sometimes, so your tests get no score.",
    "suite_not_loaded": "A file of your tests could not be loaded.",
    "suite_ended": "Your tests ended the process they ran in.",
    "own_tests": "Your tests do not pass on your own code.",
    "too_many_tests": "There are too many tests.",
    "over_time_budget": "Your tests take longer than the unit allows.",
    "below_threshold": "Your tests catch too few mutants.",
    "required_survived": "Your tests miss faults that they must catch.",
}


def bare_reason(code: str) -> str:
    """Why a submission does not pass, without a name, a number or advice."""
    known = {"no_tests": NO_TESTS, "all_skipped": ALL_SKIPPED, "no_failure_seen": NO_FAILURE_SEEN}
    known |= {"out_of_time": OUT_OF_TIME, "passed": PASSED}
    return _BARE_REASONS.get(code) or known.get(code) or "The submission does not pass."


def set_by_hand(score: float, reason: str) -> str:
    return f"A teacher has set this grade by hand: {score:.2f}. {reason}".rstrip()


def passed_of(passed: int, total: int) -> str:
    return f"{passed} of {total} passed."


def caught_of(caught: int, total: int) -> str:
    return f"{caught} of {total} caught."


CONTRACT_KEPT = "the contract"


def course_tests_passed(passed: int, total: int) -> str:
    return f"{passed} of {total} course tests"


def random_cases_agree(agreed: int, cases: int) -> str:
    return f"{agreed} of {cases} random cases"


def void_grade(score_if_valid: float) -> str:
    return (
        "A test rejects correct code, so nothing that was caught counts. "
        f"Without such tests the score would be {score_if_valid:.2f}."
    )


def mutants_caught(killed: int, total: int) -> str:
    return f"{killed} of {total} mutants caught by your tests"


def read_in_chapter(chapter: str) -> str:
    return f"Read {chapter}."


def hint_on(mutant: str, hint: str) -> str:
    return f"{mutant}: {hint}"


COURSE_TESTS = "Course tests"
MUTANTS = "Mutants"


# -- reports in other forms --------------------------------------------------------------------------------------------

NEXT_MARK = "Next:"
RANDOM_CASES = "Random cases"
MUTANTS_WITHOUT_SOURCES = "mutants"
TESTS_WITHOUT_FILE = "tests made while running"
MUTANT_INVALID = "It could not be built, and is not counted."
NOT_CAUGHT = "No test catches it."
CAUGHT_IN_VAIN = "It was caught, but the grade of the tests is void: mend first the test that the reasons name."
PASSED_IN_VAIN = "It passed, but does not count: the unit disagrees with independent code on random cases."


def cases_agree(agreed: int, cases: int) -> str:
    return f"{agreed} of {cases} random cases agree with independent code."


def mutant_named(mutant: str) -> str:
    return f"Mutant {mutant}"


def wheat_named(wheat: str) -> str:
    return f"Correct code {wheat}"


def caught_by(names: Sequence[str]) -> str:
    return f"Caught by {listed(names)}."


def rejected_by(names: Sequence[str]) -> str:
    return f"Rejected by {listed(names)}."


def for_staff(name: str) -> str:
    return f"For staff: {name}"


# -- the command line ------------------------------------------------------------------------------------------------

NOT_ISOLATED = (
    "Warning: --sandbox process runs the code without isolation, with all your rights. Use it for your own code only."
)
UNIT_MISSING = "Missing argument 'UNIT'."


def no_such_option(name: str) -> str:
    return f"No such option: --{name}"


def option_wants_file(option: str) -> str:
    return f"{option} wants a file."


def unit_unknown(unit: str, known: Sequence[str]) -> str:
    return f"There is no unit {unit}. Units: {', '.join(known) or 'none'}."


def pair_malformed(pair: str) -> str:
    return f"--file wants STEM=FILE, not {pair}"


def file_given_twice(stem: str) -> str:
    return f"The file {stem} is given twice."


def path_missing(path: str) -> str:
    return f"There is no file or folder {path}."


def path_is_folder(path: str) -> str:
    return f"{path} is a folder. Name the file itself."


# -- quiz ------------------------------------------------------------------------------------------------------------

QUIZ_UNANSWERED = "There is no answer yet."
QUIZ_WRONG = "This is not so. Work a small example by hand, and choose again."
QUIZ_KEPT = "Your teacher reads this answer."
QUIZ_CUT = " (cut here: too long)"


def diff_cut(path: str, lines: int) -> str:
    return f"\\ {lines} more lines of your {path} were not compared: it is too long."


def quiz_no_shape(part: str) -> str:
    return f"{part}: this is no shape. Write whole numbers in order, for example (4, 7)."


def quiz_wrong_part(part: str) -> str:
    return f"{part}: this is not the shape. Follow one tensor through the layer and write its shape behind every step."


def quiz_no_choice(ids: Sequence[str]) -> str:
    return f"This is none of the choices: answer with one of {', '.join(ids)}."
