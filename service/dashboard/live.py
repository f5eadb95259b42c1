"""A request for a page goes in; the mark of what the page depends on comes out, which its script sends back.

A page is worked out again only if the mark is another. (docs/decisions/0187)
"""

import hashlib

import sqlalchemy as sa
from fastapi import Request
from fastapi.responses import Response

from service.accounts import Account
from service.classroom import selection
from service.classroom.selection import Selection
from service.tables import audit

STEP_SECONDS = 60.0  # how exactly it is told for how long something waits, or how soon it is due


def mark(
    connection: sa.Connection, request: Request, account: Account, wanted: Selection, course_digest: str, now: float
) -> str:
    """What this page, for this account, is made of: changes with every run that moves, every submission and decision,
    and with the course material."""
    decided = connection.execute(sa.select(sa.func.max(audit.c.id))).scalar()
    who = (account.id, account.role.value, request.url.path, request.url.query)
    parts = (*who, course_digest, selection.version(connection, wanted), decided, int(now // STEP_SECONDS))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def unchanged(request: Request, mark: str) -> Response | None:
    """The answer to who has seen this already, or None."""
    known = request.headers.get("if-none-match", "").removeprefix("W/").strip('"')
    return Response(status_code=304, headers=tag(mark)) if known == mark else None


def tag(mark: str) -> dict[str, str]:
    return {"ETag": f'"{mark}"'}
