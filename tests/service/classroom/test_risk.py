from dataclasses import asdict, dataclass

import pytest

from service.classroom.risk import (
    SILENT_SECONDS,
    SOON_SECONDS,
    STUCK_SUBMISSIONS,
    Situation,
    risks,
)

NOW = 1_800_000_000.0


@dataclass
class Usual:
    """A student who is under way, lately, with time left."""

    graded: int = 2
    pending: int = 0
    since_best: int = 0
    best_score: float | None = 0.5
    latest_at: float | None = NOW - 60
    due_at: float | None = NOW + SOON_SECONDS + 60
    attempts_used: int = 2
    attempts_left: int | None = None


def codes(began=1.0, **said):
    return [reason.code for reason in risks(Situation(**asdict(Usual(**said))), began, NOW)]


def test_a_student_who_is_under_way_is_at_no_risk():
    assert codes() == []
    assert codes(due_at=None) == []


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"attempts_left": 0}, "no_attempts_left"),
        ({"due_at": NOW + SOON_SECONDS - 1}, "due_soon"),
        ({"due_at": NOW - 1}, "due_soon"),
        ({"since_best": STUCK_SUBMISSIONS}, "no_progress"),
        ({"best_score": None}, "all_rejected"),
        ({"latest_at": NOW - SILENT_SECONDS}, "silent"),
    ],
)
def test_each_reason_is_told_by_itself(said, code):
    assert codes(**said) == [code]


def test_what_is_urgent_comes_first():
    found = codes(attempts_left=0, since_best=9, due_at=NOW - 1, latest_at=NOW - SILENT_SECONDS)
    assert found == ["no_attempts_left", "due_soon", "no_progress", "silent"]


def test_one_who_has_not_begun_is_at_risk_when_it_is_due_soon():
    nothing = {"graded": 0, "best_score": None, "latest_at": None}
    assert codes(due_at=NOW + 60, **nothing) == ["not_begun"]
    assert codes(due_at=NOW + SOON_SECONDS + 1, **nothing) == []
    assert codes(due_at=NOW + 60, pending=1, **nothing) == []


def test_without_a_date_one_who_has_not_begun_is_at_risk_when_most_have():
    nothing = {"graded": 0, "best_score": None, "latest_at": None, "due_at": None}
    assert codes(began=0.6, **nothing) == ["not_begun"]
    assert codes(began=0.4, **nothing) == []


def test_one_whose_submission_waits_is_not_silent():
    assert codes(latest_at=NOW - SILENT_SECONDS, pending=1) == []
