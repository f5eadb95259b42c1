"""A login and a password go in; the person comes out, or nobody, and every miss is written down and counted.

A miss is counted before the password is looked at, so that many guesses at a time are no more than as many one after
the other. What is answered does not tell whether somebody has the login. (docs/decisions/0176)
"""

from dataclasses import dataclass

import sqlalchemy as sa

from service import audit
from service.audit import By
from service.database import reading, take_turns, writing
from service.people import users
from service.people.passwords import Passwords
from service.people.sessions import digest_of
from service.people.users import User
from service.tables import guesses, tokens
from service.throttle import network_of

WINDOW_SECONDS = 900.0
PER_LOGIN = 10
PER_ADDRESS = 100  # a class signs in from behind one address


@dataclass(frozen=True)
class Slow:
    """Too many misses: nothing is looked at before so many seconds have passed."""

    retry_seconds: float


def attempt(
    engine: sa.Engine, passwords: Passwords, login: str, password: str, address: str, now: float, request_id: str = ""
) -> User | Slow | None:
    """The person whose login and password these are; None if they do not go together."""
    login = users.folded(login)
    keys = {"login": digest_of(f"login {login}"), "address": digest_of(f"address {network_of(address)}")}
    with writing(engine) as connection:
        take_turns(connection, "sign-in")
        connection.execute(guesses.delete().where(guesses.c.at <= now - WINDOW_SECONDS))
        for kind, most in (("login", PER_LOGIN), ("address", PER_ADDRESS)):
            if (seconds := _closed_for(connection, keys[kind], most, now)) is not None:
                return Slow(seconds)
        for key in keys.values():
            connection.execute(guesses.insert().values(key=key, at=now))
    with reading(engine) as connection:
        user = users.find_by_login(connection, login)
        hashed = users.password_of(connection, user.id) if user is not None else None
        if user is not None and not _is_open(connection, user):
            hashed = None
    if not passwords.fits(password, hashed) or user is None:
        with writing(engine) as connection:
            audit.note(
                connection,
                By(None, now, request_id),
                action="session.refuse",
                object=user.account if user is not None else "",
                student=user.student if user is not None else None,
            )
        return None
    with writing(engine) as connection:
        _forget(connection, keys["login"])
        _forget_one(connection, keys["address"])
        if hashed is not None and passwords.is_old(hashed):
            users.rehash(connection, user.id, passwords.hash(password))
    return user


def _closed_for(connection: sa.Connection, key: str, most: int, now: float) -> float | None:
    """Seconds until the key may be tried again; None: now."""
    query = sa.select(guesses.c.at).where(guesses.c.key == key).order_by(guesses.c.at.desc()).offset(most - 1).limit(1)
    at = connection.execute(query).scalar_one_or_none()
    return at + WINDOW_SECONDS - now if at is not None else None


def _forget(connection: sa.Connection, key: str) -> None:
    connection.execute(guesses.delete().where(guesses.c.key == key))


def _forget_one(connection: sa.Connection, key: str) -> None:
    """Take back what this attempt counted: of an address others may have missed as well."""
    newest = sa.select(sa.func.max(guesses.c.id)).where(guesses.c.key == key).scalar_subquery()
    connection.execute(guesses.delete().where(guesses.c.id == newest))


def _is_open(connection: sa.Connection, user: User) -> bool:
    query = sa.select(tokens.c.revoked_at).where(tokens.c.id == user.account)
    return connection.execute(query).scalar_one_or_none() is None
