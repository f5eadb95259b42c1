"""What changed from one submission to the next."""

from dataclasses import replace

import pytest

from grader.changes import Changes, between
from grader.feedback import at_level
from grader.report import Level, Report
from grader.unit import Unit
from tests.grader.form_reports import rejected
from tests.grader.simulated import Act, SimulatedSuite, a_unit


@pytest.fixture
def small(unit: Unit) -> Unit:
    return a_unit(unit, ["m1", "m2", "m3"])


def graded(unit: Unit, caught: str, **acts: dict[str, Act]) -> Report:
    return SimulatedSuite(unit, ("test_a",), {**{mid: {"test_a": Act.FAIL} for mid in caught.split()}, **acts}).grade()


def test_what_became_right_and_what_was_right_before_is_told_apart(small: Unit) -> None:
    first = graded(small, "m1 m2", course={"test_zero": Act.FAIL})
    second = graded(small, "m2 m3", course={"test_twice": Act.FAIL})
    assert between(first, second) == Changes(("test_zero",), ("test_twice",), ("m3",), ("m1",))
    assert between(second, first) == Changes(("test_twice",), ("test_zero",), ("m1",), ("m3",))


def test_the_same_again_is_no_change(small: Unit) -> None:
    report = graded(small, "m1")
    assert not between(report, report) and between(report, graded(small, "m1 m2"))


def test_what_one_of_the_two_does_not_tell_has_not_changed(small: Unit) -> None:
    first, second = graded(small, "m1"), graded(small, "m2 m3")
    assert not between(at_level(first, Level.COUNTS), second)
    assert not between(rejected(), second)
    fewer = replace(small, mutants=small.mutants[:1])
    assert between(graded(fewer, ""), second) == Changes()


def test_a_grade_of_tests_that_became_void_misses_what_was_caught(small: Unit) -> None:
    void = graded(small, "", reference={"test_a": Act.FAIL})
    assert between(graded(small, "m1"), void).missed == ("m1",)
