"""A report arrives, for teachers with the unit it is about; a report in Stryker's schema leaves, version "2".

Its viewers count Killed and Timeout over all that is not CompileError, RuntimeError or Ignored. Statuses are chosen so
that this is our score, also where the test grade is void (docs/decisions/0170). Pure.
"""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NotRequired

from typing_extensions import TypedDict  # pydantic, which describes these for OpenAPI, asks for this one

from grader import wording
from grader.report import Cell, MutantPart, MutantStatus, MutationPart, Outcome, Report, StudentTestPart
from grader.unit import Mutant, Unit
from grader.wording import escaped, shown
from sandbox.records import File


class Position(TypedDict):
    """Both counted from 1; columns in UTF-16 code units, as in JavaScript."""

    line: int
    column: int


class Location(TypedDict):
    """`end` is exclusive."""

    start: Position
    end: Position


class OpenLocation(TypedDict):
    start: Position


class MutantResult(TypedDict):
    id: str
    mutatorName: str
    location: Location
    status: str
    description: NotRequired[str]
    statusReason: NotRequired[str]
    replacement: NotRequired[str]
    coveredBy: NotRequired[list[str]]
    killedBy: NotRequired[list[str]]


class FileResult(TypedDict):
    language: str
    source: str
    mutants: list[MutantResult]


class TestDefinition(TypedDict):
    id: str
    name: str
    location: NotRequired[OpenLocation]


class TestFile(TypedDict):
    source: NotRequired[str]
    tests: list[TestDefinition]


class Thresholds(TypedDict):
    high: int
    low: int


class Framework(TypedDict):
    name: str
    version: NotRequired[str]


class MutationTestResult(TypedDict):
    """What the schema calls so."""

    schemaVersion: str
    thresholds: Thresholds
    framework: Framework
    config: dict[str, str | float | None]
    files: dict[str, FileResult]
    testFiles: NotRequired[dict[str, TestFile]]


def render(report: Report, unit: Unit | None = None, tests: Sequence[File] = ()) -> str:
    """The report as JSON that may stand inside an HTML page's script element.

    `report` is as its reader may see it. With `unit` it holds the reference and every mutant's change, so that is given
    for teachers only; if it is not the one graded, nothing of it is shown. `tests` are the files the student sent.
    """
    text = json.dumps(result(report, unit, tests), indent=1, allow_nan=False)
    return text.replace("<", "\\u003c") + "\n"


def result(report: Report, unit: Unit | None = None, tests: Sequence[File] = ()) -> MutationTestResult:
    part = report.mutation
    percent = math.ceil(round(100 * part.threshold, 6)) if part is not None else 100
    framework = Framework(name="tinyllm-autograder")
    if report.environment is not None:
        framework["version"] = report.environment.grader
    made = MutationTestResult(
        schemaVersion="2",
        thresholds={"high": percent, "low": percent},
        framework=framework,
        config={
            "submission": report.submission.id,
            "unit": report.submission.unit,
            "verdict": report.verdict.value,
            "score": report.score,
            "mutationScore": None if part is None else part.score,
            "gradeByHand": None if report.by_hand is None else report.by_hand.score,
        },
        files=_files(report, unit if unit is not None and _is_graded_one(unit, report) else None),
    )
    if report.student_tests is not None:
        listed = [*report.student_tests.tests, *_unlisted(report.student_tests.tests, part)]
        made["testFiles"] = _test_files(listed, {file.path: file.data for file in tests})
    return made


def _is_graded_one(unit: Unit, report: Report) -> bool:
    """Whether the unit is as it was when the report was made."""
    mutants = () if report.mutation is None else report.mutation.mutants
    known = {mutant.id for mutant in mutants} <= {mutant.id for mutant in unit.mutants}
    return known and report.integrity is not None and report.integrity.digests.get("unit", "") == unit.digest


# -- mutants ---------------------------------------------------------------------------------------------------------


def _files(report: Report, unit: Unit | None) -> dict[str, FileResult]:
    part = report.mutation
    if part is None or not part.mutants:  # not graded, or this reader is told no names
        return {report.submission.unit: FileResult(language="plain", source=_why_nothing(report), mutants=[])}
    found = _Found(part)
    if unit is None:
        return {wording.MUTANTS_WITHOUT_SOURCES: _placeholder(part, found)}
    return _sources(part, unit, found)


def _why_nothing(report: Report) -> str:
    lines = [line for reason in report.reasons for line in reason.message.splitlines()]
    return "".join(f"{escaped(line)}\n" for line in lines)


class _Found:
    """What was found of the mutants of one report, in Stryker's words."""

    def __init__(self, part: MutationPart) -> None:
        self._void = part.void
        self._covered: dict[str, list[str]] = {}
        if part.kill_matrix is not None:
            for place, mid in enumerate(part.kill_matrix.mutants):
                rows = part.kill_matrix.tests
                self._covered[mid] = [row.id for row in rows if row.mutants[place] not in (Cell.NOT_RUN, Cell.UNTOLD)]

    def of(self, mutant: MutantPart, location: Location, replacement: str | None = None) -> MutantResult:
        status, reason = self._status(mutant)
        made = MutantResult(id=mutant.id, mutatorName=mutant.category or mutant.tier, location=location, status=status)
        if described := mutant.detail or mutant.hint:
            made["description"] = described
        if reason:
            made["statusReason"] = reason
        if replacement is not None:
            made["replacement"] = replacement
        if mutant.id in self._covered:
            made["coveredBy"] = self._covered[mutant.id]
        if mutant.killed_by:
            made["killedBy"] = list(mutant.killed_by)
        return made

    def _status(self, mutant: MutantPart) -> tuple[str, str]:
        reason = "" if mutant.cause is None else mutant.cause.message
        match mutant.status:
            case MutantStatus.INVALID:
                return "CompileError", reason or wording.MUTANT_INVALID
            case MutantStatus.VOID:
                return "Survived", reason or wording.NOT_GRADED
            case MutantStatus.SURVIVED:
                return "Survived", reason
            case _ if self._void:
                return "Survived", wording.CAUGHT_IN_VAIN
            case MutantStatus.TIMEOUT:
                return "Timeout", reason
            case MutantStatus.KILLED:
                return "Killed", reason


