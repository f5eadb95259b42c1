"""The routes under /v1 and the health checks: a request goes in, JSON, a report or a problem comes out."""

import asyncio
import io
import re
import zipfile
from enum import StrEnum
from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool

from grader.errors import Rejected
from grader.intake import take_in
from grader.report import Report, Verdict
from grader.submission import Submission
from grader.text import render
from grader.unit import Unit
from grader.views import for_role
from service import answers, listing, runs, submissions, wording
from service.accounts import Account
from service.database import reading, writing
from service.dependencies import Caller, Served, Service, Teacher, Visible, Wanted
from service.problems import Problem, documented
from service.upload import Form, read_form

router = APIRouter()

RETRY_SECONDS = 2
FIRST_POLL_SECONDS = 0.05
LAST_POLL_SECONDS = 0.25
NAME_CHARS = 128
STORABLE = r"^[^\x00]*$"  # PostgreSQL refuses to compare a NUL


class Format(StrEnum):
    JSON = "json"
    TEXT = "text"


ReportFormat = Annotated[Format, Query(description="of the report")]


# -- submitting ------------------------------------------------------------------------------------------------------

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
        **documented(400, 401, 403, 404, 408, 413, 415, 422),
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
    location = {"Location": f"/v1/submissions/{stored.id}"}
    if await _ended(request, service, stored.run, seconds):
        answer = await run_in_threadpool(report_answer, service, account, stored, format)
        answer.headers.update(location | applied)
        return answer
    answer = await run_in_threadpool(status_answer, service, stored)
    answer.status_code = 202
    answer.headers.update(location | applied)
    return answer


def accept(service: Service, account: Account, unit: Unit, form: Form, curl: str) -> submissions.Stored:
    """Take in, store and enqueue what was posted; raises Problem 403 or 422, and then nothing is stored."""
    student = _student(account, form)
    course = _one_field(form, "course") or "default"
    submission = _taken_in(unit, form, curl)
    with writing(service.engine) as connection:
        if not submissions.course_exists(connection, course):
            raise Problem(422, "course_unknown", wording.course_unknown(course))
        return submissions.add(
            connection,
            service.queue,
            submission,
            course=course,
            student=student,
            token=account.id,
            now=service.clock(),
        )


def _student(account: Account, form: Form) -> str | None:
    named = _one_field(form, "student") or None
    if account.names_students:
        return named
    if named not in (None, account.student):
        raise Problem(403, "student_mismatch", wording.STUDENT_MISMATCH)
    return account.student


def _one_field(form: Form, name: str) -> str:
    """The field's only value, '' without one; raises Problem 422 for a file, several values or odd characters."""
    if name in form.files:
        raise Problem(422, "field_is_file", wording.field_is_file(name))
    values = form.fields.get(name, ())
    if len(values) > 1:
        raise Problem(422, "repeated_field", wording.field_repeated(name))
    value = values[0].strip() if values else ""
    if len(value) > NAME_CHARS or not value.isprintable():
        raise Problem(422, "invalid_field", wording.field_invalid(name, NAME_CHARS))
    return value


def _taken_in(unit: Unit, form: Form, curl: str) -> Submission:
    stems = [file.stem for file in unit.files]
    for name in (*stems, "tests"):
        if name in form.fields:
            raise Problem(422, "file_as_text", wording.file_as_text(name), curl=curl)
    missing = [name for name in (*stems, "tests") if not form.files.get(name)]
    if missing:
        code = "no_tests_sent" if missing == ["tests"] else "missing_file"  # as intake names them
        raise Problem(422, code, wording.file_missing(missing, curl), curl=curl)
    unknown = set(form.files) - {*stems, "tests"} | set(form.fields) - {"student", "course"}
    if unknown:
        raise Problem(422, "unknown_field", wording.field_unknown(sorted(unknown), curl), curl=curl)
    for stem in stems:
        if len(form.files[stem]) > 1:
            raise Problem(422, "repeated_field", wording.field_repeated(stem), curl=curl)
    try:
        return take_in(unit, {stem: form.files[stem][0] for stem in stems}, form.files["tests"])
    except Rejected as error:
        raise Problem(422, error.code, error.message, path=error.path) from error


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


# -- one submission ------------------------------------------------------------------------------------------------


@router.get(
    "/v1/submissions/{submission_id}",
    summary="Where a submission stands",
    tags=["submissions"],
    response_model=answers.SubmissionAnswer,
    responses=documented(401, 404),
)
def status(stored: Visible, service: Served) -> Response:
    return status_answer(service, stored)


def status_answer(service: Service, stored: submissions.Stored) -> JSONResponse:
    now = service.clock()
    with reading(service.engine) as connection:
        run = _run(connection, stored)
        place = runs.position(connection, run)
        seconds = runs.estimate_seconds(connection, run, place, now)
    answer = answers.submission(stored, run, place, seconds)
    headers = {} if run.status.ended else {"Retry-After": str(RETRY_SECONDS)}
    return JSONResponse(answer.model_dump(mode="json"), headers=headers)


def _run(connection: sa.Connection, stored: submissions.Stored) -> runs.RunState:
    run = runs.find(connection, stored.run)
    if run is None:
        raise LookupError(f"submission {stored.id} has no run {stored.run}")
    return run


