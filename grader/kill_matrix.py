"""What each test did on each version of the unit arrives; the kill matrix leaves, whole or as a student may see it.

Pure.
"""

from collections.abc import Iterable, Mapping, Sequence

from grader import mutation
from grader.report import (
    Cell,
    KillMatrixPart,
    KillMatrixRow,
    MutantPart,
    MutantStatus,
    StudentTestPart,
)
from grader.seen import MutationSeen


def kill_matrix(names: Iterable[str], seen: MutationSeen) -> KillMatrixPart | None:
    """Everything, a row for each test named and for each file that a mutant alone keeps from being collected; None
    where the suite was not held against mutants."""
    if seen.stopped is not None:
        return None
    correct = [mutation.cells(suite) for _, suite in seen.correct]
    mutants = [decision.cells for decision in seen.decisions.values()]
    killers = (name for decision in seen.decisions.values() for name in decision.killed_by)
    return KillMatrixPart(
        correct=tuple(variant for variant, _ in seen.correct),
        mutants=tuple(seen.decisions),
        tests=tuple(
            KillMatrixRow(id=name, correct=_row(name, correct), mutants=_row(name, mutants))
            for name in dict.fromkeys((*names, *killers))
        ),
    )


def _row(name: str, versions: Iterable[Mapping[str, Cell]]) -> str:
    return "".join(_cell(name, cells) for cells in versions)


def _cell(name: str, cells: Mapping[str, Cell]) -> Cell:
    """A file passes where something was collected from it."""
    if name in cells:
        return cells[name]
    return Cell.PASS if any(test.startswith(f"{name}::") for test in cells) else Cell.NOT_RUN


def as_caught(tests: Sequence[StudentTestPart], mutants: Sequence[MutantPart]) -> KillMatrixPart:
    """What `kills` and the mutants' statuses say, as a matrix, and nothing else: whether a test that does not catch a
    mutant passes there, is skipped or is absent would be chosen beside other code (docs/decisions/0169)."""
    return KillMatrixPart(
        correct=(),
        mutants=tuple(mutant.id for mutant in mutants),
        tests=tuple(
            KillMatrixRow(id=test.id, correct="", mutants="".join(_caught(test, mutant) for mutant in mutants))
            for test in tests
        ),
    )


def _caught(test: StudentTestPart, mutant: MutantPart) -> Cell:
    if mutant.status is MutantStatus.INVALID:
        return Cell.NOT_RUN
    if mutant.id not in test.kills:
        return Cell.UNTOLD
    return Cell.TIMEOUT if mutant.status is MutantStatus.TIMEOUT else Cell.KILL
