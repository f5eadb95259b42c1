"""Who somebody is goes in and is stored; people come out, by login and by student.

A person is an account (a row of ag_tokens that no secret opens), so that submissions, extensions and the audit log name
people and tokens alike. (docs/decisions/0175)
"""

import secrets
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from service import accounts
from service.accounts import Role
from service.database import take_turns
from service.tables import invitations, sessions, tokens, users

LOGIN_CHARS = 254
NAME_CHARS = 200
AT_A_TIME = 500


@dataclass(frozen=True)
class User:
    """A person. `login` is folded; `student` is the name under which submissions know the person."""

    id: str
    account: str
    login: str
    name: str
    student: str
    admin: bool
    has_password: bool
    created_at: float

    @property
    def shown(self) -> str:
        return self.name or self.login

    @staticmethod
    def of(row: sa.Row[tuple[object, ...]]) -> "User":
        """The person whom a row of ag_users, joined or not, holds."""
        return User(
            id=row.id,
            account=row.account,
            login=row.login,
            name=row.name,
            student=row.student,
            admin=row.admin,
            has_password=row.password is not None,
            created_at=row.created_at,
        )


class Taken(ValueError):
    """Another person has this login, or this student's name; `field` says which."""

    def __init__(self, field: str) -> None:
        super().__init__(f"the {field} is another person's")
        self.field = field


def folded(login: str) -> str:
    """A login as it is compared: without regard to case, width or spaces around it."""
    return unicodedata.normalize("NFKC", login).casefold().strip()


def is_login(text: str) -> bool:
    """Whether somebody may have this login: printable, without spaces, not too long once folded."""
    login = folded(text)
    return 0 < len(login) <= LOGIN_CHARS and login.isprintable() and not any(map(str.isspace, login))


def add(
    connection: sa.Connection,
    *,
    login: str,
    name: str,
    now: float,
    student: str = "",
    admin: bool = False,
    created_by: str | None = None,
) -> User:
    """Store a person, who has no password yet. `student`: the login if left out. Raises Taken."""
    login = folded(login)
    student = student or login
    take_turns(connection, "users")
    if find_by_login(connection, login) is not None:
        raise Taken("login")
    if find_by_student(connection, student) is not None:
        raise Taken("student")
    user_id = secrets.token_hex(8)
    account = accounts.create(
        connection,
        secret=secrets.token_urlsafe(32),  # kept nowhere
        role=Role.PERSON,
        now=now,
        student=student,
        label=name or login,
        user=user_id,
        created_by=created_by,
    )
    connection.execute(
        users.insert().values(
            id=user_id,
            account=account.id,
            login=login,
            name=name,
            student=student,
            password=None,
            admin=admin,
            created_at=now,
        )
    )
    return User(user_id, account.id, login, name, student, admin, has_password=False, created_at=now)


def find(connection: sa.Connection, user_id: str) -> User | None:
    return _one(connection, users.c.id == user_id)


def find_by_login(connection: sa.Connection, login: str) -> User | None:
    return None if "\0" in login else _one(connection, users.c.login == folded(login))


def find_by_student(connection: sa.Connection, student: str) -> User | None:
    return _one(connection, users.c.student == student)


def having_logins(connection: sa.Connection, logins: Sequence[str]) -> dict[str, User]:
    """Those of these (folded) logins that somebody has."""
    return {user.login: user for user in _having(connection, users.c.login, logins)}


def having_students(connection: sa.Connection, students: Sequence[str]) -> dict[str, User]:
    """Those of these students' names that somebody has."""
    return {user.student: user for user in _having(connection, users.c.student, students)}


def _having(connection: sa.Connection, column: sa.Column[str], values: Sequence[str]) -> Iterator[User]:
    for start in range(0, len(values), AT_A_TIME):
        query = sa.select(users).where(column.in_(values[start : start + AT_A_TIME]))
        yield from map(User.of, connection.execute(query))


def list_all(connection: sa.Connection) -> list[User]:
    return [User.of(row) for row in connection.execute(sa.select(users).order_by(users.c.login))]


def any_admin(connection: sa.Connection) -> bool:
    """Whether an administrator can sign in."""
    query = sa.select(users.c.id).join(tokens, tokens.c.id == users.c.account)
    query = query.where(users.c.admin, users.c.password.is_not(None), tokens.c.revoked_at.is_(None))
    return connection.execute(query.limit(1)).first() is not None


def change(connection: sa.Connection, user: User, *, name: str, admin: bool) -> None:
    connection.execute(users.update().where(users.c.id == user.id).values(name=name, admin=admin))
    accounts.rename(connection, user.account, name or user.login)


def set_password(connection: sa.Connection, user_id: str, password: str) -> None:
    """Store a hash made by passwords.py; whoever was signed in with the old one is not any more."""
    connection.execute(users.update().where(users.c.id == user_id).values(password=password))
    connection.execute(sessions.delete().where(sessions.c.user == user_id))
    connection.execute(invitations.delete().where(invitations.c.user == user_id))


def rehash(connection: sa.Connection, user_id: str, password: str) -> None:
    """Store another hash of the same password."""
    connection.execute(users.update().where(users.c.id == user_id).values(password=password))


def password_of(connection: sa.Connection, user_id: str) -> str | None:
    return connection.execute(sa.select(users.c.password).where(users.c.id == user_id)).scalar_one_or_none()


def close(connection: sa.Connection, user: User, now: float) -> None:
    """Let the person in no more: neither by password nor by a token of their own."""
    mine = tokens.c.user == user.id
    connection.execute(tokens.update().where(mine, tokens.c.revoked_at.is_(None)).values(revoked_at=now))
    connection.execute(sessions.delete().where(sessions.c.user == user.id))
    connection.execute(invitations.delete().where(invitations.c.user == user.id))


def reopen(connection: sa.Connection, user: User) -> None:
    """Let a person in again who was not; their tokens stay revoked."""
    accounts.revive(connection, user.account)


def _one(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> User | None:
    row = connection.execute(sa.select(users).where(condition)).one_or_none()
    return User.of(row) if row is not None else None
