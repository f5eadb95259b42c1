"""UTC seconds go in and come out as machines write them; a Retry-After goes in, the seconds to wait come out. Pure."""

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def rfc3339(seconds: float) -> str:
    """UTC seconds since 1970 as RFC 3339, to the millisecond: receivers compare more than whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def wait_asked_for(retry_after: str, now: float) -> float | None:
    """The seconds that a Retry-After asks us to wait, which may be a number or a date; None without either."""
    text = retry_after.strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    seconds = (until if until.tzinfo is not None else until.replace(tzinfo=UTC)).timestamp() - now
    return max(0.0, seconds) if math.isfinite(seconds) else None
