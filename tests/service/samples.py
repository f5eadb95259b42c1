"""Small values to build the service's tests from: a unit, reports, and a grading that answers with them."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from grader.grade import Progress
from grader.quiz import load as load_quiz
from grader.report import (
    Baselines,
    Cause,
    ComparedPart,
    CourseTestPart,
    CourseTestsPart,
    Integrity,
    MutantPart,
    MutantStatus,
    MutationPart,
    Outcome,
    Report,
    StudentTestPart,
    StudentTestsPart,
    SubmissionPart,
    Timing,
    Verdict,
)
from grader.seen import About
from grader.submission import Submission
from grader.unit import Contract, Course, CourseTest, Erratum, Freedom, Mutant, Unit, UnitFile
from sandbox.records import File

PATH = "python/tinyllm/demo/twice.py"
SOURCE = b"def twice(x):\n    return 2 * x\n"
TESTS = b"from tinyllm.demo.twice import twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n"
HIDDEN = "what a test said on a mutant"
HINTS = {"s01": ("doubling", "the double of 3"), "m01": ("a sign", "a negative number", "the double of -2", "is -4")}


QUIZ = load_quiz(
    "quiz/L0.0.toml",
    b"""
[[questions]]
id = "shape"
text = "Of a <pair>?"
kind = "shapes"
parts = [{ name = "pair", answer = [2] }]
explanation = "A pair has two."
[[questions]]
id = "why"
text = "Why?"
kind = "text"
""",
)


def unit(unit_id: str = "L0.0") -> Unit:
    contract = Contract("tinyllm.demo.twice", {"twice": ("x",)}, "def twice(x): ...\n")
    return Unit(
        id=unit_id,
        title="Doubling <numbers>",
        build=("twice(x): the double of x.",),
        files=(UnitFile(PATH, "tinyllm.demo.twice", SOURCE),),
        contract={contract.module: contract},
        forbidden=("torch",),
        contracts={contract.module: contract},
        companions={},
        course_tests=(
            CourseTest("test_doubles", "test_twice.py", "example", "a double is twice the number", ("s01",), "1.1"),
        ),
        test_files=(File("suite/test_twice.py", TESTS),),
        fixtures=(File("L0.0/numbers.txt", b"1 2 3"),),
        smoke=("test_doubles",),
        test_seconds=10.0,
        determinism_runs=1,
        tests_path="python/tests/l0-0-twice",
        rung="R1",
        threshold=0.8,
        required_mutants=("s01",),
        budget_cpu_seconds=30.0,
        mutants=(
            Mutant("s01", "semantic", "hand", 2, True, "doubling", "x + 1", "value", {PATH: b""}, HINTS["s01"]),
            Mutant("m01", "auto", "hand", 2, False, "a sign", "-2 * x", "value", {PATH: b""}, HINTS["m01"]),
        ),
        wheats=(),
        freedoms=(Freedom("types", "Whether the result of an int is an int or a float.", ()),),
        errata=(Erratum("4.0001", "4", "Twice 2 is 4."),),
        quiz=QUIZ,
    )


def course(*units: Unit) -> Course:
    return Course({each.id: each for each in units or (unit(),)}, (), "0" * 64)


def report(
    about: About,
    unit_id: str = "L0.0",
    *,
    digest: str = "0" * 64,
    verdict: Verdict = Verdict.PASS,
    score: float | None = 1.0,
    failed: Sequence[str] = (),
    survived: Sequence[str] = (),
) -> Report:
    """A report on the sample unit in which the course tests `failed` and the mutants `survived`."""
    mutants = tuple(_mutant(mid, mid in survived) for mid in ("s01", "m01"))
    return Report(
        submission=SubmissionPart(
            id=about.id,
            unit=unit_id,
            course=about.course,
            student=about.student,
            received_at=about.received_at,
            digest=digest,
        ),
        verdict=verdict,
        score=score,
        reasons=(),
        next_step="Nothing is left to do.",
        course_tests=CourseTestsPart(
            passed=1 - len(failed), total=1, tests=(_course_test("test_doubles", "test_doubles" in failed),)
        ),
        student_tests=StudentTestsPart(
            total=1,
            own_code_ok=True,
            tests=(
                StudentTestPart(
                    id="test_a.py::test_twice",
                    file="test_a.py",
                    line=4,
                    correct_runs=None,
                    kills=(),
                    flaky=False,
                    own_code=Outcome.PASSED,
                    valid=True,
                    rejection=HIDDEN,
                ),
            ),
            baselines=Baselines(correct=(), own=None, broken=None, cpu_seconds=0.1, budget_cpu_seconds=30.0),
        ),
        mutation=MutationPart(
            score=1 - len(survived) / 2,
            score_if_valid=1 - len(survived) / 2,
            threshold=0.8,
            killed=2 - len(survived),
            total=2,
            required_ok="s01" not in survived,
            passed=not survived,
            matrix="full",
            mutants=mutants,
            wheats=(),
            categories=(),
        ),
        timing=Timing(queued=about.queued_seconds, phases={}, total=0.1),
        integrity=Integrity(seed=7, digests={}),
    )


def _course_test(name: str, failed: bool) -> CourseTestPart:
    outcome = Outcome.FAILED if failed else Outcome.PASSED
    return CourseTestPart(
        id=name, kind="example", outcome=outcome, seconds=0.01, message="", where="", why="", chapter=""
    )


def _mutant(mid: str, survived: bool) -> MutantPart:
    return MutantPart(
        id=mid,
        tier="semantic",
        required=mid == "s01",
        status=MutantStatus.SURVIVED if survived else MutantStatus.KILLED,
        killed_by=() if survived else ("test_a.py::test_twice",),
        hint="doubling",
        category="value",
        cause=Cause(code="signal", message="", seen=11.0),
        detail=HIDDEN,
    )


def about(submission_id: str = "1") -> About:
    return About(id=submission_id, course="default", student=None, received_at=datetime.now(UTC), queued_seconds=0.0)


def passes(unit: Unit, submission: Submission, about: About, progress: Callable[[Progress], None]) -> Report:
    """Answers for FakeGrading: everything passes."""
    progress(Progress("course_tests", 1, 1))
    return report(about, unit.id, digest=submission.digest)


def surviving(*mutants: str) -> Callable[..., Report]:
    """As `passes`, but these mutants survive."""

    def answer(
        unit: Unit, submission: Submission, about: About, progress: Callable[[Progress], None], **more: object
    ) -> Report:
        return report(about, unit.id, digest=submission.digest, survived=mutants)

    return answer


def failing(message: str = "", compared: ComparedPart | None = None) -> Callable[..., Report]:
    """As `passes`, but the course test fails, says this and compared these arrays."""

    def answer(
        unit: Unit, submission: Submission, about: About, progress: Callable[[Progress], None], **more: object
    ) -> Report:
        said = {"message": message, "compared": compared, "chapter": "section 1", "why": "twice is twice"}
        whole = report(about, unit.id, digest=submission.digest, verdict=Verdict.FAIL, failed=("test_doubles",))
        assert whole.course_tests is not None
        tests = tuple(test.model_copy(update=said) for test in whole.course_tests.tests)
        return whole.model_copy(update={"course_tests": whole.course_tests.model_copy(update={"tests": tests})})

    return answer


def form(**fields: str) -> dict[str, object]:
    """What to post for the sample unit, as httpx takes it."""
    files = [("twice", ("twice.py", SOURCE)), ("tests", ("test_a.py", TESTS))]
    return {"files": files, "data": fields}
