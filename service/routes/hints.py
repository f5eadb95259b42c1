"""A student's wish for a hint, or an opinion of one, goes in; the hints of surviving mutants, or how useful a class
found them, come out."""

from typing import Annotated

from fastapi import APIRouter, Path

from grader.unit import Unit
from service import accounts, answers, feedback, hints, limits, submissions, wording
from service.accounts import Account
from service.audit import By
from service.database import reading, writing
from service.dependencies import (
    Actor,
    ClassAsked,
    RequestId,
    Served,
    Service,
    Viewer,
    Visible,
    Wanted,
    token_invalid,
    wanted_unit,
)
from service.problems import Problem, documented
from service.submissions import Stored

router = APIRouter()

HERE = "/v1/submissions/{submission_id}/hints"

MutantId = Annotated[str, Path(pattern=answers.MUTANT_ID)]
Number = Annotated[int, Path(ge=1, le=answers.MOST_HINTS, description="1 is the hint in the report")]


@router.get(
    HERE,
    summary="The hints of a submission's surviving mutants, and how many can be unlocked",
    tags=["hints"],
    responses=documented(401, 403, 404, 409),
)
def unlocked(account: Viewer, stored: Visible, service: Served) -> answers.HintsAnswer:
    now = service.clock()
    unit = _unit(service, stored)
    with reading(service.engine) as connection:
        feedback.check_hints(connection, account, stored, now)
        found = hints.board(connection, stored, unit, now, limits.usual(service.settings))
    return answers.hints(stored.id, found, now)


@router.post(
    HERE,
    summary="Unlock the next hint of a surviving mutant",
    description="With `number` it can be sent again safely: what is unlocked already is given again for nothing.",
    tags=["hints"],
    responses=documented(401, 403, 404, 409, 422, 429),
)
def unlock(
    account: Actor, stored: Visible, body: answers.HintRequest, service: Served, request_id: RequestId
) -> answers.UnlockAnswer:
    now = service.clock()
    unit, usual = _unit(service, stored), limits.usual(service.settings)
    with writing(service.engine) as connection:
        if not accounts.hold(connection, account.id, now):  # its student may have been erased a moment ago
            raise token_invalid()
        feedback.check_hints(connection, account, stored, now)
        opened = hints.unlock(connection, account, stored, unit, body.mutant, body.number, now, usual)
        if opened.new and account.sees_class:
            submissions.note(
                connection,
                stored,
                By(account, now, request_id),
                action="hint.unlock",
                detail={"mutant": body.mutant, "number": opened.hint.number},
            )
        budget = hints.budget(connection, stored, now, usual)
    return answers.UnlockAnswer(
        mutant=body.mutant,
        hint=answers.hint(opened.hint),
        left=opened.left,
        limits=answers.hint_limits(budget, now),
    )


@router.put(
    HERE + "/{mutant}/{number}/rating",
    summary="Say whether an unlocked hint helped",
    tags=["hints"],
    responses=documented(401, 403, 404, 409, 422),
)
def rate(
    account: Actor,
    stored: Visible,
    mutant: MutantId,
    number: Number,
    body: answers.RatingRequest,
    service: Served,
) -> answers.HintAnswer:
    _check_own(account)
    now = service.clock()
    unit = _unit(service, stored)
    with writing(service.engine) as connection:
        if not accounts.hold(connection, account.id, now):
            raise token_invalid()
        feedback.check_hints(connection, account, stored, now)
        return answers.hint(hints.rate(connection, stored, unit, mutant, number, body.helpful, now))


@router.get(
    "/v1/units/{unit}/hints",
    summary="How useful a class found the hints of a unit, for teachers",
    tags=["class"],
    responses=documented(401, 403, 404, 422),
)
def use(
    asked: ClassAsked,
    unit: Wanted,
    service: Served,
) -> answers.HintUseAnswer:
    with reading(service.engine) as connection:
        return answers.hint_use(unit.id, asked.course, hints.use(connection, unit, asked.course))


def _unit(service: Service, stored: Stored) -> Unit:
    return wanted_unit(stored.unit, service)


def _check_own(account: Account) -> None:
    """Ratings are students', also where a learning platform passes them on."""
    if account.sees_class:
        raise Problem(403, "not_a_student", wording.rating_of_staff(account.role))
