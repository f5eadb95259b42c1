"""A score goes in; it is sent to the line item of the platform it is for, and what came of it comes out."""

import threading

import sqlalchemy as sa

from service.database import writing
from service.lti import ags
from service.lti.ags import Activity, Grading, ScoreMessage
from service.lti.speaking import Session, Tokens, speaker
from service.outbound import Reach
from service.outbox import wording
from service.outbox.backoff import Kind, Outcome
from service.outbox.channels import Scores
from service.outbox.deliveries import Claimed
from service.outbox.score import Content

KINDS = {
    ags.Kind.TAKEN: Kind.ARRIVED,
    ags.Kind.STALE: Kind.STALE,
    ags.Kind.LATER: Kind.LATER,
    ags.Kind.REFUSED: Kind.REFUSED,
}


class Platforms(Scores):
    """Tells platforms of grades, each in a connection of its own thread's."""

    def __init__(self, engine: sa.Engine, reach: Reach) -> None:
        self._engine = engine
        self._reach = reach
        self._tokens = Tokens()
        self._mine = threading.local()

    def send(self, claimed: Claimed, now: float) -> Outcome:
        with writing(self._engine) as connection:
            platform = speaker(connection, claimed.delivery.target, now, self._session(), self._tokens)
        if platform is None:
            return Outcome(Kind.REFUSED, message=wording.PLATFORM_GONE)
        said = message(claimed.delivery.recipient, claimed.message)
        return of_answer(ags.post_score(platform, claimed.delivery.address, said))

    def _session(self) -> Session:
        if not hasattr(self._mine, "session"):
            self._mine.session = Session(self._reach)
        session: Session = self._mine.session
        return session


def message(recipient: str, said: Content) -> ScoreMessage:
    """The message as Assignment and Grade Services have it."""
    return ScoreMessage(
        user_id=recipient,
        timestamp=said["timestamp"],
        activity=Activity(said["activity"]),
        grading=Grading(said["grading"]),
        given=said.get("given"),
        maximum=said.get("maximum", 1.0),
        comment=said["comment"],
        submitted_at=said.get("submitted_at"),
        new_submission=said["new_submission"],
    )


def of_answer(answer: ags.Outcome) -> Outcome:
    """What a platform's answer means: without one, or with a failure of its own, the score may have arrived."""
    unclear = answer.status is None or answer.status >= 500
    return Outcome(
        KINDS[answer.kind],
        answer.status,
        answer.message,
        answer.retry_after_seconds,
        may_have_arrived=answer.kind is ags.Kind.LATER and unclear,
        of_all=answer.of_all,
    )
