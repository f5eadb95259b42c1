"""A course, or a batch of regrades, goes in; the page on which it is begun, watched and decided comes out."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from service import offerings, views, walltime, wording
from service.accounts import Account
from service.audit import By
from service.database import reading
from service.dependencies import CourseId, RequestId, Served, Service
from service.problems import Problem
from service.regrading import answers, batches, decisions, routes
from service.regrading import wording as words
from service.regrading.batches import Batch, State, Which
from service.regrading.decisions import What
from service.views import Posted, Staff, Teaching, text

router = APIRouter(include_in_schema=False)

LIST = "/courses/{course}/regrades"
ONE = LIST + "/{regrade_id}"

SHOWN = 50  # submissions on a page
MOST_BATCHES = 50


@router.get(LIST)
def regrades_page(request: Request, account: Staff, course: CourseId, service: Served) -> Response:
    return _list(request, account, course, service)


@router.post(LIST)
def begin(
    request: Request, account: Teaching, course: CourseId, service: Served, form: Posted, request_id: RequestId
) -> Response:
    sent = {name: text(form, name) for name in ("unit", "which", "reason")}
    chosen = tuple(text(form, "submissions").split())
    try:
        body = answers.RegradeBody.model_validate({"course": course, "submissions": chosen, **sent})
        if body.unit not in service.course.units:
            raise Problem(422, "unit_unknown", wording.unit_unknown(body.unit, service.course.units))
        batch = routes.start(service, body, By(account, service.clock(), request_id))
    except ValidationError:
        return _list(request, account, course, service, error=words.FORM_INCOMPLETE, sent=sent, status=422)
    except Problem as problem:
        return _list(request, account, course, service, error=problem.message, sent=sent, status=problem.status)
    return views.redirect(f"/courses/{course}/regrades/{batch.id}")


def _list(
    request: Request,
    account: Account,
    course: str,
    service: Service,
    error: str = "",
    sent: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    with reading(service.engine) as connection:
        offering = offerings.course_of(connection, course)
        found = [
            (batch, batches.progress(connection, batch))
            for batch in batches.newest(connection, [course], None, MOST_BATCHES)
        ]
    return views.page(
        request,
        service,
        "regrading/list.html",
        account=account,
        status=status,
        offering=offering,
        found=found,
        units=list(service.course.units.values()),
        which=words.WHICH,
        stages=words.STAGES,
        error=error,
        sent={"unit": "", "which": Which.ALL.value, "reason": "", **(sent or {})},
        time=lambda seconds: walltime.show(seconds, offering.timezone),
    )


@router.get(ONE)
def regrade_page(
    request: Request,
    account: Staff,
    course: CourseId,
    regrade_id: str,
    service: Served,
    moved: bool = True,
    after: Annotated[str, Query(max_length=32, pattern=r"^[0-9a-zA-Z]*$")] = "",
) -> Response:
    batch = _batch(service, course, regrade_id)
    with reading(service.engine) as connection:
        offering = offerings.course_of(connection, course)
        progress = batches.progress(connection, batch)
        found, last = batches.items(connection, batch, moved=True if moved else None, after=after, limit=SHOWN)
        decision = decisions.last(connection, batch.id)
        under_way = decision is not None and not decision.ended
        students = batches.grade_moves(connection, batch) if progress.done and not under_way else []
    return views.page(
        request,
        service,
        "regrading/batch.html",
        account=account,
        offering=offering,
        batch=batch,
        progress=progress,
        items=found,
        next=f"?moved={str(moved).lower()}&after={last}" if last else "",
        moved=moved,
        students=students,
        causes=words.CAUSES,
        kinds=words.KINDS,
        states=words.STATES,
        stages=words.STAGES,
        which=words.WHICH,
        decision=words.decided(decision.what, decision.submissions, decision.stale, decision.ended) if decision else "",
        under_way=under_way,
        decidable=() if under_way else (State.TRIAL, State.APPLIED),
        time=lambda seconds: walltime.show(seconds, offering.timezone),
    )


@router.post(ONE)
def decide(
    account: Teaching, course: CourseId, regrade_id: str, service: Served, form: Posted, request_id: RequestId
) -> RedirectResponse:
    batch = _batch(service, course, regrade_id)
    what, _, scope = text(form, "do").partition(" ")
    chosen = [value for value in form.getlist("submission") if isinstance(value, str)] if scope == "chosen" else None
    try:
        body = answers.DecisionBody.model_validate({"submissions": chosen})
        decision = What(what)
    except ValueError as error:
        raise Problem(422, "decision_unknown", words.DECISION_UNKNOWN) from error
    routes.decide(service, batch, decision, body.submissions, By(account, service.clock(), request_id))
    return views.redirect(f"/courses/{course}/regrades/{batch.id}")


def _batch(service: Service, course: str, regrade_id: str) -> Batch:
    with reading(service.engine) as connection:
        batch = batches.find(connection, regrade_id) if regrade_id.isalnum() else None
    if batch is None or batch.course != course:
        raise Problem(404, "regrade_unknown", words.UNKNOWN)
    return batch
