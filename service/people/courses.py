"""A person goes in; the page of their courses comes out, and of each course what it asks of its units."""

import sqlalchemy as sa
from fastapi import APIRouter, Request
from fastapi.responses import Response

from service import offerings, schedules, views, wording
from service.accounts import Role
from service.database import reading
from service.dependencies import Served
from service.offerings import Assignment, Offering
from service.people import members
from service.problems import Problem
from service.views import Person, PersonIn

router = APIRouter(include_in_schema=False)


@router.get("/courses")
def courses_page(request: Request, service: Served, account: Person) -> Response:
    with reading(service.engine) as connection:
        parts = members.of_user(connection, account.user or "")
        offered = offerings.all_offerings(connection) if account.role is Role.ADMIN else []
    mine = {part.course for part in parts}
    others = [each for each in offered if each.id not in mine]
    return views.page(request, service, "people/courses.html", account=account, parts=parts, others=others)


@router.get("/courses/{course}")
def course_page(request: Request, service: Served, account: PersonIn, course: str) -> Response:
    with reading(service.engine) as connection:
        found = offering(connection, course)
        asked = offerings.assignments(connection, course)
    units = [
        (unit, schedules.shown_assignment(found, unit.id, asked.get(unit.id, Assignment())))
        for unit in service.course.units.values()
    ]
    return views.page(request, service, "people/course.html", account=account, offering=found, units=units)


def offering(connection: sa.Connection, course: str) -> Offering:
    """The course of the path; raises Problem 404."""
    found = offerings.find(connection, course)
    if found is None:
        raise Problem(404, "course_unknown", wording.offering_unknown(course))
    return found
