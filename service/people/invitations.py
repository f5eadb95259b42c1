"""A person goes in, a link comes out with which they set a password: it works once, and not for long.

The code in the link is 256 random bits, of which the database holds the SHA-256. A newer link makes the older ones
useless.
"""

import secrets

import sqlalchemy as sa

from service.people import users
from service.people.sessions import digest_of
from service.people.users import User
from service.tables import invitations

LIFE_SECONDS = 7 * 86_400.0
PATH = "/set-password"


def invite(connection: sa.Connection, user_id: str, now: float, life_seconds: float = LIFE_SECONDS) -> str:
    """A new code for this person."""
    code = secrets.token_urlsafe(32)
    connection.execute(
        invitations.delete().where(sa.or_(invitations.c.user == user_id, invitations.c.expires_at <= now))
    )
    connection.execute(
        invitations.insert().values(digest=digest_of(code), user=user_id, created_at=now, expires_at=now + life_seconds)
    )
    return code


def invited(connection: sa.Connection, code: str, now: float) -> User | None:
    """Whose code this is, if it still works."""
    query = sa.select(invitations.c.user).where(invitations.c.digest == digest_of(code), invitations.c.expires_at > now)
    user_id = connection.execute(query).scalar_one_or_none()
    return users.find(connection, user_id) if user_id is not None else None


def waiting(connection: sa.Connection, now: float) -> set[str]:
    """The people who hold a link that still works."""
    return set(connection.execute(sa.select(invitations.c.user).where(invitations.c.expires_at > now)).scalars())


def accept(connection: sa.Connection, code: str, password: str, now: float) -> User | None:
    """Set the password (a hash) of whom the code is for, once; None if it does not work any more."""
    user = invited(connection, code, now)
    used = invitations.delete().where(invitations.c.digest == digest_of(code))
    if user is None or connection.execute(used).rowcount != 1:
        return None
    users.set_password(connection, user.id, password)
    return user


def link(base_url: str, code: str) -> str:
    """The code stands behind the question mark, where it is not logged."""
    return f"{base_url.rstrip('/')}{PATH}?code={code}"
