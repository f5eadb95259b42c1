from datetime import timedelta

import pytest

from grader.units import DEFAULT_COURSE, load_course
from service.classroom import wording


@pytest.mark.parametrize(
    ("fault", "believed"),
    [
        ("The scale is 1/sqrt(d_model) where it should be 1/sqrt(d_head).", "the scale is 1/sqrt(d_model)."),
        ("The rows are read as k, q, v instead of q, k, v.", "the rows are read as k, q, v."),
        ("merge_heads leaves out the transpose.", "merge_heads leaves out the transpose."),
        ("T is 1.", "T is 1."),
    ],
)
def test_a_belief_is_what_the_fault_does_without_what_would_be_right(fault, believed):
    assert wording.takes_for_right(12, fault) == f"12 students believe this is right: {believed}"


def test_every_fault_of_the_course_makes_a_sentence():
    for unit in load_course(DEFAULT_COURSE).units.values():
        for mutant in unit.mutants:
            said = wording.takes_for_right(1, mutant.private)
            assert said.startswith("1 student believes this is right: ")
            assert said.endswith(".") and not said.endswith("..")
            assert "should be" not in said


@pytest.mark.parametrize(
    ("hours", "said"), [(-1, "was due"), (0.5, "in 0 hours"), (1, "in 1 hour."), (47, "in 47 hours"), (72, "in 3 days")]
)
def test_what_is_left_is_told_in_hours_and_then_in_days(hours, said):
    assert said in wording.behind(timedelta(hours=hours))


def test_one_attempt_is_not_all_one_attempts():
    assert "the only attempt" in wording.no_attempts_left(1)
    assert "all 3 attempts" in wording.no_attempts_left(3)
