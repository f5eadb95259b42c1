"""Moments as machines write them to each other."""

import pytest

from service.instants import rfc3339, wait_asked_for


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("Fri, 15 Jan 2027 08:01:40 GMT", 100.0),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
        ("9" * 400, 999_999_999.0),
    ],
)
def test_a_pause_is_asked_for_in_seconds_or_by_a_date(text, seconds):
    assert wait_asked_for(text, 1_800_000_000.0) == seconds


def test_moments_that_differ_by_a_millisecond_are_written_differently():
    assert rfc3339(1_800_000_000.0) == "2027-01-15T08:00:00.000Z"
    assert rfc3339(1_800_000_000.0) < rfc3339(1_800_000_000.001)
