"""A whole report arrives, with a reader's role and how much students are told; the report as that reader may see it
leaves. Pure.

Students' tests run beside the reference, so whatever they can choose there could carry the reference's source out:
texts, but also numbers, seconds and the order of names. A student therefore sees of those runs: names that stand in the
uploaded files, in their order; outcomes; and our own words. What comes from runs on the student's own code is theirs
already. Teachers see everything (docs/decisions/0052-what-students-see.md). How each field is treated is listed, and
held against this module, in tests/grader/test_views.py.
"""

from collections.abc import Sequence

from grader.feedback import at_level
from grader.kill_matrix import as_caught
from grader.report import Cause, Level, MutationPart, Report, StudentTestPart, StudentTestsPart, Timing
from grader.wording import INVALID_NAMED, without_seen

ROLES_THAT_SEE_ALL = ("grader", "teacher", "admin")

OWN_PHASES = ("sandbox", "oracle", "course_tests")
"""phases in which nothing of the student's runs beside code that is not theirs"""


def for_role(report: Report, role: str, level: Level = Level.HINTS) -> Report:
    """The report for a role that sees all; for everyone else, also an LMS, which passes it on, a student's at a level
    of feedback."""
    return report if role in ROLES_THAT_SEE_ALL else at_level(_for_student(report), level)


def _for_student(report: Report) -> Report:
    if report.student_tests is None or report.feedback is not None:  # nothing to hide, or it is a student's already
        return report
    shown = _shown(report.student_tests)
    closed = _is_void(report.student_tests, report.mutation)
    tests = _tests(report.student_tests, shown, closed)
    return report.model_copy(
        update={
            "student_tests": tests,
            "mutation": None if report.mutation is None else _mutation(report.mutation, tests.tests, closed),
            "timing": _timing(report.timing),
        }
    )


def _is_void(tests: StudentTestsPart, mutation: MutationPart | None) -> bool:
    """Whether the suite has no score whatever it caught."""
    invalid = any(test.valid is False for test in tests.tests)
    return invalid or (mutation is not None and mutation.void)


def _shown(part: StudentTestsPart) -> tuple[StudentTestPart, ...]:
    """Tests that stand in the files; files themselves only if they are named as invalid or fail on the own code."""
    written = [test for test in part.tests if test.line]
    named = [test.id for test in written if test.valid is False][:INVALID_NAMED]
    return tuple(test for test in written if test.id != test.file or test.id in named or test.own_code.failing)


def _tests(part: StudentTestsPart, shown: tuple[StudentTestPart, ...], closed: bool) -> StudentTestsPart:
    named = [test.id for test in shown if test.valid is False][:INVALID_NAMED]
    tests = tuple(_test(test, closed and test.id not in named) for test in shown)
    baselines = part.baselines.model_copy(update={"correct": (), "broken": None, "cpu_seconds": None})
    return part.model_copy(update={"total": len(tests), "tests": tests, "baselines": baselines})


def _test(test: StudentTestPart, closed: bool) -> StudentTestPart:
    """Without what the test said on correct code, and how often one passed that says nothing; closed, also without how
    it did there and on mutants."""
    hidden: dict[str, object] = {"rejection": ""}
    if test.valid is None:
        hidden |= {"correct_runs": None}
    if closed:
        hidden |= {"correct_runs": None, "flaky": None, "valid": None, "advice": "", "denies": "", "kills": ()}
    return test.model_copy(update=hidden)


def _mutation(part: MutationPart, tests: Sequence[StudentTestPart], closed: bool) -> MutationPart:
    order = {test.id: place for place, test in enumerate(tests)}
    mutants = tuple(
        mutant.model_copy(
            update={
                "killed_by": ()
                if closed
                else tuple(sorted(order.keys() & set(mutant.killed_by), key=order.__getitem__)),
                "hints": (),
                "detail": "",
                "cause": _plain(mutant.cause),
            }
        )
        for mutant in part.mutants
    )
    matrix = None if closed or part.kill_matrix is None else as_caught(tests, mutants)
    return part.model_copy(update={"mutants": mutants, "wheats": (), "kill_matrix": matrix})


def _plain(cause: Cause | None) -> Cause | None:
    return None if cause is None else without_seen(cause)


def _timing(timing: Timing) -> Timing:
    """To the second, which whoever waits for the report sees anyway."""
    own = {phase: seconds for phase, seconds in timing.phases.items() if phase in OWN_PHASES}
    return timing.model_copy(update={"phases": own, "total": float(round(timing.total))})
