"""A unit of a course goes in; the page of the grades that were set by hand comes out, on which a teacher sets them."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from service import offerings, overrides, views, walltime, wording
from service.accounts import Account
from service.database import reading, writing
from service.dependencies import CourseId, RequestId, Served, Service, Wanted
from service.offerings import By
from service.overrides import Override
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
        offerings.course_of(connection, course)
        wanted = Override(student, body.score, body.reason, account.id, now)
        overrides.put(connection, course, unit.id, wanted, by)
    return views.redirect(f"/courses/{course}/units/{unit.id}/by-hand")


def _by_hand(
    request: Request, account: Account, course: str, unit: str, service: Service, error: str = "", status: int = 200
) -> Response:
    with reading(service.engine) as connection:
        offering = offerings.course_of(connection, course)
        found = overrides.of_unit(connection, course, unit)
    return views.page(
        request,
        service,
        "by_hand.html",
        account=account,
        status=status,
        offering=offering,
        unit=service.course.units[unit],
        found=list(found.values()),
        error=error,
        student=request.query_params.get("student", "")[:128],
        time=lambda seconds: walltime.show(seconds, offering.timezone),
    )
