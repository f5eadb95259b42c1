"""A course goes in; what of its grades has been told to whom comes out, and is sent again. A platform's token goes in;
the secret that signs its callbacks comes out.

The staff of a course see all of it, a learning platform its own callbacks.
"""

from datetime import datetime
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from service import links
from service.accounts import Account, Role
from service.answers import moment
from service.audit import By
from service.database import reading, writing
from service.dependencies import Caller, ClassEditor, CourseId, RequestId, Served, StandingIn, reader
from service.outbox import deliveries, signing, webhook, wording
from service.outbox.changes import Channel, State
from service.outbox.deliveries import Delivery, Filter
from service.posted import NAME_CHARS, STORABLE
from service.problems import Problem, documented

router = APIRouter(tags=["deliveries"])

HERE = "/v1/courses/{course}/deliveries"
SECRET = "/v1/callback-secret"
MOST = 500  # on a page

Name = Annotated[str | None, Query(max_length=NAME_CHARS, pattern=STORABLE)]
DeliveryId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]
Key = Annotated[
    str | None, Query(pattern=r"^[0-9]{1,12}(\.[0-9]{1,9})?-[0-9a-f]{32}$", description="of the page before")
]

_EXAMPLE: dict[str, Any] = {
    "id": "6f1c2b9d0c6c4c6f8f6e0c1f6d1b2a3c",
    "channel": "ags",
    "target": "platform-1",
    "address": "https://lms.example/api/lti/courses/1/line_items/2",
    "course": "default",
    "unit": "L5.3",
    "student": "ada",
    "submission": None,
    "state": "delivered",
    "attempts": 1,
    "due_at": None,
    "failing_since": None,
    "delivered_at": "2026-03-01T12:00:00Z",
    "changed_at": "2026-03-01T11:59:58Z",
    "status_code": 200,
    "error": "",
    "told": {"activity": "Completed", "grading": "FullyGraded", "given": 100.0, "maximum": 100.0},
}


class DeliveryAnswer(BaseModel):
    """What one receiver is told of one student. Times are UTC."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_EXAMPLE]})

    id: str
    channel: Channel
    target: str = Field(description="the platform's id, or that of the token that asked to be called back")
    address: str
    course: str
    unit: str
    student: str
    submission: str | None = Field(description="whose end is told; null: the grade is, whatever it comes from")
    state: State = Field(description="idle: nothing to tell yet; failed: given up, until it changes or is sent again")
    attempts: int = Field(description="since it arrived or changed")
    due_at: datetime | None = Field(description="of the next attempt, while it waits")
    failing_since: datetime | None
    delivered_at: datetime | None
    changed_at: datetime
    status_code: int | None = Field(description="of the last answer")
    error: str = Field(description="what went wrong the last time, '' if nothing did")
    told: dict[str, Any] = Field(description="what is known to have arrived last")


class DeliveryPage(BaseModel):
    model_config = ConfigDict(frozen=True)

    deliveries: tuple[DeliveryAnswer, ...]
    counts: dict[State, int] = Field(description="of all that fits, by state")
    next: str | None = Field(description="the next page; null on the last one")


class ResendBody(BaseModel):
    """What to send again: all that fits every member that is given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: State = State.FAILED
    channel: Channel | None = None
    unit: Annotated[str | None, Field(max_length=64, pattern=STORABLE)] = None
    student: Annotated[str | None, Field(max_length=NAME_CHARS, pattern=STORABLE)] = None


class Resent(BaseModel):
    model_config = ConfigDict(frozen=True)

    count: int


class CallbackSecret(BaseModel):
    """What messages to this token's callbacks are signed with."""

    model_config = ConfigDict(frozen=True)

    secret: str = Field(description="as the libraries of Standard Webhooks take it")
    before: str | None = Field(description="the one before, which signs as well for a day after it was replaced")


@router.get(
    HERE, summary="What has been told of a course's grades, and to whom", responses=documented(401, 403, 404, 422)
)
def deliveries_of_course(
    request: Request,
    account: StandingIn,
    course: CourseId,
    service: Served,
    channel: Channel | None = None,
    state: State | None = None,
    unit: Name = None,
    student: Name = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 50,
    before: Key = None,
) -> DeliveryPage:
    wanted = Filter(channel, state, course, unit, student, _target(account))
    with reading(service.engine) as connection:
        found, last = deliveries.page(connection, wanted, limit, key_of(before))
        counts = deliveries.counts(connection, wanted)
    return DeliveryPage(
        deliveries=tuple(map(shown, found)),
        counts=counts,
        next=links.next_page(request, before=f"{last[0]!r}-{last[1]}" if last is not None else None),
    )


