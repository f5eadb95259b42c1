"""Who did what to what goes in with the transaction that does it; a page of such entries comes out.

Entries are never changed, but for a student's name when that student is erased (service/students.py). `action` is a
noun and a verb of ours, such as "submission.cancel"; `object` the id of what it was done to; in `detail` the keys
"student" and "students" hold names and nothing else.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from service.accounts import Account
from service.tables import audit, tokens

SYSTEM = "system"  # the role of the command line and of what the service does by itself


@dataclass(frozen=True)
class By:
    """Who changes something, and when; None is the command line or the service itself."""

    who: Account | None
    now: float
    request_id: str = ""


@dataclass(frozen=True)
class Entry:
    """One thing that was done. `token` is None for the command line and the service itself; `label` is the token's."""

    id: int
    at: float
    token: str | None
    label: str
    role: str
    action: str
    object: str
    student: str | None
    course: str | None
    unit: str | None
    detail: Mapping[str, Any]
    request_id: str


@dataclass(frozen=True)
class Filter:
    """What to read: every field that is given must fit. `courses_only`: what was done within some course;
    `courses`: within one of these."""

    action: str | None = None
    object: str | None = None
    token: str | None = None
    student: str | None = None
    course: str | None = None
    unit: str | None = None
    since: float | None = None
    until: float | None = None
    courses_only: bool = False
    courses: tuple[str, ...] | None = None


def note(
    connection: sa.Connection,
    by: By,
    action: str,
    object: str,
    *,
    student: str | None = None,
    course: str | None = None,
    unit: str | None = None,
    detail: Mapping[str, object] | None = None,
) -> None:
    """Write an entry, in the transaction of the change itself."""
    connection.execute(
        audit.insert().values(
            at=by.now,
            token=by.who.id if by.who is not None else None,
            role=by.who.role.value if by.who is not None else SYSTEM,
            action=action,
            object=object,
            student=student,
            course=course,
            unit=unit,
            detail=json.dumps(dict(detail or {})),
            request_id=by.request_id,
        )
    )


def page(
    connection: sa.Connection, wanted: Filter, limit: int, before: int | None = None
) -> tuple[list[Entry], int | None]:
    """Up to `limit` entries, the newest first, and the `before` of the next page; None on the last one."""
    query = (
        sa.select(audit, sa.func.coalesce(tokens.c.label, "").label("label"))
        .select_from(audit.outerjoin(tokens, tokens.c.id == audit.c.token))
        .where(*_where(wanted))
        .order_by(audit.c.id.desc())
        .limit(limit + 1)
    )
    if before is not None:
        query = query.where(audit.c.id < before)
    found = [_entry(row) for row in connection.execute(query)]
    return found[:limit], found[limit - 1].id if len(found) > limit else None


def _where(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    equal = (audit.c.action, audit.c.object, audit.c.token, audit.c.student, audit.c.course, audit.c.unit)
    conditions: list[sa.ColumnElement[bool]] = [
        column == getattr(wanted, column.name) for column in equal if getattr(wanted, column.name) is not None
    ]
    if wanted.since is not None:
        conditions.append(audit.c.at >= wanted.since)
    if wanted.until is not None:
        conditions.append(audit.c.at < wanted.until)
    if wanted.courses_only:
        conditions.append(audit.c.course.is_not(None))
    if wanted.courses is not None:
        conditions.append(audit.c.course.in_(wanted.courses))
    return conditions


def _entry(row: sa.Row[tuple[object, ...]]) -> Entry:
    return Entry(
        id=row.id,
        at=row.at,
        token=row.token,
        label=row.label,
        role=row.role,
        action=row.action,
        object=row.object,
        student=row.student,
        course=row.course,
        unit=row.unit,
        detail=json.loads(row.detail),
        request_id=row.request_id,
    )
