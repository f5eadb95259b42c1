"""What an assignment says of times, and when a submission was received, go in; how late it is and what it loses, come
out.

Seconds since 1970 throughout, UTC. A day is 24 hours and an hour 3,600 seconds, also when the clocks change.
(docs/decisions/0126)
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=400 * 86_400, allow_inf_nan=False)]


class Per(StrEnum):
    HOUR = "hour"
    DAY = "day"

    @property
    def seconds(self) -> float:
        return {Per.HOUR: 3_600.0, Per.DAY: 86_400.0}[self]


class LatePolicy(BaseModel):
    """What a late submission loses of its score. As it stands without values: nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    penalty: Share = Field(default=0.0, description="share of the score lost for each started `per` after the due time")
    per: Per = Per.DAY
    cap: Share = Field(default=1.0, description="the largest share that is lost in this way")
    grace_seconds: Seconds = Field(default=0.0, description="later by no more than this is on time")
    zero_after_seconds: Seconds | None = Field(default=None, description="later by more than this scores nothing")


@dataclass(frozen=True)
class Times:
    """When one may submit: from `opens_at` on, on time until `due_at`, at all until `closes_at`. None: no limit."""

    opens_at: float | None = None
    due_at: float | None = None
    closes_at: float | None = None


@dataclass(frozen=True)
class Lateness:
    """How many seconds after the due time a submission came, and the share of its score that it loses."""

    seconds: float = 0.0
    penalty: float = 0.0

    def applied(self, score: float) -> float:
        """The score, 0 to 1, that is left."""
        return score * (1.0 - self.penalty)


def extended(times: Times, due_at: float | None, closes_at: float | None) -> Times:
    """The times for a student with an extension; None extends nothing.

    An extension takes no time away, whatever the assignment's times become later, and what is due later than the
    assignment closes keeps it open until then.
    """
    due = _later(times.due_at, due_at)
    closes = _later(times.closes_at, closes_at)
    if due_at is not None:
        closes = _later(closes, due_at)
    return Times(times.opens_at, due, closes)


def lateness(policy: LatePolicy, due_at: float | None, received_at: float) -> Lateness:
    """How late a submission received then is, and what it loses."""
    if due_at is None or received_at <= due_at + policy.grace_seconds:
        return Lateness()
    seconds = received_at - due_at
    if policy.zero_after_seconds is not None and seconds > policy.zero_after_seconds:
        return Lateness(seconds, 1.0)
    started = math.ceil(seconds / policy.per.seconds)
    return Lateness(seconds, min(policy.penalty * started, policy.cap))


def _later(everyone: float | None, extension: float | None) -> float | None:
    """None for everyone means without end, and no extension ends that."""
    if everyone is None or extension is None:
        return everyone
    return max(everyone, extension)
