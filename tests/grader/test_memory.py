"""A suite that was graded before is not held against correct code and mutants again, if that could show nothing new."""

from dataclasses import replace

import pytest

from grader.grade import grade
from grader.memory import SuiteMemory, key_of
from grader.plan import STANDARD
from grader.report import Report, Verdict
from grader.unit import Unit
from sandbox.records import Environment, FakeSandbox, File
from tests.grader.simulated import ABOUT, Act, SimulatedSuite, a_unit

ENVIRONMENT = Environment("fake", "", "", "", "", "")


@pytest.fixture
def small(unit: Unit) -> Unit:
    return a_unit(unit, ["m1", "m2"], required=["m1"])


def graded(suite: SimulatedSuite, memory: SuiteMemory, seed: int = 1) -> Report:
    sandbox = FakeSandbox(suite.answer)
    return grade(
        suite.unit, suite.submission(), sandbox=sandbox, seed=seed, about=ABOUT, memory=memory, clock=lambda: 0.0
    )


def variants(suite: SimulatedSuite) -> set[str]:
    return {name for name, _ in suite.log}


def test_the_second_time_only_the_student_s_code_is_run(small: Unit) -> None:
    memory = SuiteMemory()
    acts = {"m1": {"test_a": Act.FAIL}}
    first = graded(SimulatedSuite(small, ("test_a", "test_b"), acts), memory)
    changed = SimulatedSuite(small, ("test_a", "test_b"), {**acts, "course": {"test_zero": Act.FAIL}})
    second = graded(changed, memory, seed=2)
    assert variants(changed) == {"own"}
    assert first.mutation is not None and second.mutation == first.mutation.model_copy(update={"remembered": True})
    assert second.course_tests is not None and second.course_tests.passed == 1
    assert second.student_tests == first.student_tests


def test_a_suite_that_rejects_correct_code_is_remembered_so(small: Unit) -> None:
    memory = SuiteMemory()
    strict = {"w01": {"test_a": Act.FAIL}}
    reports = [graded(SimulatedSuite(small, ("test_a",), strict), memory) for _ in range(2)]
    assert [report.mutation and report.mutation.remembered for report in reports] == [False, True]
    assert [report.verdict for report in reports] == [Verdict.FAIL] * 2
    assert reports[0].reasons == reports[1].reasons


@pytest.mark.parametrize(
    "acts",
    [
        {"m1": {"test_a": Act.HANG}},
        {"m1": {"test_a": Act.CRASH}},
        {"reference": {"test_a": Act.FLAKY}},
        {"*": {"test_a": Act.SKIP}},
        {"*": {"test_a": Act.EXIT}},
    ],
    ids=["out of time", "void", "flaky", "skipped", "ended"],
)
def test_what_may_come_out_otherwise_is_not_remembered(small: Unit, acts: dict[str, dict[str, Act]]) -> None:
    memory = SuiteMemory()
    graded(SimulatedSuite(small, ("test_a",), acts), memory)
    again = SimulatedSuite(small, ("test_a",), acts)
    report = graded(again, memory)
    assert "reference" in variants(again) and report.mutation is not None and not report.mutation.remembered


def test_a_submission_whose_time_is_over_is_not_remembered(small: Unit) -> None:
    memory = SuiteMemory()
    graded(SimulatedSuite(small, ("test_a",), runs_left=12), memory)
    again = SimulatedSuite(small, ("test_a",))
    graded(again, memory)
    assert "reference" in variants(again)


def test_everything_that_decides_it_is_in_the_key(small: Unit) -> None:
    submission = SimulatedSuite(small, ("test_a",)).submission()
    [file] = submission.tests
    key = key_of(small, submission, ENVIRONMENT, STANDARD)
    others = [
        key_of(replace(small, digest="another"), submission, ENVIRONMENT, STANDARD),
        key_of(small, replace(submission, tests=(File(file.path, file.data + b"#"),)), ENVIRONMENT, STANDARD),
        key_of(small, replace(submission, tests=(File("x" + file.path, file.data),)), ENVIRONMENT, STANDARD),
        key_of(small, replace(submission, tests=(file, File("a", b""))), ENVIRONMENT, STANDARD),
        key_of(small, submission, replace(ENVIRONMENT, numpy="3"), STANDARD),
        key_of(small, submission, ENVIRONMENT, replace(STANDARD, reference_runs=4)),
    ]
    assert len({key, *others}) == 7
    own = replace(submission, files={path: data + b"#" for path, data in submission.files.items()})
    assert key_of(small, own, ENVIRONMENT, STANDARD) == key


def test_the_suites_not_asked_for_longest_are_forgotten(small: Unit) -> None:
    memory = SuiteMemory(most=2)
    suites = [SimulatedSuite(small, (name,)) for name in ("test_a", "test_b", "test_c")]
    for suite in (suites[0], suites[1], suites[0], suites[2]):
        graded(suite, memory)
    again = [SimulatedSuite(small, (name,)) for name in ("test_a", "test_c", "test_b")]
    for suite in again:
        graded(suite, memory)
    assert [variants(suite) == {"own"} for suite in again] == [True, True, False]
