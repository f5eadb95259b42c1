"""A unit's id goes in; what to build, how it is judged, and its public course tests come out."""

import io
import zipfile
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from grader.unit import Unit
from service import answers, limits, offerings, schedules, wording
from service.accounts import Account
from service.database import reading
from service.dependencies import KnownCaller, Served, Service, Wanted
from service.problems import Problem, documented

router = APIRouter()

CourseAsked = Annotated[str, Query(pattern=schedules.COURSE_ID, description="whose times and attempts are shown")]


@router.get("/v1/units", summary="The units of the course", tags=["units"])
def units(service: Served) -> answers.UnitList:
    course = service.course
    return answers.UnitList(
        units=tuple(answers.unit_summary(unit) for unit in course.units.values()),
        not_offered=tuple(
            answers.ListedUnitAnswer(unit=each.id, title=each.title, reason=each.reason) for each in course.listed
        ),
        problems=tuple(
            answers.UnitProblemAnswer(unit=p.unit, file=p.file, line=p.line, reason=p.reason) for p in course.problems
        ),
    )


@router.get(
    "/v1/units/{unit}",
    summary="What to build for a unit, and how it is judged",
    tags=["units"],
    responses=documented(401, 404, 422),
)
def unit(
    account: KnownCaller,
    unit: Wanted,
    service: Served,
    course: CourseAsked = schedules.DEFAULT_COURSE,
) -> answers.UnitAnswer:
    return answers.unit_answer(unit, service.settings.max_body_bytes, standing(service, account, unit, course))


def standing(service: Service, account: Account | None, unit: Unit, course: str) -> schedules.StandingAnswer:
    """When and how often the caller may submit the unit in the course; raises Problem 422 without such a course."""
    within = account.within(course) if account is not None else None
    now, student = service.clock(), within.student if within is not None else None
    with reading(service.engine) as connection:
        offering = offerings.find(connection, course)
        if offering is None:
            raise Problem(422, "course_unknown", wording.offering_unknown(course))
        found = limits.standing(connection, course, unit.id, student, now, limits.usual(service.settings))
    return schedules.shown_standing(offering, found, now)


@router.get(
    "/v1/units/{unit}/course-tests",
    summary="The unit's course tests and fixtures, as a zip",
    tags=["units"],
    response_class=Response,
    responses={
        200: {
            "description": "A zip archive",
            "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
        },
        **documented(404),
    },
)
def course_tests(unit: Wanted) -> Response:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder, found in (("tests", unit.test_files), ("fixtures", unit.fixtures)):
            for file in found:
                archive.writestr(zipfile.ZipInfo(f"{folder}/{file.path}"), file.data, zipfile.ZIP_DEFLATED)
    disposition = f'attachment; filename="{unit.id}-course-tests.zip"'
    return Response(packed.getvalue(), media_type="application/zip", headers={"Content-Disposition": disposition})