def _target(account: Account) -> str | None:
    """Whose deliveries the account sees: a platform's own, or everybody's; raises Problem 403."""
    if account.role is Role.LMS:
        return account.id
    reader(account)
    return None


def key_of(text: str | None) -> tuple[float, str] | None:
    """The row behind which a page begins."""
    if text is None:
        return None
    changed_at, _, delivery_id = text.partition("-")
    return float(changed_at), delivery_id


@router.post(
    HERE + "/resend",
    summary="Tell again what was given up, or whatever else fits",
    responses=documented(401, 403, 404, 422),
)
def resend_all(
    account: ClassEditor, course: CourseId, body: ResendBody, service: Served, request_id: RequestId
) -> Resent:
    wanted = Filter(body.channel, body.state, course, body.unit, body.student)
    with writing(service.engine) as connection:
        return Resent(count=len(resend(connection, account, course, wanted, None, request_id, service.clock())))


@router.post(
    HERE + "/{delivery}/resend",
    summary="Tell one receiver again, even if it has arrived",
    responses=documented(401, 403, 404, 422),
)
def resend_one(
    account: ClassEditor, course: CourseId, delivery: DeliveryId, service: Served, request_id: RequestId
) -> DeliveryAnswer:
    with writing(service.engine) as connection:
        resend(connection, account, course, Filter(course=course), [delivery], request_id, service.clock())
        found = deliveries.find(connection, delivery)
    if found is None or found.course != course:
        raise Problem(404, "delivery_unknown", wording.DELIVERY_UNKNOWN)
    return shown(found)


def resend(
    connection: sa.Connection,
    who: Account,
    course: str,
    wanted: Filter,
    ids: list[str] | None,
    request_id: str,
    now: float,
) -> list[Delivery]:
    """Send again what fits, and note who wanted it."""
    found = deliveries.resend(connection, wanted, ids, now)
    if found:
        deliveries.note_resend(connection, found, By(who, now, request_id), course=course)
    return found


@router.get(SECRET, summary="What a learning platform's callbacks are signed with", responses=documented(401, 403))
def callback_secret(account: Caller, service: Served) -> CallbackSecret:
    _platform(account)
    with writing(service.engine) as connection:
        return _secret(signing.secrets_of(connection, account.id, service.clock()))


@router.post(SECRET, summary="Replace it; the one before signs as well for a day", responses=documented(401, 403))
def replace_callback_secret(account: Caller, service: Served, request_id: RequestId) -> CallbackSecret:
    _platform(account)
    now = service.clock()
    with writing(service.engine) as connection:
        found = signing.replace(connection, account.id, now)
        deliveries.note_secret(connection, By(account, now, request_id))
        return _secret(found)


def _platform(account: Account) -> None:
    if account.role is not Role.LMS:
        raise Problem(403, "role_missing", wording.callback_of_role(account.role))


def _secret(secrets: list[bytes]) -> CallbackSecret:
    shown = [webhook.shown_secret(secret) for secret in secrets]
    return CallbackSecret(secret=shown[0], before=shown[1] if len(shown) > 1 else None)


def shown(found: Delivery) -> DeliveryAnswer:
    return DeliveryAnswer(
        id=found.id,
        channel=found.channel,
        target=found.target,
        address=found.address,
        course=found.course,
        unit=found.unit,
        student=found.student,
        submission=found.submission,
        state=found.state,
        attempts=found.attempts,
        due_at=moment(found.due_at) if found.state is State.WAITING else None,
        failing_since=_moment(found.failing_since),
        delivered_at=_moment(found.delivered_at),
        changed_at=moment(found.changed_at),
        status_code=found.status_code,
        error=found.error,
        told={name: value for name, value in found.known.items() if name != deliveries.AGAIN},
    )


def _moment(seconds: float | None) -> datetime | None:
    return moment(seconds) if seconds is not None else None
