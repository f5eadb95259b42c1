import pytest

from service.fleet import Silence, stranded


@pytest.fixture
def silence():
    return Silence(ttl_seconds=15.0)


def test_who_goes_on_writing_is_not_silent(silence):
    for second in range(100):
        assert silence.of({"a": second // 5}, float(second)) == []


def test_who_stops_writing_is_silent_after_its_time_and_not_before(silence):
    for second in range(15):
        assert silence.of({"a": 7.0, "b": float(second)}, 100.0 + second) == []
    assert silence.of({"a": 7.0, "b": 15.0}, 115.0) == ["a"]


def test_a_time_that_goes_back_is_a_sign_of_life(silence):
    for second in range(30):
        assert silence.of({"a": 1_000.0 - second // 5}, float(second)) == []


def test_who_was_away_itself_begins_to_watch_anew(silence):
    assert silence.of({"a": 7.0}, 0.0) == []
    assert silence.of({"a": 7.0}, 60.0) == []  # the whole machine may have stood still
    for second in range(1, 15):
        assert silence.of({"a": 7.0}, 60.0 + second) == []
    assert silence.of({"a": 7.0}, 75.0) == ["a"]


def test_who_left_is_forgotten(silence):
    for second in range(14):
        silence.of({"a": 7.0}, float(second))
    silence.of({}, 14.0)
    assert silence.of({"a": 7.0}, 15.0) == []


def test_stranded_is_what_the_engine_does_not_have_or_gave_to_nobody_who_lives():
    known = {"waits": None, "given": "alive", "left": "dead"}
    assert stranded(["waits", "given", "left", "lost"], known, {"alive"}) == ["left", "lost"]
