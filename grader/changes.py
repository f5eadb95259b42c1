"""Two reports of one student's work on a unit arrive, as their reader may see them; what changed from the first to the
second leaves. Pure.

Only what both tell is compared: a test or a mutant that one of them does not name has not changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from grader.mutation import CAUGHT
from grader.report import MutantStatus, Outcome, Report

_COUNTED = (*CAUGHT, MutantStatus.SURVIVED, MutantStatus.VOID)


@dataclass(frozen=True)
class Changes:
    """Ids, in the order of the second report. `passing` and `failing` are course tests, the others mutants."""

    passing: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    caught: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any((self.passing, self.failing, self.caught, self.missed))


def between(before: Report, after: Report) -> Changes:
    """What is newly so in `after`."""
    passing, failing = _moved(_tests(before), _tests(after))
    caught, missed = _moved(_mutants(before), _mutants(after))
    return Changes(passing, failing, caught, missed)


def _moved(before: Mapping[str, bool], after: Mapping[str, bool]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What became right, and what was right and is not any more."""
    moved = [name for name, right in after.items() if name in before and before[name] is not right]
    return tuple(name for name in moved if after[name]), tuple(name for name in moved if not after[name])


def _tests(report: Report) -> Mapping[str, bool]:
    part = report.course_tests
    return {test.id: test.outcome is Outcome.PASSED for test in part.tests} if part is not None else {}


def _mutants(report: Report) -> Mapping[str, bool]:
    part = report.mutation
    return {each.id: each.status in CAUGHT for each in part.mutants if each.status in _COUNTED} if part else {}
