"""A unit of a course goes in; the page of the grades that were set by hand comes out, on which a teacher sets them."""

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.datastructures import FormData

from service import offerings, overrides, views, walltime, wording
from service.accounts import Account
from service.audit import By
from service.database import reading, writing
from service.dependencies import CourseId, RequestId, Served, Service, Wanted
from service.overrides import Override
from service.posted import NAME_CHARS
from service.routes.overrides import OverrideBody
from service.views import Posted, Staff, Teaching, text

router = APIRouter(include_in_schema=False)

BY_HAND = "/courses/{course}/units/{unit}/by-hand"


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
    if not decide(service, account, course, unit.id, text(form, "student"), form, request_id):
        return _by_hand(request, account, course, unit.id, service, wording.OVERRIDE_INCOMPLETE, 422)
    return views.redirect(f"/courses/{course}/units/{unit.id}/by-hand")


def decide(
    service: Service, account: Account, course: str, unit: str, student: str, form: FormData, request_id: str
) -> bool:
    """Set the student's grade as the form says, in percent, or take it away; False if the form lacks something.

    Raises Problem 404 without such a course.
    """
    now = service.clock()
    by = By(account, now, request_id)
    if text(form, "do") == "withdraw":
        with writing(service.engine) as connection:
            overrides.withdraw(connection, course, unit, student, by)
        return True
    try:
        percent = float(text(form, "percent").replace(",", "."))
        body = OverrideBody(score=percent / 100, reason=text(form, "reason"))
    except ValueError:  # also of pydantic
        return False
    if not student or len(student) > NAME_CHARS or not student.isprintable():
        return False
    with writing(service.engine) as connection:
        offerings.course_of(connection, course)
        overrides.put(connection, course, unit, Override(student, body.score, body.reason, account.id, now), by)
    return True


def _by_hand(
    request: Request, account: Account, course: str, unit: str, service: Service, error: str = "", status: int = 200
) -> Response:
    with reading(service.engine) as connection:
        offering = offerings.course_of(connection, course)
        found = overrides.of_unit(connection, course, unit)
    return views.page(
        request,
        service,
        "dashboard/by_hand.html",
        account=account,
        status=status,
        offering=offering,
        unit=service.course.units[unit],
        found=list(found.values()),
        error=error,
        student=request.query_params.get("student", "")[:NAME_CHARS],
        time=lambda seconds: walltime.show(seconds, offering.timezone),
    )
