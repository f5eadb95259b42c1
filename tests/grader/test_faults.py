"""Which course tests fail tells which fault the code has."""

from dataclasses import replace

import pytest

from grader.faults import Faults
from grader.unit import CourseTest, Unit
from grader.units import DEFAULT_COURSE, load_course
from tests.grader.simulated import a_unit


def test_every_pitfall_of_the_course_is_told_from_the_others_by_the_tests_that_catch_it() -> None:
    """As far as the course tests tell them apart: of pitfalls with the same tests all are named."""
    for unit in load_course(DEFAULT_COURSE).units.values():
        faults = Faults(unit)
        caught = {
            mutant.id: frozenset(test.name for test in unit.course_tests if mutant.id in test.catches)
            for mutant in unit.mutants
        }
        pitfalls = [mutant.id for mutant in unit.mutants if mutant.tier == "semantic"]
        assert pitfalls
        for mid in pitfalls:
            named = faults.pitfalls(caught[mid])
            assert mid in named and {caught[other] for other in named} == {caught[mid]}
            assert faults.of(caught[mid]) == named[0]


@pytest.fixture
def told(unit: Unit) -> Unit:
    """A pitfall that two tests of three catch, and another fault that one of these catches."""
    made = a_unit(unit, ["s1", "m1"])
    pitfall, other = made.mutants
    catches = {"a": ("s1", "m1"), "b": ("s1",), "c": ()}
    tests = tuple(CourseTest(name, "t.py", "unit", "why", mids, "1") for name, mids in catches.items())
    return replace(made, course_tests=tests, mutants=(pitfall, replace(other, tier="auto")))


def test_another_fault_that_fits_better_is_no_pitfall(told: Unit) -> None:
    assert (Faults(told).of(["a", "b"]), Faults(told).pitfalls(["a", "b"])) == ("s1", ("s1",))
    assert (Faults(told).of(["a"]), Faults(told).pitfalls(["a"])) == ("m1", ())


def test_failing_tests_that_no_fault_has_nearly_are_none_of_them(told: Unit) -> None:
    for failing in (["c"], ["b"], []):
        assert Faults(told).of(failing) is None and Faults(told).pitfalls(failing) == ()
