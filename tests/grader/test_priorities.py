"""Which tests come first for the next variant, by what they caught of those before."""

import pytest

from grader.priorities import Priorities
from sandbox.records import Ending, EndingKind, ItemOutcome, Record, RunResult, TestItem

NAMES = ("t.py::a", "t.py::b")
A_FIRST, B_FIRST = NAMES, NAMES[::-1]
A_SECOND_EACH = dict.fromkeys(NAMES, 1.0)


def ran(a: str, b: str) -> RunResult:
    """A run of tests a and b; "" for one that was not run."""
    items = [TestItem(name, ItemOutcome(said), 0.0) for name, said in zip(NAMES, (a, b), strict=True) if said]
    return RunResult("r", Ending(EndingKind.COMPLETE), Record(NAMES, tuple(items)))


def after(*runs: RunResult, seconds: dict[str, float] = A_SECOND_EACH, category: str = "mask") -> Priorities:
    priorities = Priorities(seconds)
    for run in runs:
        priorities.saw(category, run)
    return priorities


A_CAUGHT, B_CAUGHT = ran("failed", ""), ran("passed", "failed")


def test_the_quickest_come_first_before_anything_was_caught() -> None:
    assert after(seconds={"t.py::a": 1.0, "t.py::b": 0.1}).order() == B_FIRST
    assert after(seconds={"t.py::a": 0.1, "t.py::b": 1.0}).order() == A_FIRST


@pytest.mark.parametrize("outcome", ["failed", "error"])
def test_tests_that_caught_most_come_first(outcome: str) -> None:
    assert after(A_CAUGHT, ran("passed", outcome), ran("passed", outcome)).order() == B_FIRST


def test_what_a_test_costs_is_held_against_what_it_catches() -> None:
    seconds = {"t.py::a": 1.0, "t.py::b": 0.1}
    a_alone = ran("failed", "passed")
    assert after(B_CAUGHT, *[a_alone] * 9, seconds=seconds).order() == B_FIRST
    assert after(B_CAUGHT, *[a_alone] * 20, seconds=seconds).order() == A_FIRST


def test_a_test_that_missed_mutants_comes_behind_one_that_met_none() -> None:
    seconds = {"t.py::a": 1.0, "t.py::b": 2.0}
    assert after(seconds=seconds).order() == A_FIRST
    assert after(*[ran("passed", "")] * 2, seconds=seconds).order() == B_FIRST


@pytest.mark.parametrize("outcome", ["skipped", "xfailed", "xpassed"])
def test_what_says_nothing_counts_for_nothing(outcome: str) -> None:
    assert after(*[ran("passed", outcome)] * 2).order() == B_FIRST


def test_what_caught_mutants_of_the_same_category_comes_first_for_another_of_it() -> None:
    priorities = after(A_CAUGHT, A_CAUGHT, A_CAUGHT)
    priorities.saw("dropout", B_CAUGHT)
    assert priorities.order("dropout") == B_FIRST
    assert priorities.order("mask") == priorities.order("layout") == priorities.order() == A_FIRST


def test_tests_that_cannot_notice_a_mutant_come_behind_those_that_can() -> None:
    priorities = after(A_CAUGHT, A_CAUGHT)
    assert priorities.order("mask", {"t.py::b"}) == B_FIRST
    assert priorities.order("mask", set(NAMES)) == priorities.order("mask", set()) == A_FIRST


def test_tests_that_correct_code_made_fail_come_last() -> None:
    priorities = after(A_CAUGHT, A_CAUGHT)
    priorities.saw_correct(ran("failed", "passed"))
    assert priorities.order() == priorities.order("mask", {"t.py::a"}) == B_FIRST
