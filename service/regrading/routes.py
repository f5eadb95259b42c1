"""Submissions and a reason go in and are tried; who moves and why comes out; then a decision goes in."""

from collections.abc import Sequence
from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Query, Request, Response

from service import offerings, schedules
from service import wording as service_wording
from service.accounts import Account
from service.audit import By
from service.database import reading, writing
from service.dependencies import Caller, ClassAsked, RequestId, Served, Service, Wanted, editor, reader
from service.dependencies import asked as standing
from service.links import next_page, to
from service.problems import Problem, documented
from service.regrading import answers, batches, decisions, trials, versions, wording
from service.regrading.batches import Batch
from service.regrading.decisions import Decision, What

router = APIRouter(tags=["regrades"])

HERE = "/v1/regrades/{regrade_id}"
MOST = 500


def seen(regrade_id: str, account: Caller, service: Served) -> tuple[Batch, Account]:
    """The batch in the path, and the caller as they stand in its course; 404 for who does not see that class."""
    with reading(service.engine) as connection:
        batch = batches.find(connection, regrade_id) if regrade_id.isalnum() else None
    within = account.within(batch.course) if batch is not None else None
    if within is not None or account.courses is None:
        reader(within or account)
    if batch is None or within is None:
        raise Problem(404, "regrade_unknown", wording.UNKNOWN)
    return batch, within


Seen = Annotated[tuple[Batch, Account], Depends(seen)]


def decided(seen: Seen) -> tuple[Batch, Account]:
    """The same, for who may change what holds for the class."""
    editor(seen[1])
    return seen


Decided = Annotated[tuple[Batch, Account], Depends(decided)]


@router.post(
    "/v1/regrades",
    summary="Grade submissions again without letting it count, for teachers",
    status_code=202,
    responses=documented(401, 403, 404, 409, 422),
)
def create(
    account: Caller, body: answers.RegradeBody, service: Served, request_id: RequestId, response: Response
) -> answers.RegradeAnswer:
    within = editor(standing(account, body.course))
    if body.unit not in service.course.units:
        raise Problem(404, "unit_unknown", service_wording.unit_unknown(body.unit, service.course.units))
    batch = start(service, body, By(within, service.clock(), request_id))
    response.headers["Location"] = to(f"/v1/regrades/{batch.id}")
    with reading(service.engine) as connection:
        return _shown(connection, batch)


def start(service: Service, body: answers.RegradeBody, by: By) -> Batch:
    """Store a batch and enqueue its first trials; the workers go on. Raises Problem 409, 422."""
    try:
        with writing(service.engine) as connection:
            if offerings.find(connection, body.course) is None:
                raise Problem(422, "course_unknown", service_wording.offering_unknown(body.course))
            batch = batches.create(
                connection,
                course=body.course,
                unit=body.unit,
                which=body.which,
                chosen=body.submissions,
                reason=body.reason,
                by=by,
            )
            for run_id, priority in trials.feed(connection, by.now).items():
                service.queue.submit(connection, run_id, priority)
    except batches.Empty as error:
        raise Problem(409, "nothing_to_regrade", wording.EMPTY) from error
    except batches.Unknown as error:
        raise Problem(422, "submissions_unknown", wording.unknown(error.ids), submissions=list(error.ids)) from error
    return batch


@router.get("/v1/regrades", summary="The regrades of a course", responses=documented(401, 403, 422))
def all_of_course(
    account: Caller,
    service: Served,
    course: Annotated[str, Query(pattern=schedules.COURSE_ID)] = schedules.DEFAULT_COURSE,
    unit: Annotated[str | None, Query(max_length=64, pattern=r"^[^\x00]*$")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 50,
) -> answers.RegradeList:
    reader(standing(account, course))
    with reading(service.engine) as connection:
        found = batches.newest(connection, [course], unit, limit)
        shown = tuple(_shown(connection, batch) for batch in found)
    return answers.RegradeList(regrades=shown)


@router.get(HERE, summary="A regrade and how far it is", responses=documented(401, 403, 404))
def one(seen: Seen, service: Served) -> answers.RegradeAnswer:
    with reading(service.engine) as connection:
        return _shown(connection, seen[0])


def _shown(connection: sa.Connection, batch: Batch) -> answers.RegradeAnswer:
    return answers.regrade(batch, batches.progress(connection, batch), decisions.last(connection, batch.id))


@router.get(
    HERE + "/moves",
    summary="The submissions of a regrade: what came out otherwise, and why",
    responses=documented(401, 403, 404, 422),
)
def moves(
    request: Request,
    seen: Seen,
    service: Served,
    moved: Annotated[bool | None, Query(description="only those that came out otherwise, or only the others")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    after: Annotated[str, Query(max_length=32, pattern=r"^[0-9a-zA-Z]*$")] = "",
) -> answers.MovePage:
    with reading(service.engine) as connection:
        found, last = batches.items(connection, seen[0], moved=moved, after=after, limit=limit)
    return answers.MovePage(
        regrade=seen[0].id, moves=tuple(map(answers.move, found)), next=next_page(request, after=last)
    )


@router.get(
    HERE + "/students",
    summary="The students whose grade would be another one if the regrade were applied",
    responses=documented(401, 403, 404),
)
def students(seen: Seen, service: Served) -> answers.StudentMoves:
    with reading(service.engine) as connection:
        found = batches.grade_moves(connection, seen[0])
    return answers.StudentMoves(regrade=seen[0].id, students=tuple(map(answers.student, found)))


@router.post(
    HERE + "/apply",
    summary="Let what was tried count, all of it or some",
    responses=documented(401, 403, 404, 409, 422),
)
def apply(decided: Decided, body: answers.DecisionBody, service: Served, request_id: RequestId) -> answers.DoneAnswer:
    return _decide(service, decided, What.APPLY, body, request_id)


@router.post(
    HERE + "/drop", summary="Drop what was tried, all of it or some", responses=documented(401, 403, 404, 409, 422)
)
def drop(decided: Decided, body: answers.DecisionBody, service: Served, request_id: RequestId) -> answers.DoneAnswer:
    return _decide(service, decided, What.DROP, body, request_id)


@router.post(
    HERE + "/rollback",
    summary="Let what counted before a regrade count again, all of it or some",
    responses=documented(401, 403, 404, 409, 422),
)
def roll_back(
    decided: Decided, body: answers.DecisionBody, service: Served, request_id: RequestId
) -> answers.DoneAnswer:
    return _decide(service, decided, What.ROLL_BACK, body, request_id)


def decide(service: Service, batch: Batch, what: What, chosen: Sequence[str] | None, by: By) -> Decision:
    """Raises Problem 409 while the decision before is being carried out."""
    try:
        return decisions.decide(service.engine, batch, what, chosen, by)
    except decisions.UnderWay as error:
        raise Problem(409, "decision_under_way", wording.UNDER_WAY) from error


def _decide(
    service: Service, decided: tuple[Batch, Account], what: What, body: answers.DecisionBody, request_id: str
) -> answers.DoneAnswer:
    batch, account = decided
    done = decide(service, batch, what, body.submissions, By(account, service.clock(), request_id))
    with reading(service.engine) as connection:
        return answers.done(done, batch, batches.progress(connection, batch))


@router.get(
    "/v1/units/{unit}/versions",
    summary="The states of a unit by which was graded, with what each changed",
    responses=documented(401, 403, 404, 422),
)
def unit_versions(asked: ClassAsked, unit: Wanted, service: Served) -> answers.VersionList:
    with reading(service.engine) as connection:
        found = versions.of_unit(connection, unit.id)
    return answers.versions(unit.id, unit.digest, list(found))
