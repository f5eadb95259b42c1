"""A course goes in; the page that shows what of its grades has been told to whom comes out, and sends it again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from service import links, offerings, views, walltime
from service.database import reading, writing
from service.dependencies import CourseId, RequestId, Served
from service.outbox import deliveries, wording
from service.outbox.changes import State
from service.outbox.deliveries import Delivery, Filter
from service.outbox.routes import Key, Name, key_of, resend
from service.views import Posted, Staff, Teaching, text

router = APIRouter(include_in_schema=False)

HERE = "/courses/{course}/deliveries"
ON_A_PAGE = 50
LATE_SECONDS = 120.0  # after which something that is due shows that nobody sends


@dataclass(frozen=True)
class Row:
    """A delivery as people read it. Times are as the course's clock shows them, '' for none."""

    id: str
    student: str
    unit: str
    receiver: str
    submission: str
    state: State
    says: str
    told: str
    delivered_at: str
    due_at: str
    error: str


@router.get(HERE)
def deliveries_page(
    request: Request,
    account: Staff,
    course: CourseId,
    service: Served,
    state: Annotated[str, Query(max_length=16)] = "",
    unit: Name = None,
    student: Name = None,
    before: Key = None,
    resent: Annotated[int | None, Query(ge=0, le=10**6)] = None,
) -> Response:
    chosen = State(state) if state in list(State) else None
    wanted = Filter(state=chosen, course=course, unit=unit or None, student=student or None)
    with reading(service.engine) as connection:
        offering = offerings.course_of(connection, course)
        found, last = deliveries.page(connection, wanted, ON_A_PAGE, key_of(before))
        counts = deliveries.counts(connection, Filter(course=course))
        due = deliveries.oldest_due(connection, service.clock())
    return views.page(
        request,
        service,
        "outbox/deliveries.html",
        account=account,
        course=course,
        rows=[_row(each, offering.timezone) for each in found],
        states=[(each, wording.STATES[each], counts.get(each, 0)) for each in State],
        chosen=chosen,
        unit=unit or "",
        student=student or "",
        units=list(service.course.units),
        failed=counts.get(State.FAILED, 0),
        silent=due is not None and due > LATE_SECONDS,
        zone=offering.timezone,
        notice=wording.sent_again(resent) if resent is not None else "",
        next=links.next_page(request, before=f"{last[0]!r}-{last[1]}" if last is not None else None),
    )


@router.post(HERE)
def resend_form(account: Teaching, course: CourseId, service: Served, form: Posted, request_id: RequestId) -> Response:
    one = text(form, "delivery")
    wanted = Filter(course=course) if one else Filter(course=course, state=State.FAILED)
    with writing(service.engine) as connection:
        found = resend(connection, account, course, wanted, [one] if one else None, request_id, service.clock())
    return views.redirect(f"/courses/{course}/deliveries?resent={len(found)}")


def _row(found: Delivery, zone: str) -> Row:
    def at(seconds: float | None) -> str:
        return walltime.said(walltime.show(seconds, zone), seconds=True) if seconds is not None else ""

    return Row(
        id=found.id,
        student=found.student,
        unit=found.unit,
        receiver=urlsplit(found.address).hostname or found.target,
        submission=found.submission or "",
        state=found.state,
        says=wording.STATES[found.state],
        told=_told(found.known),
        delivered_at=at(found.delivered_at),
        due_at=at(found.due_at) if found.state is State.WAITING else "",
        error=found.error,
    )


def _told(known: Mapping[str, Any]) -> str:
    """What arrived last, in a few words."""
    if "type" in known:
        return str(known["type"])
    if "given" in known:
        return wording.points(known["given"], known["maximum"])
    return wording.PROGRESS.get(str(known.get("grading", "")), "")
