"""A report arrives, as its reader may see it; what it says first, in the order in which it is read, leaves. Pure.

Everywhere it is read, in a terminal and on a page, a report has one order (docs/decisions/0226):

    the verdict, the one thing to do next, and what passed already
    what did not pass, each with what it said and where the chapter treats it
    how the tests were graded, by category, with one hint
    everything else
"""

from collections.abc import Iterator

from grader import wording
from grader.report import CourseTestPart, MutantPart, MutantStatus, Outcome, Report, StudentTestPart


def passed(report: Report) -> tuple[str, ...]:
    """What is right already, a few words each."""
    return tuple(_passed(report))


def _passed(report: Report) -> Iterator[str]:
    if report.contract is not None and report.contract.ok:
        yield wording.CONTRACT_KEPT
    if report.course_tests is not None and report.course_tests.passed:
        yield wording.course_tests_passed(report.course_tests.passed, report.course_tests.total)
    if report.oracle is not None and report.oracle.agreed:
        yield wording.random_cases_agree(report.oracle.agreed, report.oracle.cases)
    if report.mutation is not None and report.mutation.killed and not report.mutation.void:
        yield wording.mutants_caught(report.mutation.killed, report.mutation.total)


def missed_course_tests(report: Report) -> tuple[CourseTestPart, ...]:
    """Those that did not pass; the one to do next first."""
    if (course := report.course_tests) is None:
        return ()
    missed = [test for test in course.tests if test.outcome is not Outcome.PASSED]
    return tuple(sorted(missed, key=lambda test: test.id != course.next))


def tests_to_mend(report: Report) -> tuple[StudentTestPart, ...]:
    """Of the student's tests those that reject correct code, or do not pass on the student's own."""
    if report.student_tests is None:
        return ()
    return tuple(test for test in report.student_tests.tests if test.valid is False or test.own_code.failing)


def hinted(report: Report) -> MutantPart | None:
    """The survivor whose hint is the one to read: one that must be caught, if there is such."""
    if report.mutation is None:
        return None
    survivors = [mutant for mutant in report.mutation.mutants if mutant.status is MutantStatus.SURVIVED and mutant.hint]
    return min(survivors, key=lambda mutant: not mutant.required, default=None)
