"""A question about what was done goes in; the entries of the audit log come out, by pages, the newest first."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request

from service import answers, audit, links
from service.accounts import Role
from service.database import reading
from service.dependencies import Caller, Served, edited_courses, editor
from service.posted import NAME_CHARS, STORABLE
from service.problems import documented

router = APIRouter()

LAST_ID = 2**31 - 1  # what the column holds

Name = Annotated[str | None, Query(max_length=NAME_CHARS, pattern=STORABLE)]
Time = Annotated[datetime | None, Query(description="RFC 3339; UTC without an offset")]


@router.get(
    "/v1/audit",
    summary="Who did what: a teacher sees what was done within courses, an administrator everything",
    tags=["class"],
    responses=documented(401, 403, 422),
)
def audit_log(
    request: Request,
    account: Caller,
    service: Served,
    action: Name = None,
    object: Name = None,
    token: Name = None,
    student: Name = None,
    course: Name = None,
    unit: Name = None,
    since: Time = None,
    until: Time = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    before: Annotated[int | None, Query(ge=0, le=LAST_ID, description="of the page before, in `next`")] = None,
) -> answers.AuditPage:
    mine = None if account.courses is None else edited_courses(account)
    if not mine:
        editor(account)
    wanted = audit.Filter(
        action,
        object,
        token,
        student,
        course,
        unit,
        answers.seconds(since),
        answers.seconds(until),
        courses_only=account.role is not Role.ADMIN,
        courses=tuple(mine) if mine is not None else None,
    )
    with reading(service.engine) as connection:
        found, last = audit.page(connection, wanted, limit, before)
    return answers.AuditPage(
        entries=tuple(answers.audit_entry(entry) for entry in found),
        next=links.next_page(request, before=last),
    )
