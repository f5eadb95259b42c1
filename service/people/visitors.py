"""A request's cookie goes in; who is signed in comes out, with what they may do and what their forms carry."""

from contextlib import suppress
from dataclasses import dataclass

import sqlalchemy as sa
from fastapi import Request

from service import accounts
from service.accounts import Account
from service.database import AWAY, reading, writing
from service.people import sessions, users
from service.people.sessions import Session
from service.people.users import User


@dataclass(frozen=True)
class Visitor:
    """Somebody who is signed in. `csrf` is what every form of theirs carries."""

    user: User
    account: Account
    session: Session
    csrf: str


def visitor(engine: sa.Engine, request: Request, now: float) -> Visitor | None:
    """Who is signed in; None without a session that still holds."""
    secret = sessions.cookie(request)
    if secret is None:
        return None
    with reading(engine) as connection:
        session = sessions.find(connection, secret, now)
        user = users.find(connection, session.user) if session is not None else None
        account = accounts.find(connection, user.account, now) if user is not None else None
    if session is None or user is None or account is None:
        return None
    if now - session.seen_at > sessions.SEEN_EVERY_SECONDS:
        with suppress(*AWAY), writing(engine) as connection:
            sessions.seen(connection, session, now)
    return Visitor(user, account, session, sessions.csrf_of(secret))