def _placeholder(part: MutationPart, found: _Found) -> FileResult:
    """A line for each mutant in place of the source."""
    lines = [escaped(f"{mutant.id} ({mutant.category or mutant.tier})") for mutant in part.mutants]
    mutants = [
        found.of(mutant, {"start": {"line": at, "column": 1}, "end": {"line": at, "column": _units(line) + 1}})
        for at, (mutant, line) in enumerate(zip(part.mutants, lines, strict=True), 1)
    ]
    return FileResult(language="plain", source="".join(f"{line}\n" for line in lines), mutants=mutants)


def _sources(part: MutationPart, unit: Unit, found: _Found) -> dict[str, FileResult]:
    """The reference's files, each with the mutants that change it; one that changes several stands in the first."""
    references = {file.path: _text(file.reference) for file in unit.files}
    made = {path: FileResult(language="python", source=text, mutants=[]) for path, text in references.items()}
    planted = {mutant.id: mutant for mutant in unit.mutants}
    for mutant in part.mutants:
        path, after = _changed(planted[mutant.id], references)
        change = change_of(references[path], after)
        location = _Lines(references[path]).location(change.start, change.end)
        made[path]["mutants"].append(found.of(mutant, location, change.replacement))
    return made


def _changed(mutant: Mutant, references: Mapping[str, str]) -> tuple[str, str]:
    """The first file that a mutant changes, and what it makes of it."""
    texts = {path: _text(data) for path, data in mutant.files.items() if path in references}
    first = next(iter(references))
    return next(((path, text) for path, text in texts.items() if text != references[path]), (first, references[first]))


def _text(source: bytes) -> str:
    return source.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class Change:
    """`source[start:end]` becomes `replacement`."""

    start: int
    end: int
    replacement: str


def change_of(before: str, after: str) -> Change:
    """The smallest change of whole words that makes one text of the other; it takes at least a character away, so that
    a viewer has something to mark."""
    start = _shared(before, after)
    kept = min(_shared(before[::-1], after[::-1]), min(len(before), len(after)) - start)
    while start and _in_word(before[start - 1]):
        start -= 1
    while kept and _in_word(before[len(before) - kept]):
        kept -= 1
    if start == len(before) - kept:
        if kept and (start == 0 or before[start - 1] == "\n"):
            kept -= 1
        elif start:
            start -= 1
    return Change(start, len(before) - kept, after[start : len(after) - kept])


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _in_word(char: str) -> bool:
    return char == "_" or char.isalnum()


class _Lines:
    """Where the lines of a text begin, by JavaScript's rule, which knows two more line ends than Python's tokenizer."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(found.end() for found in re.finditer(r"\r\n|[\n\r\u2028\u2029]", text))]

    def location(self, start: int, end: int) -> Location:
        return {"start": self.position(start), "end": self.position(end)}

    def position(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset)
        return {"line": line, "column": _units(self._text[self._starts[line - 1] : offset]) + 1}


def _units(text: str) -> int:
    """UTF-16 code units."""
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


# -- tests -----------------------------------------------------------------------------------------------------------


def _unlisted(tests: Sequence[StudentTestPart], part: MutationPart | None) -> Iterator[StudentTestPart]:
    """What caught a mutant and is no test elsewhere: a file that only the mutant keeps from being collected."""
    known = {test.id for test in tests}
    killers = dict.fromkeys(name for mutant in (part.mutants if part else ()) for name in mutant.killed_by)
    for name in killers:
        if name not in known:
            yield StudentTestPart(
                id=name, correct_runs=None, kills=(), flaky=None, own_code=Outcome.NOT_RUN, valid=None
            )


def _test_files(tests: Sequence[StudentTestPart], sources: Mapping[str, bytes]) -> dict[str, TestFile]:
    made: dict[str, TestFile] = {}
    for test in tests:
        path = test.file or wording.TESTS_WITHOUT_FILE
        if path not in made:
            made[path] = TestFile(tests=[])
            if path in sources:
                made[path]["source"] = _text(sources[path])
        made[path]["tests"].append(_test(test, made[path].get("source")))
    return made


def _test(test: StudentTestPart, source: str | None) -> TestDefinition:
    made = TestDefinition(id=test.id, name=shown(test.id.removeprefix(f"{test.file}::")))
    if test.line:
        made["location"] = {"start": _def_position(test.line, source)}
    return made


def _def_position(line: int, source: str | None) -> Position:
    """Where the text of a line begins; `line` is counted as Python does."""
    if source is None:
        return {"line": line, "column": 1}
    lines = list(_python_lines(source))
    if line > len(lines):
        return {"line": line, "column": 1}
    offset, text = lines[line - 1]
    return _Lines(source).position(offset + len(text) - len(text.lstrip(" \t\f")))


def _python_lines(source: str) -> Iterator[tuple[int, str]]:
    start = 0
    for found in re.finditer(r"\r\n|[\n\r]|\Z", source):
        yield start, source[start : found.start()]
        start = found.end()
