"""The parts of a report arrive; what keeps the submission from passing leaves. Pure."""

from collections.abc import Sequence

from grader import mutation, wording
from grader.mutation import CAUGHT
from grader.report import (
    ContractPart,
    CourseTestsPart,
    MutantStatus,
    MutationPart,
    OraclePart,
    Outcome,
    Reason,
    StudentTestPart,
    StudentTestsPart,
)
from grader.seen import MutationSeen, Seen, Stopped
from grader.wording import INVALID_NAMED
from sandbox.records import EndingKind


def reasons(
    contract_part: ContractPart,
    course: CourseTestsPart,
    oracle: OraclePart,
    tests: StudentTestsPart,
    mutants: MutationPart,
    seen: Seen,
) -> tuple[Reason, ...]:
    """Everything that keeps the submission from passing, the first to mend first; empty if it passes."""
    found: list[tuple[str, str]] = []
    if not contract_part.ok:
        first = contract_part.problems[0]
        count = len(contract_part.problems)
        found.append(("contract", wording.contract_broken(count, first.file, first.line, first.message)))
    if course.passed < course.total:
        names = [test.id for test in course.tests if test.outcome is not Outcome.PASSED]
        found.append(("course_tests", wording.course_tests_failed(course.passed, course.total, names)))
    if contradicted(course, oracle):
        message = wording.oracle_disagrees(oracle.cases - oracle.agreed, oracle.cases, oracle.disagreements[0].message)
        found.append(("oracle_disagrees", message))
    stopped = seen.mutation.stopped
    if stopped is not None:
        found.append((stopped.code, stopped.message))
    found += _invalid_reasons(tests, seen.mutation)
    if not tests.own_code_ok and _own_says_more(stopped):
        found += _own_reasons(tests)
    if stopped is None:
        found += _mutation_reasons(mutants, seen.mutation)
    return tuple(Reason(code=code, message=message) for code, message in found)


def contradicted(course: CourseTestsPart, oracle: OraclePart) -> bool:
    """Whether course tests all passed on code that the oracle finds wrong."""
    return oracle.status == "disagree" and course.passed == course.total


def believed(course: CourseTestsPart, oracle: OraclePart) -> float:
    """The share of course tests passed, as far as it counts: tests that all pass on code that the oracle finds wrong
    have shown nothing (docs/decisions/0087)."""
    if not course.total or contradicted(course, oracle):
        return 0.0
    return course.passed / course.total


def _invalid_reasons(tests: StudentTestsPart, seen: MutationSeen) -> list[tuple[str, str]]:
    """Tests that reject correct code, by kind. Only the first few are named, and only by names that stand in the
    uploaded files: any choice among names could carry something of the reference, and so could a number of tests."""
    found: list[tuple[str, str]] = []
    broken_files = set(mutation.known_errors(seen.calibration, seen.correct))
    invalid = [test for test in tests.tests if test.valid is False]
    named = [test for test in invalid if test.line][:INVALID_NAMED]
    files = [test for test in invalid if test.id in broken_files]
    strict = [test for test in invalid if test not in files and not test.flaky]
    flaky = [test for test in invalid if test not in files and test.flaky]

    def names(kind: Sequence[StudentTestPart]) -> list[str]:
        return [test.id for test in named if test in kind]

    def more(kind: Sequence[StudentTestPart]) -> bool:
        return len(kind) > len(names(kind))

    if files and (seen.stopped is None or seen.stopped.code != "suite_not_loaded"):
        found.append(("suite_not_loaded", wording.files_not_loaded(names(files), more=more(files))))
    if strict:
        found.append(("rejects_correct_code", wording.rejects_correct_code(names(strict), more=more(strict))))
    if flaky:
        found.append(("flaky_tests", wording.flaky_tests(names(flaky), more=more(flaky))))
    return found


def _own_reasons(tests: StudentTestsPart) -> list[tuple[str, str]]:
    """What the tests found in the student's own unit. A test that rejects correct code has found nothing there; which
    others do not reject it is not said."""
    failing = [test for test in tests.tests if test.own_code.failing]
    believed = [test.id for test in failing if test.valid is not False]
    if believed and sum(test.valid is False for test in tests.tests) > INVALID_NAMED:
        return [("own_tests", wording.OWN_TESTS_FAIL_TOO)]
    if believed:
        return [("own_tests", wording.own_tests_fail(believed))]
    return [] if failing else [("own_tests", wording.OWN_TESTS_NOT_RUN)]


def _own_says_more(stopped: Stopped | None) -> bool:
    """Whether what the tests did on the student's own unit says more than the reason for stopping does."""
    return stopped is None or stopped.code not in ("no_tests", "all_skipped", "too_many_tests")


def _mutation_reasons(mutants: MutationPart, seen: MutationSeen) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    causes = [mutant.cause for mutant in mutants.mutants] + [seen.ended, seen.broken.cause]
    if any(cause is not None and cause.code == EndingKind.DEADLINE for cause in causes):
        found.append(("out_of_time", wording.OUT_OF_TIME))
    elif seen.ended is not None:
        found.append(("suite_ended", wording.suite_ended(wording.without_seen(seen.ended).message)))
    elif not seen.failures_seen:
        found.append(("no_failure_seen", wording.NO_FAILURE_SEEN))
    if mutants.score_if_valid < mutants.threshold:
        found.append(("below_threshold", wording.below_threshold(mutants.killed, mutants.total, mutants.threshold)))
    if not mutants.required_ok:
        missed = [m.id for m in mutants.mutants if m.required and m.status not in (*CAUGHT, MutantStatus.INVALID)]
        found.append(("required_survived", wording.required_survived(missed)))
    return found
