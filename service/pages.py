"""The pages for people, without scripts: / says what this is, /units/UNIT what to build."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from grader.wording import NOT_OFFERED
from service import answers, schedules, wording
from service.dependencies import Served, Wanted
from service.routes import units
from service.routes.units import CourseAsked
from service.views import templates

router = APIRouter(include_in_schema=False)


@router.get("/", response_class=HTMLResponse)
def start(request: Request, service: Served) -> HTMLResponse:
    course = service.course
    first = next(iter(course.units.values()), None)
    page = templates.get_template("start.html").render(
        units=list(course.units.values()),
        curl=wording.curl(first, str(request.base_url)) if first else "",
        ol=wording.ol(first, str(request.base_url)) if first else "",
        not_yet=[each for each in course.listed if each.reason == NOT_OFFERED],
        elsewhere=[each for each in course.listed if each.reason != NOT_OFFERED],
        problems=course.problems,
    )
    return HTMLResponse(page)


@router.get("/units/{unit}", response_class=HTMLResponse)
def unit_page(
    request: Request, unit: Wanted, service: Served, course: CourseAsked = schedules.DEFAULT_COURSE
) -> HTMLResponse:
    standing = units.standing(service, None, unit, course)
    page = templates.get_template("unit.html").render(
        unit=answers.unit_answer(unit, service.settings.max_body_bytes, standing),
        curl=wording.curl(unit, str(request.base_url)),
        ol=wording.ol(unit, str(request.base_url)),
    )
    return HTMLResponse(page)
