"""A submission that passed goes in; how it differs from the reference comes out."""

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from grader.diffs import to_reference
from grader.report import Level, Verdict
from grader.views import ROLES_THAT_SEE_ALL
from service import feedback, runs, submissions, wording
from service.database import reading
from service.dependencies import Served, Viewer, Visible, wanted_unit
from service.problems import Problem, documented

router = APIRouter()


@router.get(
    "/v1/submissions/{submission_id}/diff",
    summary="A submission beside the reference, once it has passed",
    tags=["submissions"],
    response_class=PlainTextResponse,
    responses=documented(401, 403, 404, 409),
)
def diff(account: Viewer, stored: Visible, service: Served) -> PlainTextResponse:
    unit = wanted_unit(stored.unit, service)
    with reading(service.engine) as connection:
        if account.role.value not in ROLES_THAT_SEE_ALL:
            report = runs.report(connection, stored.run)
            if report is None or report.verdict is not Verdict.PASS:
                raise Problem(409, "not_passed", wording.DIFF_BEFORE_PASSING)
            if not feedback.of(connection, stored, service.clock()).level.tells(Level.HINTS):
                raise Problem(403, "feedback_withheld", wording.DIFF_WITHHELD)
        files = submissions.load(connection, stored).files
    return PlainTextResponse(to_reference(unit, files))
