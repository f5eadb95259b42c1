"""A whole report and a reader's role arrive; the report as that reader may see it leaves. Pure.

Students' tests run beside the reference, so whatever text they produce there could carry the reference's source out.
A student therefore sees of those runs: names that stand in the uploaded files, outcomes, and our own words. Text from
runs on the student's own code is theirs already. Teachers see everything (docs/decisions/0052-what-students-see.md).
"""

from grader.reasons import INVALID_NAMED
from grader.report import Cause, MutationPart, Report, StudentTestPart, StudentTestsPart
from grader.wording import without_seen

ROLES_THAT_SEE_ALL = ("teacher", "admin")


def for_role(report: Report, role: str) -> Report:
    """The report for "teacher" or "admin"; for everyone else, also an LMS, which passes it on, a student's."""
    if role in ROLES_THAT_SEE_ALL or report.student_tests is None:
        return report
    void = any(test.valid is False for test in report.student_tests.tests)
    own_names = frozenset(test.id for test in report.student_tests.tests if test.line)
    return report.model_copy(
        update={
            "student_tests": _tests(report.student_tests, own_names, void),
            "mutation": None if report.mutation is None else _mutation(report.mutation, own_names, void),
        }
    )


def _tests(part: StudentTestsPart, own_names: frozenset[str], void: bool) -> StudentTestsPart:
    shown = [test for test in part.tests if test.id in own_names]
    invalid = [test.id for test in shown if test.valid is False][:INVALID_NAMED]
    tests = tuple(_test(test, void and test.id not in invalid) for test in shown)
    seconds = round(part.baselines.cpu_seconds, 1)  # measured beside the reference, so only roughly
    baselines = part.baselines.model_copy(update={"correct": (), "broken": None, "cpu_seconds": seconds})
    return part.model_copy(update={"tests": tests, "baselines": baselines})


def _test(test: StudentTestPart, closed: bool) -> StudentTestPart:
    """Without what the test said on correct code; closed, also without how it did there and on mutants."""
    hidden: dict[str, object] = {"rejection": ""}
    if closed:
        hidden |= {"correct_runs": None, "flaky": None, "valid": None, "advice": "", "denies": "", "kills": ()}
    return test.model_copy(update=hidden)


def _mutation(part: MutationPart, own_names: frozenset[str], void: bool) -> MutationPart:
    mutants = tuple(
        mutant.model_copy(
            update={
                "killed_by": () if void else tuple(name for name in mutant.killed_by if name in own_names),
                "detail": "",
                "cause": _plain(mutant.cause),
            }
        )
        for mutant in part.mutants
    )
    return part.model_copy(update={"mutants": mutants, "wheats": ()})


def _plain(cause: Cause | None) -> Cause | None:
    return None if cause is None else without_seen(cause)
