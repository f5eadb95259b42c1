import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import walltime
from service.walltime import Repeated, Skipped, Unreadable

BERLIN = "Europe/Berlin"


def utc(*parts):
    return datetime(*parts, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "zone", "wanted"),
    [
        ("2026-10-01T23:59", BERLIN, utc(2026, 10, 1, 21, 59)),
        ("2026-12-01T23:59", BERLIN, utc(2026, 12, 1, 22, 59)),
        ("2026-12-01 23:59:30", "UTC", utc(2026, 12, 1, 23, 59, 30)),
        ("2026-12-01T23:59Z", BERLIN, utc(2026, 12, 1, 23, 59)),
        ("2026-12-01T23:59:00-08:00", BERLIN, utc(2026, 12, 2, 7, 59)),
        ("2026-12-01T23:59", "Asia/Kathmandu", utc(2026, 12, 1, 18, 14)),
    ],
)
def test_a_wall_time_is_read_in_its_zone_and_an_offset_wins(text, zone, wanted):
    assert walltime.read(text, zone) == wanted


def test_a_time_that_the_spring_skips_is_refused_and_its_neighbours_are_not():
    with pytest.raises(Skipped) as caught:
        walltime.read("2026-03-29T02:30", BERLIN)
    assert [each.isoformat() for each in (caught.value.earlier, caught.value.later)] == [
        "2026-03-29T01:30:00+01:00",
        "2026-03-29T03:30:00+02:00",
    ]
    assert walltime.read("2026-03-29T01:59", BERLIN) + 60 == walltime.read("2026-03-29T03:00", BERLIN)


def test_a_time_that_the_autumn_repeats_needs_an_offset():
    with pytest.raises(Repeated) as caught:
        walltime.read("2026-10-25T02:30", BERLIN)
    meant = [each.isoformat() for each in (caught.value.earlier, caught.value.later)]
    assert meant == ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"]
    first, second = (walltime.read(each, BERLIN) for each in meant)
    assert second - first == 3_600
    assert walltime.read("2026-10-25T03:00", BERLIN) - walltime.read("2026-10-25T01:59:59", BERLIN) == 3_601 + 3_600


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe", "Europe/Dublin"])
def test_every_time_that_is_shown_is_read_again(zone):
    for hour in range(0, 366 * 24):
        seconds = utc(2026, 1, 1) + hour * 3_600
        assert walltime.read(walltime.show(seconds, zone).isoformat(), zone) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2026-10-25",
        "2026-13-01T00:00",
        "2026-10-25T24:00",
        "2026-W43-7T02:30",
        "20261025T0230",
        "2026-10-25T02:30 ",
        "0001-01-01T00:00",
        "9999-12-31T23:59-12:00",
        "2026-10-25T02:30+25:00",
        "٢٠٢٦-10-25T02:30",
    ],
)
def test_what_is_not_a_time_is_unreadable(text):
    with pytest.raises(Unreadable):
        walltime.read(text, "UTC")


@given(st.text(max_size=30) | st.from_regex(walltime._WRITTEN, fullmatch=True))
def test_any_text_is_a_time_or_refused(text):
    with contextlib.suppress(Unreadable, Skipped, Repeated):
        walltime.show(walltime.read(text, BERLIN), BERLIN)


@pytest.mark.parametrize("name", ["", "Europe", "europe/berlin", "../etc/passwd", "CEST", "posix/UTC", "UTC+1"])
def test_only_the_names_of_zones_are_zones(name):
    assert not walltime.is_zone(name)
    assert walltime.is_zone(BERLIN)
