"""A unit of a course goes in; the page on which a teacher says how much students are told of it comes out, and the page
of the grades that were set by hand.
"""

from dataclasses import replace

import sqlalchemy as sa
from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import ValidationError

from grader.report import Level
from service import offerings, overrides, schedules, views, walltime, wording
from service.accounts import Account
from service.database import reading, writing
from service.dependencies import CourseId, RequestId, Served, Service, Wanted
from service.offerings import Assignment, By, Feedback, Offering
from service.overrides import Override
from service.problems import Problem
from service.routes.overrides import OverrideBody
from service.views import Posted, Staff, Teaching, text

router = APIRouter(include_in_schema=False)

UNIT = "/courses/{course}/units/{unit}"
FEEDBACK = UNIT + "/feedback"
BY_HAND = UNIT + "/by-hand"


def _offering(connection: sa.Connection, course: str) -> Offering:
    found = offerings.find(connection, course)
    if found is None:
        raise Problem(404, "course_unknown", wording.offering_unknown(course))
    return found


# -- how much students are told --------------------------------------------------------------------------------------


@router.get(FEEDBACK)
def feedback_page(request: Request, account: Staff, course: CourseId, unit: Wanted, service: Served) -> Response:
    with reading(service.engine) as connection:
        offering = _offering(connection, course)
        asked = offerings.assignment(connection, course, unit.id) or Assignment()
    return views.page(
        request,
        service,
        "grading/feedback.html",
        account=account,
        offering=offering,
        unit=unit,
        told=asked.feedback,
        attempts=asked.attempts,
        levels=wording.LEVELS,
        moments=wording.MOMENTS,
        saved=request.query_params.get("saved") == "1",
    )


@router.post(FEEDBACK)
def put_feedback(
    account: Teaching, course: CourseId, unit: Wanted, service: Served, form: Posted, request_id: RequestId
) -> Response:
    wanted = _feedback({name: text(form, name) or None for name in Feedback.__dataclass_fields__})
    with writing(service.engine) as connection:
        _offering(connection, course)
        asked = offerings.assignment(connection, course, unit.id) or Assignment()
        by = By(account, service.clock(), request_id)
        offerings.put_assignment(connection, course, unit.id, replace(asked, feedback=wanted), by)
    return views.redirect(f"/courses/{course}/units/{unit.id}/feedback?saved=1")


def _feedback(sent: dict[str, str | None]) -> Feedback:
    try:
        body = schedules.FeedbackBody.model_validate({**sent, "normal": sent["normal"] or Level.HINTS})
    except ValidationError as error:
        raise Problem(422, "invalid_request", wording.FEEDBACK_UNREADABLE) from error
    return Feedback(**dict(body))


# -- grades set by hand ----------------------------------------------------------------------------------------------


@router.get(BY_HAND)
def by_hand_page(request: Request, account: Staff, course: CourseId, unit: Wanted, service: Served) -> Response:
    return _by_hand(request, account, course, unit.id, service)


@router.post(BY_HAND)
def put_by_hand(
    request: Request,
    account: Teaching,
    course: CourseId,
    unit: Wanted,
    service: Served,
    form: Posted,
    request_id: RequestId,
) -> Response:
    """Set the grade of the student that the form names, or take it away."""
    student, now = text(form, "student"), service.clock()
    by = By(account, now, request_id)
    if text(form, "do") == "withdraw":
        with writing(service.engine) as connection:
            overrides.withdraw(connection, course, unit.id, student, by)
        return views.redirect(f"/courses/{course}/units/{unit.id}/by-hand")
    try:
        percent = float(text(form, "percent").replace(",", "."))
        body = OverrideBody(score=percent / 100, reason=text(form, "reason"))
    except ValueError:  # also of pydantic
        body = None
    if body is None or not student or len(student) > 128 or not student.isprintable():
        return _by_hand(request, account, course, unit.id, service, wording.OVERRIDE_INCOMPLETE, 422)
    with writing(service.engine) as connection:
        _offering(connection, course)
        wanted = Override(student, body.score, body.reason, account.id, now)
        overrides.put(connection, course, unit.id, wanted, by)
    return views.redirect(f"/courses/{course}/units/{unit.id}/by-hand")


def _by_hand(
    request: Request, account: Account, course: str, unit: str, service: Service, error: str = "", status: int = 200
) -> Response:
    with reading(service.engine) as connection:
        offering = _offering(connection, course)
        found = overrides.of_unit(connection, course, unit)
    return views.page(
        request,
        service,
        "grading/by_hand.html",
        account=account,
        status=status,
        offering=offering,
        unit=service.course.units[unit],
        found=list(found.values()),
        error=error,
        student=request.query_params.get("student", "")[:128],
        time=lambda seconds: walltime.show(seconds, offering.timezone),
    )
