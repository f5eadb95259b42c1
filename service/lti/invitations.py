"""Who invites goes in, a code comes out; whoever brings the code, once and soon, is known to have been invited: to
register a platform, or to connect a platform's course to one of ours.

The code is 128 random bits and more; the database holds its SHA-256.
"""

import secrets
from dataclasses import dataclass

import sqlalchemy as sa

from service.lti.logins import digest_of
from service.tables import lti_invitations as table

LIFE_SECONDS = 7 * 86_400.0


@dataclass(frozen=True)
class Invitation:
    """`token` is the account that invites; `course` what may be connected to, None: a platform may register."""

    token: str
    course: str | None


def invite(connection: sa.Connection, token: str, course: str | None, now: float) -> str:
    connection.execute(table.delete().where(table.c.expires_at <= now))
    code = secrets.token_urlsafe(20)
    connection.execute(
        table.insert().values(
            digest=digest_of(code), token=token, course=course, created_at=now, expires_at=now + LIFE_SECONDS
        )
    )
    return code


def use(connection: sa.Connection, code: str, now: float, *, registers: bool) -> Invitation | None:
    """What the code is good for, now used; None if it is not good for this, or not any more."""
    this = sa.and_(
        table.c.digest == digest_of(code.strip()),
        table.c.expires_at > now,
        table.c.used_at.is_(None),
        table.c.course.is_(None) if registers else table.c.course.is_not(None),
    )
    if connection.execute(table.update().where(this).values(used_at=now)).rowcount != 1:
        return None
    row = connection.execute(sa.select(table).where(table.c.digest == digest_of(code.strip()))).one()
    return Invitation(row.token, row.course)
