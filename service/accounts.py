"""A bearer token goes in; the account it stands for comes out, or nothing.

A token has one role, in all courses or in those it is limited to. A person's account has in each course the role that
the person has there (ag_members), and so have the tokens that person made. (docs/decisions/0175)

The database holds the SHA-256 of a token only: a token is 256 random bits, so nothing slower is needed, and a copy of
the database opens no door.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import sqlalchemy as sa

from service.tables import courses, members, tokens, users

PREFIX = "ag_"

# Statements of every request are made once: making one costs more than running it.
_BY_DIGEST = sa.select(tokens).where(tokens.c.digest == sa.bindparam("digest"))
_BY_ID = sa.select(tokens).where(tokens.c.id == sa.bindparam("account"))
_HELD = _BY_ID.with_for_update(read=True)
_CLOSED_TO = sa.select(courses.c.id).where(
    courses.c.listed_only,
    ~sa.exists().where(
        members.c.course == courses.c.id, members.c.user == users.c.id, users.c.student == sa.bindparam("student")
    ),
)


class Role(StrEnum):
    STUDENT = "student"
    GRADER = "grader"  # sees the class and changes nothing
    TEACHER = "teacher"
    LMS = "lms"
    ADMIN = "admin"
    PERSON = "person"  # of somebody who signs in: what they may do depends on the course


OF_TOKENS = (Role.STUDENT, Role.GRADER, Role.TEACHER, Role.LMS, Role.ADMIN)
OF_MEMBERS = (Role.TEACHER, Role.GRADER, Role.STUDENT)


@dataclass(frozen=True)
class Account:
    """Who is asking. A student's account is its own student; the others name one.

    `courses` holds the role in each course it is good for; None: `role` in every course but those it is `shut_out` of,
    which are for students on their class list only. `user` is the person whose account it is, None for a token that is
    nobody's. Ask `within` before what it may do in a course.
    """

    id: str
    role: Role
    student: str | None = None
    label: str = ""
    created_at: float = 0.0
    expires_at: float | None = None
    revoked_at: float | None = None
    user: str | None = None
    courses: Mapping[str, Role] | None = None
    created_by: str | None = None
    shut_out: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.role is not Role.PERSON and (self.role is Role.STUDENT) != (self.student is not None):
            raise ValueError("a student account names its student, and no other account does")
        if self.role is Role.ADMIN and self.courses is not None:
            raise ValueError("an administrator's account is good for every course")
        if self.role is Role.PERSON and self.courses is None:
            raise ValueError("a person's account has a role in each course")

    def within(self, course: str) -> "Account | None":
        """The account as it stands in the course; None if it has no part in it."""
        if self.courses is None:
            return self if course not in self.shut_out else None
        role = self.courses.get(course)
        if role is None:
            return None
        return replace(self, role=role, student=self.student if role is Role.STUDENT else None, courses={course: role})

    @property
    def names_students(self) -> bool:
        """May submit for any student."""
        return self.role in (Role.TEACHER, Role.LMS, Role.ADMIN)

    @property
    def reads_all(self) -> bool:
        """May read any submission and any grade."""
        return self.role in (Role.GRADER, Role.TEACHER, Role.LMS, Role.ADMIN)

    @property
    def sees_class(self) -> bool:
        """May list submissions and read statistics."""
        return self.role in (Role.GRADER, Role.TEACHER, Role.ADMIN)

    @property
    def changes_class(self) -> bool:
        """May set times and limits, grade again, and say who is in the course."""
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
    courses: Sequence[str] | None = None,
    user: str | None = None,
    created_by: str | None = None,
) -> Account:
    """Store an account whose token is `secret`; raises ValueError if role, student and courses do not go together.

    `courses`: what it is limited to. One of the role PERSON is `user`'s, and stands where that person does.
    """
    limits = {course: role for course in courses} if courses is not None else None
    account = Account(
        id=secrets.token_hex(8),
        role=role,
        student=student,
        label=label,
        created_at=now,
        expires_at=expires_at,
        user=user,
        courses=limits if role is not Role.PERSON else limits or {},
        created_by=created_by,
    )
    connection.execute(
        tokens.insert().values(
            id=account.id,
            digest=digest_of(secret),
            role=role.value,
            student=student,
            label=label,
            created_at=now,
            expires_at=expires_at,
            user=user,
            courses=limited_to(*courses) if courses is not None else None,
            created_by=created_by,
        )
    )
    return account


def authenticate(connection: sa.Connection, secret: str, now: float) -> Account | None:
    """The account of a token that is neither revoked nor expired."""
    row = connection.execute(_BY_DIGEST, {"digest": digest_of(secret)}).one_or_none()
    return of_person(connection, _account(row)) if row is not None and _is_valid(row, now) else None


def find(connection: sa.Connection, account_id: str, now: float) -> Account | None:
    """The account with this id, if it is neither revoked nor expired."""
    row = connection.execute(_BY_ID, {"account": account_id}).one_or_none()
    return of_person(connection, _account(row)) if row is not None and _is_valid(row, now) else None


def of_person(connection: sa.Connection, account: Account) -> Account | None:
    """The account with the roles its person has now; None if the person is gone. A student's token for all courses is
    shut out of those whose class list the student is not on; others stay as they are."""
    if account.role is Role.STUDENT and account.courses is None:
        return replace(account, shut_out=_closed_to(connection, account.student))
    if account.role is not Role.PERSON:
        return account
    admin = connection.execute(sa.select(users.c.admin).where(users.c.id == account.user)).scalar_one_or_none()
    if admin is None:
        return None
    if admin and not account.courses:
        return replace(account, role=Role.ADMIN, student=None, courses=None)
    query = sa.select(members.c.course, members.c.role).where(members.c.user == account.user)
    roles = {row.course: Role(row.role) for row in connection.execute(query.order_by(members.c.course))}
    if admin:
        roles |= dict.fromkeys(account.courses or (), Role.TEACHER)
    if account.courses:
        roles = {course: role for course, role in roles.items() if course in account.courses}
    return replace(account, courses=roles)


def _closed_to(connection: sa.Connection, student: str | None) -> frozenset[str]:
    """The courses that are for those on their class list only, which this student is not."""
    return frozenset(connection.execute(_CLOSED_TO, {"student": student}).scalars())


def hold(connection: sa.Connection, account_id: str, now: float) -> bool:
    """Whether the account is still valid, and nobody revokes it before the transaction has ended."""
    row = connection.execute(_HELD, {"account": account_id}).one_or_none()
    return row is not None and _is_valid(row, now)


def find_by_secret(connection: sa.Connection, secret: str) -> Account | None:
    """The account of a token, also when it is revoked or expired."""
    return find_by_digest(connection, digest_of(secret))


def find_by_digest(connection: sa.Connection, digest: str) -> Account | None:
    """The account of the token with this digest, also when it is revoked or expired."""
    row = connection.execute(_BY_DIGEST, {"digest": digest}).one_or_none()
    return _account(row) if row is not None else None


def revive(connection: sa.Connection, account_id: str) -> None:
    """Make an account valid again, without end."""
    connection.execute(tokens.update().where(tokens.c.id == account_id).values(revoked_at=None, expires_at=None))


def rename(connection: sa.Connection, account_id: str, label: str) -> None:
    connection.execute(tokens.update().where(tokens.c.id == account_id).values(label=label))


def limited_to(*courses: str) -> str:
    """What the column `courses` holds for a token that is limited to these."""
    return json.dumps(list(courses))


def matching(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Account]:
    """The accounts whose rows fit, the newest first."""
    query = sa.select(tokens).where(*conditions).order_by(tokens.c.created_at.desc(), tokens.c.id)
    return [_account(row) for row in connection.execute(query)]


def closed(connection: sa.Connection) -> list[Account]:
    """The people's own accounts that are revoked."""
    own = sa.select(users.c.account)
    return matching(connection, tokens.c.id.in_(own), tokens.c.revoked_at.is_not(None))


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
    """As the row has it: of a person, `courses` is what the token is limited to, without roles."""
    role = Role(row.role)
    limits = {course: role for course in json.loads(row.courses)} if row.courses is not None else None
    return Account(
        id=row.id,
        role=role,
        student=row.student,
        label=row.label,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        user=row.user,
        courses=limits if role is not Role.PERSON else limits or {},
        created_by=row.created_by,
    )
