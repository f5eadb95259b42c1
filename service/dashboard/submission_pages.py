"""A request for a submission's page, or a form on it, goes in; the page comes out, or what the API does for it is done.

Who may see a submission is what the API says: staff of its course, and its student.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ValidationError

from service import answers, dependencies, links, offerings, runs, views, wording
from service.accounts import Account, Role
from service.dashboard import charts, submission
from service.dashboard import wording as words
from service.dashboard.at import At
from service.dashboard.at import submission as at_submission
from service.dashboard.saying import Saying
from service.database import reading
from service.dependencies import RequestId, Served, Sight
from service.offerings import Moment
from service.problems import Problem
from service.routes import hints, regrades, submissions
from service.views import Posted, SignedIn, text

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

B = TypeVar("B", bound=BaseModel)

SUBMISSION = "/submissions/{submission_id}"

VIEWER_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors {}"
)


@dataclass(frozen=True)
class May:
    """What the reader of a submission's page may do there; nothing while looking as somebody else."""

    account: Account
    as_oneself: bool

    @property
    def act(self) -> bool:
        """Cancel, and unlock hints."""
        return self.as_oneself and self.account.role is not Role.GRADER

    @property
    def edit(self) -> bool:
        """Grade again."""
        return self.as_oneself and self.account.changes_class


@router.get(SUBMISSION)
def submission_page(
    request: Request,
    service: Served,
    visitor: SignedIn,
    submission_id: str,
    as_role: Annotated[Literal["student"] | None, Query(alias="as")] = None,
    moment: Moment | None = None,
    since: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """Staff may look at it as its student would, now or at another moment. `since` is what it is compared with."""
    sight = dependencies.sight(submission_id, service, visitor.account)
    stored, account = sight.stored, sight.account
    with reading(service.engine) as connection:
        run = runs.find(connection, stored.run)
        if run is None:
            raise Problem(404, "submission_unknown", wording.SUBMISSION_UNKNOWN)
        as_student = account.sees_class and (as_role is not None or moment is not None)
        reader = submission.Reader(account, account.sees_class and not as_student, moment)
        found = submission.read(service, connection, reader, stored, run, since)
        offering = offerings.course_of(connection, stored.course)
    at = At(stored.course, stored.unit)
    return views.page(
        request,
        service,
        "dashboard/submission.html",
        account=account,
        nav=views.navigation(request, visitor, stored.course),
        staff=reader.sees_all,
        as_student=as_student,
        moment=(moment.value if moment is not None else "") if as_student else "",
        page=found,
        course=offering,
        at=at,
        at_here=at_submission(stored.id),
        may=May(account, not as_student),
        live="",
        say=Saying(offering.timezone),
        words=words,
        charts=charts,
    )


@router.get(SUBMISSION + "/mutants")
def viewer_page(request: Request, service: Served, visitor: SignedIn, submission_id: str) -> Response:
    """Stryker's own view of the report, which needs more of the browser than our pages do. (docs/decisions/0186)"""
    sight = dependencies.sight(submission_id, service, visitor.account)
    with reading(service.engine) as connection:
        offering = offerings.course_of(connection, sight.stored.course)
    policy = VIEWER_POLICY.format(getattr(request.state, "frame_ancestors", "'none'"))
    return views.page(
        request,
        service,
        "dashboard/viewer.html",
        account=sight.account,
        nav=views.navigation(request, visitor, sight.stored.course),
        headers={"Content-Security-Policy": policy},
        stored=sight.stored,
        report=links.to(f"/v1/submissions/{sight.stored.id}/report?format=stryker"),
        say=Saying(offering.timezone),
    )


# -- forms -----------------------------------------------------------------------------------------------------------


@router.post(SUBMISSION + "/cancel")
def cancel(visitor: SignedIn, service: Served, submission_id: str, request_id: RequestId) -> RedirectResponse:
    sight = dependencies.sight(submission_id, service, visitor.account)
    submissions.cancel(dependencies.actor(sight.account), sight.stored, service, request_id)
    return _back(sight)


@router.post(SUBMISSION + "/hints")
def unlock(
    visitor: SignedIn, service: Served, submission_id: str, form: Posted, request_id: RequestId
) -> RedirectResponse:
    sight = dependencies.sight(submission_id, service, visitor.account)
    number = text(form, "number")
    wanted = _read(answers.HintRequest, mutant=text(form, "mutant"), number=number or None)
    hints.unlock(dependencies.actor(sight.account), sight.stored, wanted, service, request_id)
    return _back(sight, f"#mutant-{wanted.mutant}")


@router.post(SUBMISSION + "/runs")
def regrade(
    visitor: SignedIn, service: Served, submission_id: str, form: Posted, request_id: RequestId
) -> RedirectResponse:
    sight = dependencies.sight(submission_id, service, visitor.account)
    wanted = _read(answers.RegradeRequest, reason=text(form, "reason"))
    account = dependencies.editor(sight.account)
    regrades.regrade(account, sight.stored, service, request_id, Response(), wanted)
    return _back(sight, "#runs")


def _read(kind: type[B], **fields: str | None) -> B:
    """The fields as the API takes them; raises Problem 422 for what it would not."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise Problem(422, "invalid_field", words.field_unreadable(name), field=name) from error


def _back(sight: Sight, fragment: str = "") -> RedirectResponse:
    return views.redirect(at_submission(sight.stored.id) + fragment)
