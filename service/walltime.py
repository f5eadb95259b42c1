"""A time as a person writes it, and a time zone, go in; UTC seconds since 1970 come out, and back again.

Inside there is UTC only; a time zone decides how a time is read and shown. (docs/decisions/0125)
"""

import re
from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_WRITTEN = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:[Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_FIRST_YEAR, _LAST_YEAR = 1971, 9998  # so that no offset leads out of what a datetime holds


class Unreadable(ValueError):
    """The text is not a time."""


class Skipped(ValueError):
    """The clocks go forward over this local time: it never comes. `earlier` and `later` are what it may have meant."""

    def __init__(self, earlier: datetime, later: datetime) -> None:
        super().__init__("this local time does not exist")
        self.earlier, self.later = earlier, later


class Repeated(ValueError):
    """The clocks go back over this local time: it comes twice, as `earlier` and as `later`."""

    def __init__(self, earlier: datetime, later: datetime) -> None:
        super().__init__("this local time comes twice")
        self.earlier, self.later = earlier, later


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def zones() -> list[str]:
    """Every IANA time zone by name, to choose from."""
    return sorted(_zones())


def is_zone(name: str) -> bool:
    """Whether this is the name of an IANA time zone, such as Europe/Berlin."""
    return name in _zones()


def read(text: str, zone: str) -> float:
    """The UTC seconds of an RFC 3339 time with an offset, or of a wall time in `zone` without one.

    Raises Unreadable, Skipped or Repeated.
    """
    if not _WRITTEN.fullmatch(text):
        raise Unreadable(text)
    try:
        said = datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise Unreadable(text) from error
    if not _FIRST_YEAR <= said.year <= _LAST_YEAR:
        raise Unreadable(text)
    return (said if said.tzinfo is not None else _in_zone(said, ZoneInfo(zone))).timestamp()


def show(seconds: float, zone: str) -> datetime:
    """The time as clocks in `zone` show it, with its offset from UTC."""
    return datetime.fromtimestamp(seconds, ZoneInfo(zone))


def said(time: datetime, *, seconds: bool = False) -> str:
    """The time as every page says it."""
    return time.strftime("%a %Y-%m-%d %H:%M:%S" if seconds else "%a %Y-%m-%d %H:%M")


def _in_zone(wall: datetime, zone: ZoneInfo) -> datetime:
    first, second = wall.replace(tzinfo=zone, fold=0), wall.replace(tzinfo=zone, fold=1)
    if first.utcoffset() == second.utcoffset():
        return first
    # In a gap, the offset before it leads behind the gap and the one after it before: the two change places.
    earlier, later = sorted(each.astimezone(UTC).astimezone(zone) for each in (first, second))
    if earlier.replace(tzinfo=None, fold=0) == wall:
        raise Repeated(earlier, later)
    raise Skipped(earlier, later)
