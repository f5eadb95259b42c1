"""Who has which part in a course goes in and is stored; a course's members, and a person's courses, come out.

Every change is in the audit log, written by the function that makes it.
"""

from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

from service import audit
from service.accounts import OF_MEMBERS, Role
from service.audit import By
from service.database import insert_or_ignore
from service.people.users import User
from service.tables import courses, members, users

SECTION_CHARS = 128


class Source(StrEnum):
    """From where a membership came: what a learning platform says is the platform's to take back."""

    CSV = "csv"
    LTI = "lti"
    API = "api"
    PAGE = "page"


@dataclass(frozen=True)
class Member:
    """A person in a course. `section` is '' for none."""

    user: User
    role: Role
    section: str
    source: Source
    created_at: float


@dataclass(frozen=True)
class Part:
    """A person's part in one course."""

    course: str
    title: str
    role: Role
    section: str
    archived: bool
    since: float  # UTC seconds


class LastTeacher(ValueError):
    """The course would have no teacher any more."""


def put(connection: sa.Connection, course: str, user: User, role: Role, section: str, source: Source, by: By) -> bool:
    """Give the person this part in the course, in place of the one before; False if nothing changes.

    Raises ValueError for a role that no member has, LastTeacher if the course's only teacher would be one no more.
    """
    if role not in OF_MEMBERS:
        raise ValueError(f"no member of a course is {role.value}")
    before = find(connection, course, user.id)
    if before is not None and (before.role, before.section) == (role, section):
        return False
    if before is not None and role is not Role.TEACHER:
        _check_other_teacher(connection, course, before)
    values = {"role": role.value, "section": section}
    if before is None:
        keys = {"course": course, "user": user.id, "source": source.value, "created_at": by.now}
        connection.execute(insert_or_ignore(connection, members, {**keys, **values}))
    connection.execute(members.update().where(members.c.course == course, members.c.user == user.id).values(values))
    detail = {**values, "source": source.value}
    if before is not None:
        detail["before"] = before.role.value
    _note(connection, "member.add" if before is None else "member.change", course, user, by, detail)
    return True


def remove(connection: sa.Connection, course: str, user: User, by: By) -> bool:
    """Take the person's part in the course away; what they submitted stays. False if they had none.

    Raises LastTeacher.
    """
    before = find(connection, course, user.id)
    if before is None:
        return False
    _check_other_teacher(connection, course, before)
    connection.execute(members.delete().where(members.c.course == course, members.c.user == user.id))
    _note(connection, "member.remove", course, user, by, {"role": before.role.value, "section": before.section})
    return True


def find(connection: sa.Connection, course: str, user_id: str) -> Member | None:
    row = connection.execute(_select(course).where(members.c.user == user_id)).one_or_none()
    return _member(row) if row is not None else None


def of_course(
    connection: sa.Connection, course: str, role: Role | None = None, section: str | None = None
) -> list[Member]:
    """A course's members by name, of one role or section if these are given."""
    query = _select(course)
    if role is not None:
        query = query.where(members.c.role == role.value)
    if section is not None:
        query = query.where(members.c.section == section)
    return [_member(row) for row in connection.execute(query.order_by(users.c.name, users.c.login))]


def sections(connection: sa.Connection, course: str) -> list[str]:
    """The sections a course has."""
    query = sa.select(members.c.section).distinct().where(members.c.course == course, members.c.section != "")
    return list(connection.execute(query.order_by(members.c.section)).scalars())


def of_user(connection: sa.Connection, user_id: str) -> list[Part]:
    """The courses of a person, by title."""
    query = (
        sa.select(members, courses.c.title, courses.c.archived_at)
        .join(courses, courses.c.id == members.c.course)
        .where(members.c.user == user_id)
    )
    return [
        Part(row.course, row.title, Role(row.role), row.section, row.archived_at is not None, row.created_at)
        for row in connection.execute(query.order_by(courses.c.title, courses.c.id))
    ]


def _check_other_teacher(connection: sa.Connection, course: str, member: Member) -> None:
    if member.role is not Role.TEACHER:
        return
    others = sa.select(members.c.user).where(
        members.c.course == course, members.c.role == Role.TEACHER.value, members.c.user != member.user.id
    )
    if connection.execute(others.limit(1)).first() is None:
        raise LastTeacher(f"{course} would have no teacher")


def _note(connection: sa.Connection, action: str, course: str, user: User, by: By, detail: dict[str, str]) -> None:
    audit.note(
        connection,
        by,
        action=action,
        object=user.account,
        student=user.student,
        course=course,
        detail=detail,
    )


def _select(course: str) -> sa.Select[tuple[object, ...]]:
    part = (members.c.role, members.c.section, members.c.source, members.c.created_at.label("member_since"))
    return sa.select(users, *part).join(users, users.c.id == members.c.user).where(members.c.course == course)


def _member(row: sa.Row[tuple[object, ...]]) -> Member:
    return Member(User.of(row), Role(row.role), row.section, Source(row.source), row.member_since)
