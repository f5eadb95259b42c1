"""A unit with some course tests and mutants, reports on it that say what a test needs, and a class graded so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from grader.report import (
    Cause,
    CourseTestPart,
    CourseTestsPart,
    KillMatrixPart,
    KillMatrixRow,
    MutantPart,
    MutantStatus,
    Outcome,
    Report,
    Runs,
    StudentTestPart,
    Verdict,
)
from grader.seen import About
from grader.unit import CourseTest, Erratum, Freedom, Mutant, Unit
from service import database
from service.tables import members, tokens, users
from service.worker import FakeGrading
from tests.service import samples
from tests.service.conftest import Bench

PATH = "/v1/courses/default/units/L0.0"
TESTS = ("test_doubles", "test_negative", "test_floats", "test_zero")
MUTANTS = ("s01", "s02", "m01", "m02")
CATCHES = {
    "test_doubles": ("s01", "s02", "m01"),
    "test_negative": ("s02", "m01"),
    "test_floats": ("s01",),
    "test_zero": ("m02",),
}
ANY_NUMBER = Freedom("types", "Whether the result of an int is an int or a float is open.", ("w01",))


def unit() -> Unit:
    """Two pitfalls and two other mutants in two categories, and what each course test catches."""
    said = {
        "s01": ("semantic", "scale", "The factor is 3 where it should be 2."),
        "s02": ("semantic", "sign", "The sign is dropped."),
        "m01": ("auto", "sign", "The sign is turned round."),
        "m02": ("auto", "scale", "Zero gives 1 instead of 0."),
    }
    return replace(
        samples.unit(),
        course_tests=tuple(
            CourseTest(name, "test_twice.py", "example", f"why {name}", CATCHES[name], "1.1") for name in TESTS
        ),
        mutants=tuple(
            Mutant(mid, tier, "hand", 2, mid == "s01", f"public {mid}", private, category, {samples.PATH: b""})
            for mid, (tier, category, private) in said.items()
        ),
        freedoms=(ANY_NUMBER,),
        errata=(Erratum("4.0001", "4", "Twice 2 is 4."),),
    )


@dataclass(frozen=True)
class Says:
    """What a report says; by default that all is well. `tests`: the student's tests that reject correct code."""

    failed: Sequence[str] = ()
    survived: Sequence[str] = ()
    score: float | None = 1.0
    verdict: Verdict = Verdict.PASS
    tests: Sequence[StudentTestPart] = ()
    rows: Sequence[KillMatrixRow] = ()
    mutants: Sequence[str] = MUTANTS


def fails(score: float = 0.5, **more: object) -> Says:
    return replace(Says(score=score, verdict=Verdict.FAIL), **more)


def rejected() -> Says:
    return Says(score=None, verdict=Verdict.REJECTED)


def report(about: About, said: Says) -> Report:
    base = samples.report(about, verdict=said.verdict, score=said.score)
    if said.verdict is Verdict.REJECTED:
        return base.model_copy(update={"course_tests": None, "student_tests": None, "mutation": None})
    outcomes = [Outcome.FAILED if name in said.failed else Outcome.PASSED for name in TESTS]
    tests = tuple(
        CourseTestPart(id=name, kind="", outcome=outcome, seconds=0.01, message="", where="", why="", chapter="")
        for name, outcome in zip(TESTS, outcomes, strict=True)
    )
    mutants = tuple(_mutant(mid, mid in said.survived) for mid in said.mutants)
    killed = len(said.mutants) - len(said.survived)
    assert base.student_tests is not None and base.mutation is not None
    return base.model_copy(
        update={
            "course_tests": CourseTestsPart(passed=len(TESTS) - len(said.failed), total=len(TESTS), tests=tests),
            "student_tests": base.student_tests.model_copy(
                update={"tests": (*base.student_tests.tests, *said.tests), "total": 1 + len(said.tests)}
            ),
            "mutation": base.mutation.model_copy(
                update={
                    "mutants": mutants,
                    "killed": killed,
                    "total": len(said.mutants),
                    "kill_matrix": KillMatrixPart(
                        correct=("reference", "w01"), mutants=tuple(said.mutants), tests=tuple(said.rows)
                    ),
                }
            ),
        }
    )


def _mutant(mid: str, survived: bool) -> MutantPart:
    status = MutantStatus.SURVIVED if survived else MutantStatus.KILLED
    return MutantPart(id=mid, tier="", required=False, status=status, killed_by=(), hint="", category="", detail="")


def rejecting(name: str = "test_b.py::test_six", **more: object) -> StudentTestPart:
    """A test of the student's that rejects all correct code."""
    part = StudentTestPart(
        id=name,
        file=name.partition("::")[0],
        line=7,
        correct_runs=Runs(passed=0, total=2),
        kills=(),
        flaky=False,
        own_code=Outcome.PASSED,
        valid=False,
    )
    return part.model_copy(update=more)


def on_mutants(cells: str, name: str = "test_b.py::test_six", correct: str = "FF") -> KillMatrixRow:
    return KillMatrixRow(id=name, correct=correct, mutants=cells)


def ended() -> Cause:
    return Cause(code="cpu_time", message="took too long")


def submit(bench: Bench, student: str, said: Says) -> str:
    """Have the student submit, and the report say this; returns the submission."""

    def answer(unit: Unit, submission: object, about: About, progress: object) -> Report:
        return report(about, said)

    submission = bench.submitted(student)
    bench.graded(bench.worker(FakeGrading(answer)))
    return submission


def enrol(bench: Bench, student: str, *, name: str = "", section: str = "", role: str = "student") -> None:
    """Make the student a member of the course, or what `role` says."""
    said = {"created_at": 0.0}
    with database.writing(bench.engine) as connection:
        connection.execute(
            tokens.insert().values(**said, id=f"t-{student}", digest=f"t-{student}", role="person", label="")
        )
        connection.execute(
            users.insert().values(
                **said, id=student, account=f"t-{student}", login=student, name=name, student=student, admin=False
            )
        )
        connection.execute(
            members.insert().values(**said, course="default", user=student, role=role, section=section, source="csv")
        )


def a_class(make_bench: Callable[..., Bench]) -> Bench:
    """An application that serves the unit."""
    return make_bench(samples.course(unit()))


def asked(bench: Bench, question: str, who: str = "teacher") -> dict[str, object]:
    answer = bench.get(f"{PATH}/{question}", who)
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found
