"""A posted submission goes in; it is stored and enqueued, and its status, or the report waited for, comes out."""

import asyncio
import re
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from grader.report import Report
from grader.unit import Unit
from service import answers, limits, links, posted, runs, submissions, wording
from service.accounts import Account
from service.database import reading, writing
from service.dependencies import Caller, Served, Service, Wanted
from service.posted import NAME_CHARS
from service.problems import Problem, documented
from service.routes.submissions import Format, ReportFormat, report_answer, status_answer
from service.upload import Form, read_form

router = APIRouter()

FIRST_POLL_SECONDS = 0.05
LAST_POLL_SECONDS = 0.25

_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["tests"],
                    "properties": {
                        "tests": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                            "description": "one .zip or .tar.gz, or the test files themselves, repeated",
                        },
                        "student": {"type": "string", "maxLength": NAME_CHARS},
                        "course": {"type": "string", "default": "default"},
                    },
                    "additionalProperties": {
                        "type": "string",
                        "format": "binary",
                        "description": "each of the unit's files, in a field named by its stem (mha for mha.py)",
                    },
                }
            }
        },
    }
}


@router.post(
    "/v1/units/{unit}/submissions",
    summary="Submit a unit and its tests",
    tags=["submissions"],
    status_code=202,
    response_model=answers.SubmissionAnswer,
    responses={
        200: {"description": "The report, when it was ready within the wait", "model": Report},
        **documented(400, 401, 403, 404, 408, 413, 415, 422, 429),
    },
    openapi_extra=_FORM,
)
async def submit(
    request: Request,
    account: Caller,
    unit: Wanted,
    service: Served,
    wait: Annotated[float | None, Query(ge=0, description="seconds to wait for the report")] = None,
    format: ReportFormat = Format.JSON,
    prefer: Annotated[str | None, Header(description="wait=SECONDS, as ?wait=")] = None,
) -> Response:
    settings = service.settings
    form = await read_form(request, settings.max_body_bytes, settings.max_upload_seconds)
    stored = await run_in_threadpool(accept, service, account, unit, form, wording.curl(unit, str(request.base_url)))
    seconds = min(_wait_seconds(wait, prefer), settings.max_wait_seconds)
    applied = {"Preference-Applied": f"wait={seconds:g}"} if prefer and seconds else {}
    location = {"Location": links.to(f"/v1/submissions/{stored.id}")}
    if await _ended(request, service, stored.run, seconds):
        answer = await run_in_threadpool(report_answer, service, account, stored, format)
        answer.headers.update(location | applied)
        return answer
    answer = await run_in_threadpool(status_answer, service, stored)
    answer.status_code = 202
    answer.headers.update(location | applied)
    return answer


def accept(service: Service, account: Account, unit: Unit, form: Form, curl: str) -> submissions.Stored:
    """Take in, store and enqueue what was posted; raises Problem 403, 422 or 429, and then nothing is stored."""
    student = posted.student(account, form)
    course = posted.one_field(form, "course") or "default"
    now = service.clock()
    submission = posted.taken_in(unit, form, curl)
    with writing(service.engine) as connection:
        if not submissions.course_exists(connection, course):
            raise Problem(422, "course_unknown", wording.course_unknown(course))
        allowed = limits.check(
            connection,
            account,
            course=course,
            unit=unit.id,
            student=student,
            received_at=now,
            now=now,
            usual=limits.usual(service.settings),
        )
        return submissions.add(
            connection,
            service.queue,
            submission,
            course=course,
            student=student,
            token=account.id,
            now=now,
            counted=allowed.counted,
        )


def _wait_seconds(wait: float | None, prefer: str | None) -> float:
    if wait is not None:
        return wait
    found = re.search(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,6})", prefer or "", re.IGNORECASE)
    return float(found[1]) if found else 0.0


async def _ended(request: Request, service: Service, run_id: str, seconds: float) -> bool:
    """Wait up to `seconds` for the run's end, without holding a thread; gives up when the client is gone."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + seconds
    pause = FIRST_POLL_SECONDS
    while loop.time() < give_up_at:
        if await run_in_threadpool(_has_ended, service, run_id):
            return True
        if await request.is_disconnected():
            return False
        await asyncio.sleep(min(pause, max(0.0, give_up_at - loop.time())))
        pause = min(pause * 1.5, LAST_POLL_SECONDS)
    return False


def _has_ended(service: Service, run_id: str) -> bool:
    with reading(service.engine) as connection:
        run = runs.find(connection, run_id)
    return run is not None and run.status.ended