@router.get(
    "/v1/submissions/{submission_id}/report",
    summary="The report of a submission",
    tags=["submissions"],
    response_model=Report,
    responses={
        200: {
            "description": "The report, as the caller may see it",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
        **documented(401, 404, 409, 422),
    },
)
def report(account: Caller, stored: Visible, service: Served, format: ReportFormat = Format.JSON) -> Response:
    return report_answer(service, account, stored, format)


def report_answer(service: Service, account: Account, stored: submissions.Stored, format: Format) -> Response:
    with reading(service.engine) as connection:
        run = _run(connection, stored)
        found = runs.report(connection, stored.run)
    if found is None:
        headers = {} if run.status.ended else {"Retry-After": str(RETRY_SECONDS)}
        raise Problem(409, "report_not_ready", wording.report_not_ready(run.status), headers=headers)
    seen = for_role(found, account.role.value)
    if format is Format.TEXT:
        return PlainTextResponse(render(seen))
    return Response(seen.to_json(), media_type="application/json")


@router.delete(
    "/v1/submissions/{submission_id}",
    summary="Cancel a submission that waits",
    tags=["submissions"],
    response_model=answers.SubmissionAnswer,
    responses=documented(401, 404, 409),
)
def cancel(stored: Visible, service: Served) -> Response:
    with writing(service.engine) as connection:
        cancelled = runs.cancel(connection, stored.run, service.clock())
        run = _run(connection, stored)
    if cancelled:
        service.queue.cancel(stored.run)
    elif run.status is not runs.Status.CANCELLED:
        raise Problem(409, "not_waiting", wording.not_waiting(run.status))
    return status_answer(service, stored)


# -- units ---------------------------------------------------------------------------------------------------------


@router.get("/v1/units", summary="The units of the course", tags=["units"])
def units(service: Served) -> answers.UnitList:
    course = service.course
    return answers.UnitList(
        units=tuple(answers.unit_summary(unit) for unit in course.units.values()),
        problems=tuple(
            answers.UnitProblemAnswer(unit=p.unit, file=p.file, line=p.line, reason=p.reason) for p in course.problems
        ),
    )


@router.get(
    "/v1/units/{unit}",
    summary="What to build for a unit, and how it is judged",
    tags=["units"],
    responses=documented(404),
)
def unit(unit: Wanted, service: Served) -> answers.UnitAnswer:
    return answers.unit_answer(unit, service.settings.max_body_bytes)


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


# -- a class -------------------------------------------------------------------------------------------------------


@router.get(
    "/v1/units/{unit}/submissions",
    summary="The submissions of a unit, for teachers",
    tags=["class"],
    responses=documented(401, 403, 404, 422),
)
def class_submissions(
    request: Request,
    account: Teacher,
    unit: Wanted,
    service: Served,
    student: Annotated[str | None, Query(max_length=NAME_CHARS, pattern=STORABLE)] = None,
    course: Annotated[str | None, Query(max_length=64, pattern=STORABLE)] = None,
    verdict: Verdict | None = None,
    status: runs.Status | None = None,
    sort: listing.Sort = listing.Sort.NEWEST,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: Annotated[str | None, Query(max_length=400, description="`next` of the page before")] = None,
) -> answers.SubmissionPage:
    wanted = listing.Filter(unit.id, student, course, verdict, status)
    try:
        with reading(service.engine) as connection:
            found, key = listing.page(connection, wanted, sort, limit, after)
    except listing.BadCursor as error:
        raise Problem(422, "page_unknown", wording.PAGE_UNKNOWN) from error
    following = request.url.include_query_params(after=key) if key else None
    return answers.SubmissionPage(submissions=found, next=f"{following.path}?{following.query}" if following else None)


@router.get(
    "/v1/units/{unit}/stats",
    summary="What a class did with a unit, for teachers",
    tags=["class"],
    responses=documented(401, 403, 404, 422),
)
def class_stats(
    account: Teacher,
    unit: Wanted,
    service: Served,
    course: Annotated[str | None, Query(max_length=64, pattern=STORABLE)] = None,
) -> answers.StatsAnswer:
    with reading(service.engine) as connection:
        return listing.stats(connection, unit.id, course)


# -- health --------------------------------------------------------------------------------------------------------


@router.get("/livez", summary="The web process answers", tags=["health"])
def livez() -> answers.Alive:
    return answers.Alive()


@router.get(
    "/readyz",
    summary="Whether submissions are taken in and graded, and what is missing if not",
    tags=["health"],
    response_model=answers.Ready,
    responses={503: {"description": "Something is missing", "model": answers.Ready}},
)
def readyz(service: Served) -> Response:
    missing: list[str] = []
    workers: list[runs.Worker] = []
    try:
        with reading(service.engine) as connection:
            workers = runs.alive(connection, service.clock())
    except Exception as error:
        missing.append(wording.database_missing(type(error).__name__))
    else:
        if not workers:
            missing.append(wording.WORKER_MISSING)
        missing += sorted({lack for worker in workers if not worker.ready for lack in worker.missing})
    if not service.course.units:
        missing.append(wording.UNITS_MISSING)
    answer = answers.Ready(ready=not missing, missing=tuple(missing), workers=len(workers))
    return JSONResponse(answer.model_dump(mode="json"), 503 if missing else 200)
