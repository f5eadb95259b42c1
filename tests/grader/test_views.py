"""A student's report holds nothing that was said beside code that is not their own."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from grader import conclude
from grader.plan import STANDARD, Policy
from grader.report import Outcome, Report
from grader.text import render
from grader.unit import Unit
from grader.views import for_role
from sandbox.records import EndingKind
from tests.grader.simulated import ABOUT, OWN_WORDS, SECRET, Act, SimulatedSuite, a_unit

TESTS = ("test_a", "test_b", "test_c", "test_d", "test_e")
BESIDE = ("reference", "broken", "w01", "m1", "m2")


@pytest.fixture
def small(unit: Unit) -> Unit:
    return a_unit(unit, ["m1", "m2"], wheats=1, required=["m1"])


def texts(value: object) -> Iterator[str]:
    """Every text in a JSON value, keys and values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def seen_by(report: Report, role: str) -> str:
    return "\n".join(texts(json.loads(for_role(report, role).to_json())))


def leaky_suites(unit: Unit) -> Iterator[SimulatedSuite]:
    """A suite for every act on every piece of code beside the student's, and for every way to end or not to load."""
    for variant in BESIDE:
        for act in Act:
            yield SimulatedSuite(unit, TESTS, {variant: {"test_b": act}})
        for kind in EndingKind:
            if kind is not EndingKind.COMPLETE:
                yield SimulatedSuite(unit, TESTS, ends_at_import={variant: kind})
        yield SimulatedSuite(unit, TESTS, file_errors=frozenset({variant}))
        yield SimulatedSuite(unit, TESTS, class_errors=frozenset({variant}))
    everywhere = frozenset(BESIDE)
    yield SimulatedSuite(unit, TESTS, file_errors=everywhere)
    yield SimulatedSuite(unit, (), class_errors=everywhere)
    for act in Act:
        name = f"test_{SECRET}[{SECRET}]"
        yield SimulatedSuite(unit, TESTS, {"*": {name: act}}, made_beside=(name,))
        yield SimulatedSuite(unit, (), {"*": {name: act}}, made_beside=(name,))
    yield SimulatedSuite(unit, TESTS, made_beside=tuple(f"test_{SECRET}_{n}" for n in range(300)))


@pytest.mark.parametrize("policy", [STANDARD, Policy(full_matrix_cpu_seconds=0.0)])
def test_nothing_said_beside_other_code_reaches_a_student(small: Unit, policy: Policy) -> None:
    for suite in leaky_suites(small):
        report = suite.grade(policy=policy)
        for role in ("student", "lms", "anyone"):
            assert SECRET not in seen_by(report, role)
        assert SECRET not in render(for_role(report, "student"))


def test_a_teacher_sees_what_was_said_on_correct_code(small: Unit) -> None:
    report = SimulatedSuite(small, TESTS, {"reference": {"test_b": Act.FAIL}}).grade()
    assert f"{SECRET} reference" in seen_by(report, "teacher")
    assert for_role(report, "admin") is report


def test_a_student_sees_what_their_tests_said_on_their_own_code(small: Unit) -> None:
    report = SimulatedSuite(small, TESTS, {"own": {"test_b": Act.FAIL}}).grade()
    assert OWN_WORDS in seen_by(report, "student")


def test_numbers_that_code_could_choose_are_not_shown(small: Unit) -> None:
    for variant in ("reference", "w01", "m1"):
        reports = [
            SimulatedSuite(small, TESTS, {variant: {"test_a": Act.CRASH}}).grade(),
            SimulatedSuite(small, TESTS, ends_at_import={variant: EndingKind.SIGNAL}).grade(),
            SimulatedSuite(small, TESTS, ends_at_import={variant: EndingKind.EARLY_EXIT}).grade(),
        ]
        for report in reports:
            said = for_role(report, "student")
            assert said.mutation is not None and said.student_tests is not None
            causes = [mutant.cause for mutant in said.mutation.mutants]
            causes += [test.cause for test in said.student_tests.tests]
            assert all(cause is None or cause.seen is None for cause in causes)
            assert "SIG" not in seen_by(report, "student")


def test_a_student_sees_the_first_three_tests_that_reject_correct_code_and_no_other(small: Unit) -> None:
    acts = {"w01": dict.fromkeys(TESTS[1:], Act.FAIL), "m1": {"test_a": Act.FAIL}}
    report = for_role(SimulatedSuite(small, TESTS, acts).grade(), "student")
    assert report.student_tests is not None and report.mutation is not None
    assert [test.valid for test in report.student_tests.tests] == [None, False, False, False, None]
    assert [test.correct_runs is None for test in report.student_tests.tests] == [True, False, False, False, True]
    assert all(not test.kills for test in report.student_tests.tests)
    assert all(not mutant.killed_by for mutant in report.mutation.mutants)
    assert "test_d and 1 more" in report.reasons[0].message and "test_e" not in report.reasons[0].message


def test_own_outcomes_stay_when_the_rest_of_a_test_is_closed(small: Unit) -> None:
    acts = {"w01": dict.fromkeys(TESTS[:4], Act.FAIL), "own": {"test_e": Act.FAIL}}
    report = for_role(SimulatedSuite(small, TESTS, acts).grade(), "student")
    assert report.student_tests is not None
    assert report.student_tests.tests[4].own_code is Outcome.FAILED


def test_students_see_neither_the_fault_nor_the_wheats(small: Unit) -> None:
    report = SimulatedSuite(small, TESTS).grade()
    assert "fault m1" in seen_by(report, "teacher") and "w01" in seen_by(report, "teacher")
    assert "fault m1" not in seen_by(report, "student") and "w01" not in seen_by(report, "student")
    assert "hint m1" in seen_by(report, "student")


def test_a_report_without_tests_is_the_same_for_everyone(small: Unit) -> None:
    report = conclude.rejected("Z1", ABOUT, "link", "This is a link.")
    assert for_role(report, "student") == report


def test_a_view_is_a_report_of_the_same_schema(small: Unit) -> None:
    suite = SimulatedSuite(replace(small, wheats=()), TESTS, {"m1": {"test_a": Act.HANG}})
    view = for_role(suite.grade(), "student")
    assert Report.model_validate_json(view.to_json()) == view
