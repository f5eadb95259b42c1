"""A delivery and its message go in; the message is sent once, and what came of it comes out.

What each channel has to tell is looked up here, when it is about to be told.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import httpcore
import sqlalchemy as sa

from grader.report import Verdict
from service import grades, submissions
from service.database import writing
from service.grades import Grade
from service.instants import wait_asked_for
from service.outbound import Answer, Outbound, Unreachable
from service.outbox import score, signing, webhook, wording
from service.outbox.backoff import Kind, Outcome
from service.outbox.deliveries import Claimed, Delivery, Telling
from service.outbox.score import Content
from service.outbox.webhook import Ended
from service.runs import Status
from service.tables import results, runs, tokens
from service.tables import submissions as submission_rows

log = logging.getLogger(__name__)

OF_ALL = (401, 403, 429, 502, 503, 504)  # answers that everything else sent there would get as well


class Sending(Telling, Protocol):
    """A channel: what it says, and how that is sent. `send` never raises for what the receiver does."""

    def send(self, claimed: Claimed, now: float) -> Outcome: ...


class Scores:
    """What platforms are told: the grade, whatever it comes from."""

    def content(self, connection: sa.Connection, delivery: Delivery) -> Content | None:
        grade = grade_of(connection, delivery)
        failed = (grade is None or grade.graded is None) and _last_failed(connection, delivery)
        return score.content(grade, failed, delivery.known)

    def stamped(self, content: Content, told: Content, stamp: float) -> Content:
        return score.stamped(content, told, stamp)


class Webhooks:
    """Calls back whoever posted a submission, with a message signed for that token."""

    def __init__(self, engine: sa.Engine, outbound: Outbound) -> None:
        self._engine = engine
        self._outbound = outbound

    def content(self, connection: sa.Connection, delivery: Delivery) -> Content | None:
        ended = _ended(connection, delivery.submission or "")
        return webhook.content(ended, grade_of(connection, delivery)) if ended is not None else None

    def stamped(self, content: Content, told: Content, stamp: float) -> Content:
        return webhook.stamped(content, told, stamp)

    def send(self, claimed: Claimed, now: float) -> Outcome:
        delivery = claimed.delivery
        with writing(self._engine) as connection:
            query = sa.select(tokens.c.revoked_at).where(tokens.c.id == delivery.target)
            if connection.execute(query).scalar_one_or_none() is not None:
                return Outcome(Kind.REFUSED, message=wording.TOKEN_REVOKED)
            secrets = signing.secrets_of(connection, delivery.target, now)
        body, headers = webhook.signed(claimed.message, claimed.message_id, secrets, now)
        try:
            return of_answer(self._outbound.post(delivery.address, body, headers), now)
        except Unreachable as error:
            return Outcome(Kind.LATER, message=str(error), of_all=True)
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            said = wording.not_reached(f"{type(error).__name__} {error}".strip())
            return Outcome(Kind.LATER, message=said, may_have_arrived=True, of_all=True)


def of_answer(answer: Answer, now: float) -> Outcome:
    """What a receiver's answer means: whoever wants no more of them says 410."""
    status = answer.status
    if 200 <= status < 300:
        return Outcome(Kind.ARRIVED, status)
    said = wording.REDIRECTS if 300 <= status < 400 else wording.answered(status)
    if status == 410:
        return Outcome(Kind.REFUSED, status, said)
    return Outcome(
        Kind.LATER,
        status,
        said,
        wait_asked_for(answer.retry_after, now),
        may_have_arrived=status >= 500,
        of_all=status in OF_ALL,
    )


@dataclass
class FakeChannel:
    """Remembers what it was to send, and answers from a function: for tests of what builds on channels."""

    telling: Telling
    answer: Callable[[Claimed], Outcome]

    def content(self, connection: sa.Connection, delivery: Delivery) -> Content | None:
        return self.telling.content(connection, delivery)

    def stamped(self, content: Content, told: Content, stamp: float) -> Content:
        return self.telling.stamped(content, told, stamp)

    def send(self, claimed: Claimed, now: float) -> Outcome:
        return self.answer(claimed)


# -- what is looked up -----------------------------------------------------------------------------------------------


def grade_of(connection: sa.Connection, delivery: Delivery) -> Grade | None:
    """The student's grade for the unit, as the course counts."""
    found = grades.of_student(connection, delivery.course, delivery.student, None)
    return next((grade for grade in found if grade.unit == delivery.unit), None)


def _last_failed(connection: sa.Connection, delivery: Delivery) -> bool:
    """Whether the last submission failed on our side."""
    query = (
        sa.select(runs.c.status)
        .select_from(submission_rows.join(runs, runs.c.id == submission_rows.c.run))
        .where(
            submission_rows.c.course == delivery.course,
            submission_rows.c.unit == delivery.unit,
            submission_rows.c.student == delivery.student,
        )
        .order_by(submission_rows.c.received_at.desc(), submission_rows.c.id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none() == Status.ERROR.value


def _ended(connection: sa.Connection, submission: str) -> Ended | None:
    stored = submissions.find(connection, submission)
    if stored is None:
        return None
    query = (
        sa.select(runs.c.status, results.c.verdict, results.c.score)
        .select_from(runs.outerjoin(results, results.c.run == runs.c.id))
        .where(runs.c.id == stored.run)
    )
    row = connection.execute(query).one()
    verdict = Verdict(row.verdict) if row.verdict is not None else None
    return Ended(stored, Status(row.status), verdict, row.score)
