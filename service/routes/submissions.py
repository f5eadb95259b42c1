"""A submission's id goes in; where it stands, its report, or its cancellation comes out."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from grader.formats import MEDIA_TYPES, Format, Material, rendered
from grader.gradescope import MOST_POINTS, POINTS, Results
from grader.report import Report
from grader.stryker import MutationTestResult
from grader.views import ROLES_THAT_SEE_ALL, for_role
from service import answers, feedback, limits, overrides, places, runs, submissions, wording
from service.accounts import Account
from service.audit import By
from service.database import reading, writing
from service.dependencies import (
    Actor,
    Credentials,
    RequestId,
    Served,
    Service,
    Viewer,
    Visible,
    caller,
    holder,
    seen,
    sight,
)
from service.offerings import Moment
from service.problems import Problem, documented

router = APIRouter()

RETRY_SECONDS = 2


@dataclass(frozen=True)
class Form:
    """How the report is wanted; a full score is worth `points` on Gradescope."""

    format: Format = Format.JSON
    points: float = POINTS


async def wanted_form(
    format: Annotated[
        Format, Query(description="of the report: our JSON, text, Stryker's JSON, Gradescope's results.json, JUnit XML")
    ] = Format.JSON,
    points: Annotated[
        float, Query(gt=0, le=MOST_POINTS, allow_inf_nan=False, description="of a full score, for format=gradescope")
    ] = POINTS,
) -> Form:
    return Form(format, points)


WantedForm = Annotated[Form, Depends(wanted_form)]


@dataclass(frozen=True)
class Reader:
    """As whom the account reads: as itself, or as the submission's student, now or at another moment."""

    as_student: bool = False
    moment: Moment | None = None


async def reader(
    account: Viewer,
    as_role: Annotated[
        Literal["student"] | None, Query(alias="as", description="for teachers: what the student sees of it")
    ] = None,
    moment: Annotated[
        Moment | None, Query(description="for teachers, with `as`: at this moment; without it, as it is now")
    ] = None,
) -> Reader:
    """Raises Problem 403 if someone who is not staff would choose the moment."""
    if moment is not None and account.role.value not in ROLES_THAT_SEE_ALL:
        raise Problem(403, "role_missing", wording.role_missing(account.role))
    return Reader(as_role is not None or moment is not None, moment)


Reading = Annotated[Reader, Depends(reader)]
AnyReport = Report | MutationTestResult | Results
REPORT: dict[str, Any] = {
    "description": "The report, as the caller may see it",
    "content": {media_type: {"schema": {"type": "string"}} for media_type in ("text/plain", "application/xml")},
}


@router.get(
    "/v1/submissions/{submission_id}",
    summary="Where a submission stands",
    tags=["submissions"],
    response_model=answers.SubmissionAnswer,
    responses=documented(401, 404),
)
def status(request: Request, submission_id: str, service: Served, credentials: Credentials) -> Response:
    # Nothing is asked for as often: with a token it takes one thread and one transaction, not one for each dependency.
    if credentials is None:
        return status_answer(service, sight(submission_id, service, caller(request, service, None)).stored)
    with reading(service.engine) as connection:
        account = holder(connection, credentials, service.clock())
        return _status(service, connection, seen(connection, submission_id, account).stored)


def status_answer(service: Service, stored: submissions.Stored) -> Response:
    with reading(service.engine) as connection:
        return _status(service, connection, stored)


def _status(service: Service, connection: sa.Connection, stored: submissions.Stored) -> Response:
    run = _run(connection, stored.run)
    answer = standing(service, connection, stored, run)
    headers = {} if run.status.ended else {"Retry-After": str(RETRY_SECONDS)}
    return Response(answer.model_dump_json(), media_type="application/json", headers=headers)


def standing(
    service: Service, connection: sa.Connection, stored: submissions.Stored, run: runs.RunState
) -> answers.SubmissionAnswer:
    """Where a submission stands, whose counting run is `run`."""
    place = places.of(connection, run, stored.unit, service.clock(), service.paces)
    left = limits.attempts_left(connection, stored.course, stored.unit, stored.student)
    return answers.submission(stored, run, place, left)


def _run(connection: sa.Connection, run_id: str) -> runs.RunState:
    run = runs.find(connection, run_id)
    if run is None:  # it was erased since the request began
        raise Problem(404, "submission_unknown", wording.SUBMISSION_UNKNOWN)
    return run


@router.get(
    "/v1/submissions/{submission_id}/report",
    summary="The report of a submission",
    tags=["submissions"],
    response_model=AnyReport,
    responses={
        200: REPORT,
        **documented(401, 403, 404, 409, 422),
    },
)
def report(account: Viewer, stored: Visible, service: Served, form: WantedForm, reader: Reading) -> Response:
    return report_answer(service, account, stored, form, reader)


def report_answer(
    service: Service, account: Account, stored: submissions.Stored, form: Form, reader: Reader = Reader()
) -> Response:
    """The report of the run that counts, and what attempts are left; raises Problem 409 while there is none."""
    answer = run_report_answer(service, account, stored, stored.run, form, reader)
    with reading(service.engine) as connection:
        left = limits.attempts_left(connection, stored.course, stored.unit, stored.student)
    if left is not None:
        answer.headers["Attempts-Left"] = str(left)
    return answer


def run_report_answer(
    service: Service,
    account: Account,
    stored: submissions.Stored,
    run_id: str,
    form: Form,
    reader: Reader = Reader(),
) -> Response:
    """The report of one run of a submission the account may see; raises Problem 409 while there is none."""
    staff = account.role.value in ROLES_THAT_SEE_ALL
    sees_all = staff and not reader.as_student
    with reading(service.engine) as connection:
        run = _run(connection, run_id)
        found = runs.report(connection, run_id)
        if found is not None:
            found = overrides.marked(connection, found, stored)
        with_tests = form.format is Format.STRYKER and (staff or account.student == stored.student)
        tests = submissions.load(connection, stored).tests if with_tests and found is not None else ()
        told = feedback.of(connection, stored, service.clock(), reader.moment)
    if found is None:
        headers = {} if run.status.ended else {"Retry-After": str(RETRY_SECONDS)}
        raise Problem(409, "report_not_ready", wording.report_not_ready(run.status), headers=headers)
    seen = for_role(found, account.role.value if sees_all else "student", told.level)
    material = Material(service.course.units.get(stored.unit) if sees_all else None, tests)
    text = rendered(seen, form.format, material, form.points, told.level)
    return Response(text, media_type=MEDIA_TYPES[form.format])


@router.delete(
    "/v1/submissions/{submission_id}",
    summary="Cancel a submission that waits, or stop its grading",
    tags=["submissions"],
    response_model=answers.SubmissionAnswer,
    responses={
        202: {
            "description": "It is being graded, and will be cancelled in a moment",
            "model": answers.SubmissionAnswer,
        },
        **documented(401, 403, 404, 409),
    },
)
def cancel(account: Actor, stored: Visible, service: Served, request_id: RequestId) -> Response:
    now = service.clock()
    with writing(service.engine) as connection:
        cancelled = runs.cancel(connection, stored.run, now)
        stopping = not cancelled and runs.ask_to_stop(connection, stored.run, now)
        run = _run(connection, stored.run)
        if cancelled or stopping:
            submissions.note(connection, stored, By(account, now, request_id), action="submission.cancel")
    if cancelled:
        service.queue.cancel(stored.run)
    elif not stopping and run.status is not runs.Status.CANCELLED:
        raise Problem(409, "ended", wording.ended(run.status))
    answer = status_answer(service, stored)
    answer.status_code = 202 if stopping else 200
    return answer
