"""Somebody whom a platform names goes in; the person they are here, a member of the course, comes out.

A platform speaks for the people it named first. Somebody new is taken for a student whom the course lists already, if
exactly one bears the same id or address; nobody else's account is opened by what a platform says. (docs/decisions/0194)
"""

import hashlib
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import sqlalchemy as sa

from service import accounts, audit, students
from service.accounts import Role
from service.audit import By
from service.database import take_turns
from service.lti.memberships import Listed
from service.people import members, users
from service.people.members import LastTeacher, Source
from service.people.users import User
from service.tables import lti_people
from service.tables import members as member_rows
from service.tables import users as user_rows

STUDENT_CHARS = 128


class Named(Protocol):
    """What a platform says of a person, in a launch or in its list of members."""

    @property
    def subject(self) -> str: ...
    @property
    def role(self) -> Role | None: ...
    @property
    def name(self) -> str: ...
    @property
    def email(self) -> str: ...
    @property
    def sourced_id(self) -> str: ...


def person_of(connection: sa.Connection, platform: str, named: Named, course: str | None, by: By) -> User:
    """The person that the platform means, who is made if there is none. `course`: the one they come from, if it is
    connected."""
    take_turns(connection, "lti-people")
    found = known(connection, platform, named.subject)
    if found is not None:
        if named.name and named.name != found.name:
            users.change(connection, found, name=named.name, admin=found.admin)
        return found
    listed = _listed(connection, platform, named, course) if course is not None else None
    person = listed or _add(connection, platform, named, by)
    connection.execute(
        lti_people.insert().values(platform=platform, subject=named.subject, user=person.id, created_at=by.now)
    )
    audit.note(
        connection,
        by,
        action="lti_person.link" if listed is not None else "lti_person.add",
        object=person.account,
        student=person.student,
        course=course,
        detail={"platform": platform},
    )
    return person


def known(connection: sa.Connection, platform: str, subject: str) -> User | None:
    """The person a platform named before by this id."""
    query = sa.select(lti_people.c.user).where(lti_people.c.platform == platform, lti_people.c.subject == subject)
    user = connection.execute(query).scalar_one_or_none()
    return users.find(connection, user) if user is not None else None


def is_open(connection: sa.Connection, person: User, now: float) -> bool:
    """Whether the person is let in: an account that was closed here stays closed."""
    return accounts.find(connection, person.account, now) is not None


def enrol(connection: sa.Connection, course: str, person: User, role: Role, by: By) -> bool:
    """Make the person a member; whether anything changed. What was said of them here, and not by a platform, stands."""
    before = members.find(connection, course, person.id)
    if before is not None and before.source is not Source.LTI:
        return False
    try:
        return members.put(
            connection, course, person, role, before.section if before is not None else "", Source.LTI, by
        )
    except LastTeacher:
        return False


@dataclass(frozen=True)
class Taken:
    """What a list brought. `students` are those on it, by the platform's id."""

    listed: int
    changed: int
    left: int
    students: tuple[tuple[str, User], ...]


def take_list(connection: sa.Connection, platform: str, course: str, listed: Sequence[Listed], by: By) -> Taken:
    """Make members of everybody on a platform's list, and none of those it brought before who are on it no more.

    An empty list is no list: nobody leaves by it.
    """
    changed, students_here = 0, []
    here = [(each, each.role) for each in listed if each.active and each.role is not None]
    for each, role in here:
        person = person_of(connection, platform, each, course, by)
        changed += enrol(connection, course, person, role, by)
        if role is Role.STUDENT:
            students_here.append((each.subject, person))
    gone = _brought(connection, platform, course, without={each.subject for each, _ in here}) if here else []
    for person in gone:
        with suppress(LastTeacher):
            members.remove(connection, course, person, by)
    return Taken(len(here), changed, len(gone), tuple(students_here))


def named_students(connection: sa.Connection, platform: str, course: str) -> list[tuple[str, User]]:
    """The students of the course whom the platform named, by its ids."""
    query = (
        sa.select(lti_people.c.subject, lti_people.c.user)
        .join(member_rows, member_rows.c.user == lti_people.c.user)
        .where(
            lti_people.c.platform == platform,
            member_rows.c.course == course,
            member_rows.c.role == Role.STUDENT.value,
        )
    )
    found = connection.execute(query).all()
    return [(row.subject, person) for row in found if (person := users.find(connection, row.user)) is not None]


def _listed(connection: sa.Connection, platform: str, named: Named, course: str) -> User | None:
    """The one student of the course, listed here and claimed by no platform, who bears what the platform says."""
    said = {users.folded(text) for text in (named.email, named.sourced_id) if text}
    if named.role is not Role.STUDENT or not said:
        return None
    claimed = sa.select(lti_people.c.user)
    staff = sa.select(member_rows.c.user).where(member_rows.c.role != Role.STUDENT.value)
    query = (
        sa.select(user_rows.c.id)
        .join(member_rows, member_rows.c.user == user_rows.c.id)
        .where(
            member_rows.c.course == course,
            sa.or_(user_rows.c.login.in_(said), sa.func.lower(user_rows.c.student).in_(said)),
            sa.not_(user_rows.c.admin),
            user_rows.c.id.not_in(claimed),
            user_rows.c.id.not_in(staff),
        )
    )
    found = connection.execute(query.limit(2)).scalars().all()
    return users.find(connection, found[0]) if len(found) == 1 else None


def _add(connection: sa.Connection, platform: str, named: Named, by: By) -> User:
    """A new person, under a name that nothing stored bears: what the platform calls them, or one of our own."""
    own = f"lti-{hashlib.sha256(f'{platform} {named.subject}'.encode()).hexdigest()[:16]}"
    for student in (users.folded(named.sourced_id), users.folded(named.email), own):
        if student and _is_free(connection, student):
            made = users.add(connection, login=student, name=named.name, student=student, now=by.now)
            return made
    raise AssertionError("a digest was taken")


def _is_free(connection: sa.Connection, student: str) -> bool:
    return (
        len(student) <= STUDENT_CHARS
        and student.isprintable()
        and users.find_by_login(connection, student) is None
        and users.find_by_student(connection, student) is None
        and not students.is_known(connection, student)
    )


def _brought(connection: sa.Connection, platform: str, course: str, without: Collection[str]) -> list[User]:
    """Members of the course who came from this platform and are not among these subjects."""
    query = (
        sa.select(member_rows.c.user, lti_people.c.subject)
        .join(lti_people, lti_people.c.user == member_rows.c.user)
        .where(
            member_rows.c.course == course, member_rows.c.source == Source.LTI.value, lti_people.c.platform == platform
        )
    )
    gone = [row.user for row in connection.execute(query) if row.subject not in without]
    return [person for user in gone if (person := users.find(connection, user)) is not None]
