"""A posted submission goes in; it is stored and enqueued, and its status, or the report waited for, comes out."""

import asyncio
import re
from contextlib import suppress
from functools import partial
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from grader.unit import Unit
from service import answers, links, runs
from service.accept import Accepted, Posting, accept
from service.database import AWAY, reading
from service.dependencies import Sender, Sending, Served, Service, Wanted
from service.posted import NAME_CHARS
from service.problems import documented
from service.routes.submissions import REPORT, RETRY_SECONDS, AnyReport, WantedForm, report_answer, status_answer
from service.routes.submissions import Form as ReportForm
from service.submissions import Stored
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
                        "callback": {
                            "type": "string",
                            "format": "uri",
                            "description": "for learning platforms: where to POST a signed message when it has ended",
                        },
                        "receipt": {"type": "string", "description": "from a 503: its time is the one that counts"},
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
        200: {**REPORT, "model": AnyReport, "description": "The report, when it was ready within the wait"},
        **documented(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503),
    },
    openapi_extra=_FORM,
)
async def submit(
    request: Request,
    sender: Sending,
    unit: Wanted,
    service: Served,
    form_wanted: WantedForm,
    wait: Annotated[float | None, Query(ge=0, description="seconds to wait for the report")] = None,
    prefer: Annotated[str | None, Header(description="wait=SECONDS, as ?wait=")] = None,
    idempotency_key: Annotated[
        str, Header(description="up to 255 printable characters; the same again is answered with the same submission")
    ] = "",
    submission_receipt: Annotated[str, Header(description="from a 503, as the form field `receipt`")] = "",
) -> Response:
    settings = service.settings
    posting = Posting(idempotency_key, submission_receipt, str(request.base_url))
    seconds = min(_wait_seconds(wait, prefer), settings.max_wait_seconds)
    async with service.pressure.place(settings, sender.holder):
        form = await read_form(request, settings.max_body_bytes, settings.max_upload_seconds)
        storing = service.pressure.keyed if idempotency_key else service.pressure.storing
        work = partial(_stored, service, sender, unit, form, posting, at_once=not seconds)
        accepted, answer = await to_thread.run_sync(work, limiter=storing)
        del form, work  # while the report is waited for, its bytes need not be in memory
    headers = {"Location": links.to(f"/v1/submissions/{accepted.stored.id}")}
    if prefer and seconds:
        headers["Preference-Applied"] = f"wait={seconds:g}"
    if accepted.replayed:
        headers["Idempotency-Replayed"] = "true"
    if answer is None:
        answer = await _waited_for(request, service, accepted, seconds, form_wanted)
    answer.headers.update(headers)
    return answer


def _stored(
    service: Service, sender: Sender, unit: Unit, form: Form, posting: Posting, *, at_once: bool
) -> tuple[Accepted, Response | None]:
    """Store it, and say `at_once` in the same thread where it stands: each other thread would hold up other answers."""
    accepted = accept(service, sender, unit, form, posting)
    return accepted, _standing(service, accepted.stored) if at_once else None


def _standing(service: Service, stored: Stored) -> Response:
    try:
        answer = status_answer(service, stored)
    except AWAY:  # it is stored, and that must be said
        answer = JSONResponse(answers.taken_in(stored).model_dump(mode="json"))
        answer.headers["Retry-After"] = str(RETRY_SECONDS)
    answer.status_code = 202
    return answer


async def _waited_for(
    request: Request, service: Service, accepted: Accepted, seconds: float, form_wanted: ReportForm
) -> Response:
    """The report, or where it stands when the wait is over."""
    stored = accepted.stored
    with suppress(*AWAY):
        if await _ended(request, service, stored.run, seconds):
            return await run_in_threadpool(report_answer, service, accepted.account, stored, form_wanted)
    return await run_in_threadpool(_standing, service, stored)


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
    with service.waiters.waiting(run_id) as ended:
        while loop.time() < give_up_at:
            if await run_in_threadpool(_has_ended, service, run_id):
                return True
            if await request.is_disconnected():
                return False
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), min(pause, max(0.0, give_up_at - loop.time())))
            ended.clear()
            pause = min(pause * 1.5, LAST_POLL_SECONDS)
    return False


def _has_ended(service: Service, run_id: str) -> bool:
    with reading(service.engine) as connection:
        run = runs.find(connection, run_id)
    return run is not None and run.status.ended
