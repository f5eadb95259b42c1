"""A bearer token goes in; the account it stands for comes out, or nothing.

The database holds the SHA-256 of a token only: a token is 256 random bits, so nothing slower is needed, and a copy of
the database opens no door.
"""

import hashlib
import secrets
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

from service.tables import tokens

PREFIX = "ag_"


class Role(StrEnum):
    STUDENT = "student"
    TEACHER = "teacher"
    LMS = "lms"
    ADMIN = "admin"


@dataclass(frozen=True)
class Account:
    """Who is asking. A student's account is its own student; the others name one."""

    id: str
    role: Role
    student: str | None = None
    label: str = ""
    created_at: float = 0.0
    expires_at: float | None = None
    revoked_at: float | None = None

    def __post_init__(self) -> None:
        if (self.role is Role.STUDENT) != (self.student is not None):
            raise ValueError("a student account names its student, and no other account does")

    @property
    def names_students(self) -> bool:
        """May submit for any student, and read any submission."""
        return self.role is not Role.STUDENT

    @property
    def sees_class(self) -> bool:
        """May list submissions and read statistics."""
        return self.role in (Role.TEACHER, Role.ADMIN)


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def create(
    connection: sa.Connection,
    *,
    secret: str,
    role: Role,
    now: float,
    student: str | None = None,
    label: str = "",
    expires_at: float | None = None,
) -> Account:
    """Store an account whose token is `secret`; raises ValueError if role and student do not go together."""
    account = Account(secrets.token_hex(8), role, student, label, now, expires_at)
    connection.execute(
        tokens.insert().values(
            id=account.id,
            digest=digest_of(secret),
            role=role.value,
            student=student,
            label=label,
            created_at=now,
            expires_at=expires_at,
        )
    )
    return account


def authenticate(connection: sa.Connection, secret: str, now: float) -> Account | None:
    """The account of a token that is neither revoked nor expired."""
    row = connection.execute(sa.select(tokens).where(tokens.c.digest == digest_of(secret))).one_or_none()
    return _account(row) if row is not None and _is_valid(row, now) else None


def hold(connection: sa.Connection, account_id: str, now: float) -> bool:
    """Whether the account is still valid, and nobody revokes it before the transaction has ended."""
    query = sa.select(tokens).where(tokens.c.id == account_id).with_for_update(read=True)
    row = connection.execute(query).one_or_none()
    return row is not None and _is_valid(row, now)


def find_by_secret(connection: sa.Connection, secret: str) -> Account | None:
    """The account of a token, also when it is revoked or expired."""
    return find_by_digest(connection, digest_of(secret))


def find_by_digest(connection: sa.Connection, digest: str) -> Account | None:
    """The account of the token with this digest, also when it is revoked or expired."""
    row = connection.execute(sa.select(tokens).where(tokens.c.digest == digest)).one_or_none()
    return _account(row) if row is not None else None


def revive(connection: sa.Connection, account_id: str) -> None:
    """Make an account valid again, without end."""
    connection.execute(tokens.update().where(tokens.c.id == account_id).values(revoked_at=None, expires_at=None))


def list_all(connection: sa.Connection) -> list[Account]:
    return [_account(row) for row in connection.execute(sa.select(tokens).order_by(tokens.c.created_at))]


def any_admin(connection: sa.Connection, now: float) -> bool:
    """Whether a valid token opens the service to an administrator."""
    valid = (
        account.revoked_at is None and (account.expires_at or now + 1) > now
        for account in list_all(connection)
        if account.role is Role.ADMIN
    )
    return any(valid)


def revoke(connection: sa.Connection, account_id: str, now: float) -> bool:
    """Make the account's token useless from now on; False if there is no such account."""
    query = tokens.update().where(tokens.c.id == account_id).values(revoked_at=now)
    return connection.execute(query).rowcount == 1


def _is_valid(row: sa.Row[tuple[object, ...]], now: float) -> bool:
    return row.revoked_at is None and (row.expires_at is None or row.expires_at > now)


def _account(row: sa.Row[tuple[object, ...]]) -> Account:
    return Account(
        id=row.id,
        role=Role(row.role),
        student=row.student,
        label=row.label,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )
