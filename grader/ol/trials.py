"""A student's files go in; what the course's tests, or a whole grading, say of them here comes out.

Everything runs in processes of this machine, within limits and without isolation: it is the student's own code.
"""

import importlib.util
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

from grader import contract, plan, verdicts
from grader.grade import Progress, fresh_seed, grade
from grader.ol.stops import Usage
from grader.report import CourseTestPart, Outcome, Report
from grader.seen import About
from grader.submission import Submission
from grader.unit import CourseTest, Unit
from sandbox.process import ProcessSandbox
from sandbox.records import RunResult
from sandbox.runtimes import LIBRARIES

JOBS = 2
SECONDS = 600.0


def check_libraries(unit: Unit) -> None:
    """Raises Usage if this machine lacks what the unit is written with."""
    lacking = [name for name in LIBRARIES[unit.runtime] if importlib.util.find_spec(name) is None]
    if lacking:
        raise Usage(f"Unit {unit.id} is written with {', '.join(lacking)}: pip install {' '.join(lacking)}")


def drift(unit: Unit, submission: Submission) -> tuple[contract.Problem, ...]:
    """Where the unit's files do not keep to the contract; what is said of tests is left out."""
    return tuple(problem for problem in contract.check(unit, submission) if not problem.file.startswith("tests/"))


def course_tests(
    unit: Unit,
    submission: Submission,
    tests: Sequence[CourseTest],
    on_test: Callable[[CourseTestPart], None],
    *,
    stop_at_first_failure: bool = False,
) -> list[CourseTestPart]:
    """What each course test says, in their order; those behind the first failure are left out if that is wanted."""
    check_libraries(unit)
    hanging = plan.unsettled(unit, submission)
    modules = plan.own_modules(unit, submission)
    ids = plan.RunIds(Random(0))
    found: list[CourseTestPart] = []

    def judge(test: CourseTest, result: RunResult) -> CourseTestPart:
        (part,) = verdicts.course_tests([test], {test.name: [result]}).tests
        found.append(part)
        on_test(part)
        return part

    with ProcessSandbox(jobs=JOBS).session(plan.preload(unit, hanging), SECONDS, unit.runtime) as session:
        step = 1 if stop_at_first_failure else JOBS
        for start in range(0, len(tests), step):
            batch = tests[start : start + step]
            runs = [plan.course_run(next(ids), unit, modules, test) for test in batch]
            parts = [judge(test, result) for test, result in zip(batch, session.run(runs), strict=True)]
            if stop_at_first_failure and any(part.outcome is not Outcome.PASSED for part in parts):
                break
    return found


def whole(unit: Unit, submission: Submission, progress: Callable[[Progress], None]) -> Report:
    """The grading the service would make, but for the oracle, which needs more than a student's machine has."""
    check_libraries(unit)
    about = About(id=uuid.uuid4().hex, course="local", student=None, received_at=datetime.now(UTC))
    sandbox = ProcessSandbox(jobs=JOBS)
    alone = replace(unit, oracle=None)
    return grade(alone, submission, sandbox=sandbox, seed=fresh_seed(), about=about, progress=progress)
