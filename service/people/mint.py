"""Who asks for a token, and for what, goes in; a token comes out, shown once, and those there are, and go.

A teacher makes tokens that are limited to the course; a person makes tokens that can do what the person can; an
administrator makes any.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from service import accounts, audit
from service.accounts import OF_TOKENS, Account, Role
from service.audit import By
from service.tables import tokens

LABEL_CHARS = 200
MOST_OF_A_PERSON = 50  # that are valid


class TooMany(Exception):
    """The person holds as many valid tokens as one may."""


@dataclass(frozen=True)
class Minted:
    """A new token; `secret` is kept nowhere."""

    secret: str
    account: Account


def for_course(
    connection: sa.Connection,
    course: str | None,
    role: Role,
    by: By,
    *,
    student: str | None = None,
    label: str = "",
    expires_at: float | None = None,
) -> Minted:
    """A token of nobody's, limited to the course; None: good for all.

    Raises ValueError where role, student and course do not go together.
    """
    if role not in OF_TOKENS:
        raise ValueError(f"no token is {role.value}")
    return _minted(
        connection,
        by,
        course,
        role=role,
        student=student,
        label=label,
        expires_at=expires_at,
        courses=None if course is None else (course,),
        user=None,
    )


def for_person(
    connection: sa.Connection, account: Account, student: str, by: By, *, label: str, expires_at: float | None = None
) -> Minted:
    """A token that can do what the person can whose account this is. Raises TooMany."""
    assert account.user is not None
    valid = (tokens.c.revoked_at.is_(None), sa.or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > by.now))
    if len(accounts.matching(connection, tokens.c.user == account.user, *valid)) > MOST_OF_A_PERSON:  # and the account
        raise TooMany
    return _minted(
        connection,
        by,
        None,
        role=Role.PERSON,
        student=student,
        label=label,
        expires_at=expires_at,
        courses=None,
        user=account.user,
    )


def _minted(
    connection: sa.Connection,
    by: By,
    course: str | None,
    *,
    role: Role,
    student: str | None,
    label: str,
    expires_at: float | None,
    courses: Sequence[str] | None,
    user: str | None,
) -> Minted:
    secret = accounts.new_secret()
    account = accounts.create(
        connection,
        secret=secret,
        role=role,
        now=by.now,
        student=student,
        label=label,
        expires_at=expires_at,
        courses=courses,
        user=user,
        created_by=by.who.id if by.who is not None else None,
    )
    _note(connection, "token.create", account, course, by)
    return Minted(secret, account)


def of_course(connection: sa.Connection, course: str) -> list[Account]:
    """The tokens limited to this course, the newest first."""
    return accounts.matching(connection, tokens.c.courses == accounts.limited_to(course), tokens.c.user.is_(None))


def of_person(connection: sa.Connection, user_id: str, account_id: str) -> list[Account]:
    """The tokens this person made for themselves, the newest first; not the person's account."""
    return accounts.matching(connection, tokens.c.user == user_id, tokens.c.id != account_id)


def of_nobody(connection: sa.Connection) -> list[Account]:
    """Every token that is not a person's, the newest first."""
    return accounts.matching(connection, tokens.c.user.is_(None))


def revoke(connection: sa.Connection, account: Account, course: str | None, by: By) -> None:
    """Make a token useless."""
    accounts.revoke(connection, account.id, by.now)
    _note(connection, "token.revoke", account, course, by)


def revoke_all_of(connection: sa.Connection, user_id: str, account_id: str, by: By) -> None:
    """Make every token useless that this person made for themselves."""
    for account in of_person(connection, user_id, account_id):
        if account.revoked_at is None:
            revoke(connection, account, None, by)


def _note(connection: sa.Connection, action: str, account: Account, course: str | None, by: By) -> None:
    """What a person calls a token of theirs is not written down: it goes when they are erased."""
    audit.note(
        connection,
        by,
        action=action,
        object=account.id,
        student=account.student,
        course=course,
        detail={"role": account.role.value, "label": account.label if account.user is None else None},
    )
