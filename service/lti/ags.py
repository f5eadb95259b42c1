"""One score goes in and is sent to a line item of a platform (Assignment and Grade Services 2.0); what became of it
comes out, so that whoever sends knows whether to send again.
"""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pylti1p3.grade import Grade
from pylti1p3.lineitem import LineItem

from service.instants import rfc3339, wait_asked_for
from service.lti import wording
from service.lti.speaking import Away, Speaker, checked, speaking

SCORE = "https://purl.imsglobal.org/spec/lti-ags/scope/score"
LINE_ITEM = "https://purl.imsglobal.org/spec/lti-ags/scope/lineitem"
LINE_ITEM_TYPE = "application/vnd.ims.lis.v2.lineitem+json"
SCORE_TYPE = "application/vnd.ims.lis.v1.score+json"
CANVAS_SUBMISSION = "https://canvas.instructure.com/lti/submission"
COMMENT_CHARS = 2000
POINTS = 100.0  # of the grade columns we ask for; a score is scaled to any
URL_CHARS = 2000
OF_ALL = (401, 429, 502, 503, 504)  # answers that any other score would get as well


class Activity(StrEnum):
    """How far the student is."""

    INITIALIZED = "Initialized"
    STARTED = "Started"
    IN_PROGRESS = "InProgress"
    SUBMITTED = "Submitted"
    COMPLETED = "Completed"


class Grading(StrEnum):
    """How far we are. Platforms record FullyGraded; some of them nothing else."""

    FULLY_GRADED = "FullyGraded"
    PENDING = "Pending"
    PENDING_MANUAL = "PendingManual"
    FAILED = "Failed"
    NOT_READY = "NotReady"


@dataclass(frozen=True)
class ScoreMessage:
    """What a platform is told of one student's work at one line item.

    `user_id` is the platform's own id of the student; `timestamp` UTC seconds, later for every message on the same
    student and line item: a platform keeps the latest and refuses the others. `given` None: there is no score (yet).
    `submitted_at` is when the student handed in, UTC seconds, whenever this is sent. `new_submission`: Canvas counts
    another attempt; False for a grade that changed without one.
    """

    user_id: str
    timestamp: float
    activity: Activity
    grading: Grading
    given: float | None = None
    maximum: float = 1.0
    comment: str = ""
    submitted_at: float | None = None
    new_submission: bool = True

    def __post_init__(self) -> None:
        if not self.user_id:
            raise ValueError("a score names its student")
        if not (math.isfinite(self.maximum) and self.maximum > 0):
            raise ValueError(f"the maximum must be positive and finite, got {self.maximum}")
        if self.given is not None and not (math.isfinite(self.given) and self.given >= 0):
            raise ValueError(f"a score must not be negative, and finite, got {self.given}")
        if self.given is None and self.grading is Grading.FULLY_GRADED:
            raise ValueError("what is fully graded has a score")


class Kind(StrEnum):
    """What became of a score."""

    TAKEN = "taken"
    STALE = "stale"  # the platform has one that is as late, or later: this one, if it was sent before
    LATER = "later"  # try again
    REFUSED = "refused"  # trying again will not help


@dataclass(frozen=True)
class Outcome:
    """What the platform did with a score. `status` is its HTTP status, None if it did not answer; `message` says in
    words what went wrong; `retry_after_seconds` is the wait it asked for; `of_all`: every other score for this platform
    would fare the same now.
    """

    kind: Kind
    status: int | None = None
    message: str = ""
    retry_after_seconds: float | None = None
    of_all: bool = False


def post_score(platform: Speaker, line_item_url: str, score: ScoreMessage) -> Outcome:
    """Send a score. Never raises for what the platform does: a timeout may mean that the score has arrived, and sending
    the same message again is harmless."""
    try:
        answer = platform.ask(
            "POST",
            scores_url(line_item_url),
            [SCORE],
            body=body(score),
            headers={"Content-Type": SCORE_TYPE},
        )
    except Away as error:
        kind = Kind.REFUSED if error.for_good else Kind.LATER
        wait = wait_asked_for(error.retry_after, time.time())
        return Outcome(kind, error.status, str(error), wait, of_all=not error.for_good)
    status = answer.status_code
    if 200 <= status < 300:
        return Outcome(Kind.TAKEN, status)
    message = wording.refused_us(status, answer.text)
    if status == 409:
        return Outcome(Kind.STALE, status, message)
    if status in (401, 408, 423, 425, 429) or status >= 500:
        wait = wait_asked_for(answer.headers.get("Retry-After", ""), time.time())
        return Outcome(Kind.LATER, status, message, wait, of_all=status in OF_ALL)
    return Outcome(Kind.REFUSED, status, message)


def create_line_item(platform: Speaker, line_items_url: str, column: LineItem) -> str:
    """Have the platform make a grade column; returns its address. Raises Away."""
    headers = {"Content-Type": LINE_ITEM_TYPE, "Accept": LINE_ITEM_TYPE}
    answer = platform.ask("POST", line_items_url, [LINE_ITEM], body=column.get_value(), headers=headers)
    if not answer.ok:
        raise Away(wording.refused_us(answer.status_code, answer.text), answer.status_code, for_good=True)
    with speaking():
        made = json.loads(answer.content)
    url = made.get("id") if isinstance(made, Mapping) else None
    if not isinstance(url, str) or len(url) > URL_CHARS:
        raise Away(wording.COLUMN_WITHOUT_ADDRESS, for_good=True)
    return checked(url)


def body(score: ScoreMessage) -> str:
    """The message as JSON. What a platform requires is always there: user, time, both kinds of progress."""
    made = (
        Grade()
        .set_user_id(score.user_id)
        .set_timestamp(rfc3339(score.timestamp))
        .set_activity_progress(score.activity.value)
        .set_grading_progress(score.grading.value)
    )
    if score.given is not None:
        made.set_score_given(score.given).set_score_maximum(score.maximum)
    if score.comment:
        made.set_comment(score.comment[:COMMENT_CHARS])
    canvas: dict[str, Any] = {"new_submission": score.new_submission}
    if score.submitted_at is not None:
        made.set_submitted_at(rfc3339(score.submitted_at))
        canvas["submitted_at"] = rfc3339(score.submitted_at)
    return made.set_extra_claims({CANVAS_SUBMISSION: canvas}).get_value()


def scores_url(line_item_url: str) -> str:
    """Where a line item takes scores: its own address and /scores, before any query."""
    parts = urlsplit(line_item_url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/scores", fragment=""))
