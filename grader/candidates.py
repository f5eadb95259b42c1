"""A unit arrives; the faults that could be planted in its reference leave as candidates, without running anything.

Of candidates with equal bytecode, names of local variables apart, only the first remains; the others are told apart
from it by no test at all.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CodeType

from grader.operators import mutations
from grader.operators.operator import Operator
from grader.unit import Unit

SHOWN_CHARACTERS = 160
BUILD_ERRORS = (SyntaxError, ValueError, RecursionError)


@dataclass(frozen=True)
class Candidate:
    """A fault in the file `path` of a unit; `text` is the whole file with it. `id` says where it comes from."""

    id: str  # "swap_axes:54:2", the operator, the line and a number
    operator: Operator
    path: str
    function: str
    line: int
    text: str
    change: str  # what stands there now, and what stood there: "old => new"


@dataclass(frozen=True)
class Rejected:
    """A candidate that is no mutant, and why."""

    candidate: Candidate
    reason: str


def propose(unit: Unit) -> tuple[Candidate, ...]:
    """Every fault of every operator in every file of the unit, in an order that depends on nothing else."""
    found: list[Candidate] = []
    for file in unit.files:
        text = file.reference.decode()
        for mutation in mutations(text):
            name = f"{mutation.operator.name}:{mutation.line}:{len(found)}"
            change = changed(text, mutation.text)
            found.append(
                Candidate(name, mutation.operator, file.path, mutation.function, mutation.line, mutation.text, change)
            )
    return tuple(found)


def screened(unit: Unit, candidates: Sequence[Candidate]) -> tuple[tuple[Candidate, ...], tuple[Rejected, ...]]:
    """Candidates that build and whose bytecode nothing else has, and the others; mutants of the unit are neither."""
    known = {code_of({file.path: file.reference for file in unit.files}): "the reference"}
    known |= {code_of(wheat.files): wheat.id for wheat in unit.wheats}
    known |= {code_of(mutant.files): mutant.id for mutant in unit.mutants}
    kept: list[Candidate] = []
    out: list[Rejected] = []
    counted = [mutant.files for mutant in unit.mutants]
    for candidate in candidates:
        if files_with(unit, candidate) in counted:
            continue
        try:
            code = code_of(files_with(unit, candidate))
        except BUILD_ERRORS as error:
            out.append(Rejected(candidate, f"does not build: {error}"))
            continue
        if code in known:
            out.append(Rejected(candidate, f"equal bytecode: {known[code]}"))
        else:
            known[code] = candidate.id
            kept.append(candidate)
    return tuple(kept), tuple(out)


def files_with(unit: Unit, candidate: Candidate) -> dict[str, bytes]:
    """The unit's files with the candidate's fault in one of them."""
    return {file.path: file.reference for file in unit.files} | {candidate.path: candidate.text.encode()}


def code_of(files: Mapping[str, bytes]) -> tuple[object, ...]:
    """The files' bytecode without line numbers and the names of local variables."""
    return tuple(_shape(compile(source, "unit.py", "exec", dont_inherit=True)) for _, source in sorted(files.items()))


def _shape(code: CodeType) -> tuple[object, ...]:
    """What a code object does: True is not 1 here, and 0.0 is not -0.0."""
    constants = tuple(_shape(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts)
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return (code.co_code, constants, code.co_names, arguments, code.co_exceptiontable)


def changed(before: str, after: str) -> str:
    """The lines that differ, "old => new" on one line."""
    marks: dict[str, list[str]] = {"-": [], "+": []}
    for line in difflib.ndiff(before.splitlines(), after.splitlines()):
        if line[:2] in ("- ", "+ "):
            marks[line[0]].append(line[2:].strip())
    old, new = (" | ".join(lines)[:SHOWN_CHARACTERS] for lines in marks.values())
    return f"{old or 'nothing'} => {new or 'nothing'}"


def patch_of(unit: Unit, candidate: Candidate) -> str:
    """The unified diff that plants the fault."""
    before = next(file.reference for file in unit.files if file.path == candidate.path).decode()
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        candidate.text.splitlines(keepends=True),
        f"a/{candidate.path}",
        f"b/{candidate.path}",
    )
    return "".join(lines)
