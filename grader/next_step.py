"""The parts of a report and why it does not pass arrive; the one most useful thing to do next leaves, which is the same
wherever the report is read. Pure.

Of course tests that do not pass, the one is named that tells most: the one that shows the likely pitfall best, or else
the one that catches the fewest faults. (docs/decisions/0225)
"""

from collections.abc import Sequence

from grader import wording
from grader.faults import Faults
from grader.report import (
    ContractPart,
    CourseTestPart,
    CourseTestsPart,
    MutantStatus,
    MutationPart,
    Outcome,
    Reason,
    StudentTestsPart,
)
from grader.unit import Unit

SUITE_FIRST = (
    "oracle_disagrees",
    "out_of_time",
    "too_many_tests",
    "over_time_budget",
    "suite_ended",
    "no_tests",
    "all_skipped",
    "no_failure_seen",
)
"""reasons that say themselves what to do, and without which the rest means little"""


def next_step(
    unit: Unit,
    contract_part: ContractPart,
    course: CourseTestsPart,
    tests: StudentTestsPart,
    mutants: MutationPart,
    reasons: Sequence[Reason],
) -> str:
    """What to do first, in one or a few sentences. `course` says which course test is next, if one is."""
    if not reasons:
        return wording.NEXT_PASSED
    if contract_part.problems:
        first = contract_part.problems[0]
        return wording.next_contract(first.file, first.line, first.message)
    if course.next:
        return _course_test(unit, course)
    codes = {reason.code: reason.message for reason in reasons}
    for code in SUITE_FIRST:
        if code in codes:
            return codes[code]
    for test in sorted(tests.tests, key=lambda test: not test.line):  # those that can be named first
        if test.valid is False:
            return wording.next_rejection(test.advice)
    for test in tests.tests:
        if "own_tests" in codes and test.own_code.failing and test.valid is not False:
            return wording.next_own(test.id)
    survivors = [mutant for mutant in mutants.mutants if mutant.status is MutantStatus.SURVIVED]
    for mutant in sorted(survivors, key=lambda mutant: not mutant.required):
        if mutants.matrix != "none":
            # Of one mutant at a time the whole of it, though its first hint may be vague.
            public = next(each.public for each in unit.mutants if each.id == mutant.id)
            return wording.next_mutant(mutant.id, public)
    for mutant in mutants.mutants:
        if mutant.status is MutantStatus.VOID and mutant.cause is not None:
            return wording.next_void(mutant.id, wording.without_seen(mutant.cause).message)
    return reasons[0].message


def next_course_test(unit: Unit, contract_part: ContractPart, course: CourseTestsPart) -> str:
    """The id of the course test to make pass, "" if there is none or another thing comes first."""
    missed = _missed(course)
    if contract_part.problems or not missed:
        return ""
    return _most_telling(unit, missed, _likely(unit, course)).id


def _course_test(unit: Unit, course: CourseTestsPart) -> str:
    first = next(test for test in course.tests if test.id == course.next)
    likely = _likely(unit, course)
    pitfalls = [mutant.public for mutant in unit.mutants if mutant.id in likely]
    return wording.next_course_test(first.id, first.chapter, first.message, pitfalls)


def _missed(course: CourseTestsPart) -> list[CourseTestPart]:
    return [test for test in course.tests if test.outcome is not Outcome.PASSED]


def _likely(unit: Unit, course: CourseTestsPart) -> Sequence[str]:
    """The pitfalls that it may be. Where no test passes, nothing works, which is no fault in particular."""
    return Faults(unit).pitfalls([test.id for test in _missed(course)]) if course.passed else ()


def _most_telling(unit: Unit, missed: Sequence[CourseTestPart], likely: Sequence[str]) -> CourseTestPart:
    described = {test.name: test for test in unit.course_tests}
    pointing = [part for part in missed if set(described[part.id].catches) & set(likely)]

    def rank(part: CourseTestPart) -> tuple[bool, int]:
        test = described[part.id]
        return not set(test.shows) & set(likely), len(test.catches)

    return min(pointing, key=rank, default=missed[0])
