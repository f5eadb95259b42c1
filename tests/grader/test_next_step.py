"""Of everything that keeps a submission from passing, the next step is the one thing that tells most."""

from dataclasses import replace

import pytest

from grader.next_step import next_course_test, next_step
from grader.report import CourseTestPart, CourseTestsPart, Outcome
from grader.unit import Unit
from tests.grader.simulated import SimulatedSuite, a_unit

FAILING = {"test_twice": Outcome.FAILED, "test_zero": Outcome.FAILED, "test_three": Outcome.PASSED}


@pytest.fixture
def told(unit: Unit) -> Unit:
    """Three course tests: two catch a pitfall, one of them nothing else."""
    made = a_unit(unit, ["m1", "m2"])
    twice, zero = made.course_tests
    tests = (
        replace(twice, catches=("m1", "m2")),
        replace(zero, catches=("m1",), chapter="section 7"),
        replace(zero, name="test_three"),
    )
    return replace(made, course_tests=tests, smoke=())


def step(unit: Unit, outcomes: dict[str, Outcome]) -> str:
    tests = tuple(
        CourseTestPart(
            id=test.name,
            kind="",
            outcome=outcomes[test.name],
            seconds=0,
            message=f"AssertionError: {test.name} differs.\nmore",
            where="",
            why="",
            chapter=test.chapter,
        )
        for test in unit.course_tests
    )
    passed = sum(outcome is Outcome.PASSED for outcome in outcomes.values())
    course = CourseTestsPart(passed=passed, total=len(tests), tests=tests)
    rest = SimulatedSuite(unit, ("test_a",)).grade()
    assert rest.contract is not None and rest.student_tests is not None and rest.mutation is not None
    course = course.model_copy(update={"next": next_course_test(unit, rest.contract, course)})
    return next_step(unit, rest.contract, course, rest.student_tests, rest.mutation, rest.reasons)


def test_of_failing_course_tests_the_one_that_catches_the_fewest_faults_is_named_with_the_likely_pitfall(
    told: Unit,
) -> None:
    assert step(told, FAILING) == "Make test_zero pass (section 7): test_zero differs. It may be this: hint m1."


def test_a_test_that_shows_the_likely_pitfall_best_is_named_before_one_that_catches_fewer(told: Unit) -> None:
    twice, *others = told.course_tests
    shown = replace(told, course_tests=(replace(twice, shows=("m1",)), *others))
    assert step(shown, FAILING).startswith("Make test_twice pass (section 1): test_twice differs. It may be")


def test_pitfalls_that_the_tests_do_not_tell_apart_are_all_named(told: Unit) -> None:
    twice, zero, three = told.course_tests
    alike = replace(told, course_tests=(twice, replace(zero, catches=("m1", "m2")), three))
    assert "It may be one of these: hint m1; or hint m2." in step(alike, FAILING)


def test_where_no_course_test_passes_it_is_no_pitfall(told: Unit) -> None:
    said = step(told, dict.fromkeys(FAILING, Outcome.ERROR))
    assert said == "Make test_twice pass (section 1): test_twice differs."
