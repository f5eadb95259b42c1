from datetime import UTC, datetime

import pytest

from service.dashboard.saying import Saying


def test_times_are_said_on_the_courses_clocks_and_marked_up_in_utc():
    moment = datetime(2026, 7, 1, 22, 30, tzinfo=UTC)
    for time in (moment, moment.timestamp()):
        assert Saying("Europe/Berlin").when(time) == (
            '<time datetime="2026-07-01T22:30:00+00:00">Thu 2026-07-02 00:30</time>'
        )
    assert Saying().when(None) == "–"


@pytest.mark.parametrize(
    ("share", "said"), [(0.0, "0 %"), (0.001, "1 %"), (0.5, "50 %"), (0.999, "99 %"), (1.0, "100 %"), (None, "–")]
)
def test_what_is_not_nothing_or_all_is_not_said_to_be(share, said):
    assert Saying.percent(share) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.25, "0.2 s"),
        (59.4, "59 s"),
        (61, "1 min"),
        (3600, "1 h"),
        (3660, "1 h 1 min"),
        (86_400, "1 d"),
        (90_000, "1 d 1 h"),
    ],
)
def test_durations_are_said_in_their_two_largest_units(seconds, said):
    assert Saying.duration(seconds) == said


def test_counts_have_their_noun_in_the_right_number():
    assert Saying.count(1, "test") == "1 test"
    assert Saying.count(0, "test") == "0 tests"
    assert Saying.count(2, "class", "classes") == "2 classes"


def test_what_would_move_a_cursor_or_turn_the_direction_is_shown():
    assert Saying.line("a\x1b[2J\u202e\nb") == "a\\x1b[2J\\u202e\\nb"
    assert Saying.lines("a\nb\x00") == "a\nb\\x00"
