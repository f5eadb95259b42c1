"""A submission and a reason go in; a regrade is enqueued. The runs of a submission, and the report of one, come out."""

from typing import Annotated

from fastapi import APIRouter, Body
from fastapi.responses import Response

from grader.report import Level
from service import answers, feedback, links, regrades, runs, wording
from service.database import reading, writing
from service.dependencies import RequestId, Served, SubmissionEditor, Viewer, Visible
from service.problems import Problem, documented
from service.routes.submissions import REPORT, AnyReport, Reading, WantedForm, run_report_answer

router = APIRouter()


@router.post(
    "/v1/submissions/{submission_id}/runs",
    summary="Grade a submission again, for teachers",
    tags=["class"],
    status_code=202,
    responses=documented(401, 403, 404, 409, 422),
)
def regrade(
    account: SubmissionEditor,
    stored: Visible,
    service: Served,
    request_id: RequestId,
    response: Response,
    wanted: Annotated[answers.RegradeRequest, Body()],
) -> answers.RunList:
    now = service.clock()
    try:
        with writing(service.engine) as connection:
            run = regrades.request(
                connection,
                service.queue,
                stored,
                who=account,
                reason=wanted.reason,
                request_id=request_id,
                now=now,
            )
            found = regrades.runs_of(connection, stored.id)
    except regrades.Refused as error:
        code = "submission_cancelled" if error.status is runs.Status.CANCELLED else "run_unfinished"
        raise Problem(409, code, wording.not_regraded(error.status)) from error
    response.headers["Location"] = links.to(f"/v1/submissions/{stored.id}/runs/{run}/report")
    return answers.run_list(stored, found, staff=True)


@router.get(
    "/v1/submissions/{submission_id}/runs",
    summary="Every run of a submission, with the one that counts",
    tags=["submissions"],
    responses=documented(401, 404),
)
def all_runs(account: Viewer, stored: Visible, service: Served) -> answers.RunList:
    with reading(service.engine) as connection:
        found = regrades.runs_of(connection, stored.id, trials=account.sees_class)
        told = feedback.of(connection, stored, service.clock()).level
    counts = account.sees_class or told.tells(Level.COUNTS)
    return answers.run_list(stored, found, staff=account.sees_class, counts=counts)


@router.get(
    "/v1/submissions/{submission_id}/runs/{run_id}/report",
    summary="The report of one run of a submission",
    tags=["submissions"],
    response_model=AnyReport,
    responses={200: REPORT, **documented(401, 403, 404, 409, 422)},
)
def run_report(
    account: Viewer, stored: Visible, run_id: str, service: Served, form: WantedForm, reader: Reading
) -> Response:
    with reading(service.engine) as connection:
        run = runs.find(connection, run_id) if run_id.isalnum() else None
    hidden = run is not None and run.kind == runs.TRIAL and not account.sees_class
    if run is None or run.submission != stored.id or hidden:
        raise Problem(404, "run_unknown", wording.RUN_UNKNOWN)
    return run_report_answer(service, account, stored, run.id, form, reader)
