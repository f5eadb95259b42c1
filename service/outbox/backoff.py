"""What came of an attempt goes in; when the next one is due comes out, or that there is none. Pure."""

from dataclasses import dataclass
from enum import StrEnum

FIRST_SECONDS = 10.0  # before the second attempt; doubled each time
LAST_SECONDS = 2 * 3_600.0
LONGEST_SECONDS = 86_400.0  # that anybody may ask us to wait
GIVE_UP_SECONDS = 5 * 86_400.0  # after the first failure in a row
SPREAD = 0.25  # of a pause, so that what failed together does not come back together


class Kind(StrEnum):
    ARRIVED = "arrived"
    STALE = "stale"  # there is one that is as late, or later: this one, if it was sent before
    LATER = "later"  # it may go better later
    REFUSED = "refused"  # it will not


@dataclass(frozen=True)
class Outcome:
    """What came of sending a message once. `status` None: there was no answer.

    `may_have_arrived`: nothing says that it has not. `of_all`: others that go there would fare the same now.
    """

    kind: Kind
    status: int | None = None
    message: str = ""
    retry_after_seconds: float | None = None
    may_have_arrived: bool = False
    of_all: bool = False


def pause_seconds(failures: int, retry_after_seconds: float | None, chance: float) -> float:
    """How long to wait after so many failures in a row; `chance`, 0 to 1, spreads the attempts."""
    usual = min(FIRST_SECONDS * 2.0 ** (max(failures, 1) - 1), LAST_SECONDS) * (1.0 + SPREAD * chance)
    return max(usual, min(retry_after_seconds or 0.0, LONGEST_SECONDS))


def is_over(failing_since: float | None, now: float) -> bool:
    """Whether it has failed for so long that somebody has to look."""
    return failing_since is not None and now - failing_since > GIVE_UP_SECONDS
