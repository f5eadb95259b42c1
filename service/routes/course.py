"""A wish to have the course's files read again goes in; what that changed comes out. For administrators."""

from dataclasses import replace
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from grader.unit import Course
from grader.units import load_course
from service import answers, course_loads, views, wording
from service.accounts import Account
from service.audit import By
from service.course_loads import Difference
from service.database import writing
from service.dependencies import Administrator, RequestId, Served, Service
from service.problems import Problem, documented
from service.regrading.answers import ChangeAnswer
from service.views import Administering

router = APIRouter(tags=["class"])
page = APIRouter(include_in_schema=False)

PAGE = "/course-files"


class UnitChange(BaseModel):
    model_config = ConfigDict(frozen=True)

    unit: str
    how: Literal["added", "removed", "changed"]
    parts: tuple[ChangeAnswer, ...] = Field(description="of a unit that was changed")


class ReloadAnswer(BaseModel):
    """What having the course's files read again changed. Workers grade by it as soon as they have started anew."""

    model_config = ConfigDict(frozen=True)

    digest: str
    changed: tuple[UnitChange, ...]
    problems: tuple[answers.UnitProblemAnswer, ...] = Field(description="units that could not be loaded")


@router.post(
    "/v1/course/reload",
    summary="Read the course's files again, for administrators",
    responses=documented(401, 403, 409),
)
def reload(account: Administrator, request: Request, service: Served, request_id: RequestId) -> ReloadAnswer:
    course, found = _reload(request, service, By(account, service.clock(), request_id))
    return ReloadAnswer(
        digest=course.digest,
        changed=tuple(
            UnitChange.model_validate(
                {"unit": each.unit, "how": each.how, "parts": [vars(change) for change in each.changes]}
            )
            for each in found
        ),
        problems=tuple(
            answers.UnitProblemAnswer(unit=p.unit, file=p.file, line=p.line, reason=p.reason) for p in course.problems
        ),
    )


def _reload(request: Request, service: Service, by: By) -> tuple[Course, tuple[Difference, ...]]:
    """Raises Problem 409 for files that cannot be used."""
    try:
        course = load_course(service.settings.course)
        found = course_loads.differences(service.course, course)
    except OSError as error:
        raise Problem(409, "course_unusable", wording.course_unreadable(str(error))) from error
    except course_loads.Unusable as error:
        raise Problem(409, "course_unusable", wording.course_unusable(error.problems)) from error
    if course.digest != service.course.digest:
        with writing(service.engine) as connection:
            course_loads.note(connection, course, found, by)
        request.app.state.service = replace(service, course=course)
    return course, found


# -- the page --------------------------------------------------------------------------------------------------------


@page.get(PAGE)
def course_page(request: Request, account: Administering, service: Served) -> Response:
    return _page(request, account, service)


@page.post(PAGE)
def reload_page(request: Request, account: Administering, service: Served, request_id: RequestId) -> Response:
    try:
        course, found = _reload(request, service, By(account, service.clock(), request_id))
    except Problem as problem:
        return _page(request, account, service, error=problem.message, status=problem.status)
    return _page(request, account, replace(service, course=course), found=found)


def _page(
    request: Request,
    account: Account,
    service: Service,
    *,
    found: tuple[Difference, ...] | None = None,
    error: str = "",
    status: int = 200,
) -> Response:
    return views.page(
        request,
        service,
        "course_files.html",
        account=account,
        status=status,
        folder=service.settings.course,
        units=list(service.course.units.values()),
        problems=service.course.problems,
        found=found,
        error=error,
    )
