"""A class list as CSV goes in; what it would change in a course comes out, and then is done, all of it or nothing.

    text -> rows (by line) -> plan against the people that are there -> applied

The first line names the columns, in any order, by our names or those that learning platforms export. Nobody is removed:
who is in the course and not in the list is only named. (docs/decisions/0178)
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

from grader.digest import digest_of
from service.accounts import OF_MEMBERS, Role
from service.audit import By
from service.people import members, users, wording
from service.people.members import Member, Source
from service.people.users import User
from service.posted import NAME_CHARS as STUDENT_CHARS

MOST_ROWS = 5_000
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "login": ("login", "email", "e-mail", "email address", "e-mail address", "sis login id", "username", "mail"),
    "student": ("student", "student id", "id number", "sis user id", "matriculation number", "matrikelnummer", "id"),
    "name": ("name", "full name", "student name", "display name"),
    "first": ("first name", "firstname", "given name", "vorname"),
    "last": ("last name", "lastname", "surname", "family name", "nachname"),
    "section": ("section", "sections", "group", "groups", "class"),
    "role": ("role",),
}


@dataclass(frozen=True)
class Row:
    """One line of the list. `student` is '' if the list does not say it."""

    line: int
    login: str
    student: str
    name: str
    section: str
    role: Role


@dataclass(frozen=True)
class Fault:
    """What is wrong with a line, and how to put it right."""

    line: int
    message: str


class Change(StrEnum):
    NEW = "new"  # somebody the service does not know yet
    JOINS = "joins"  # known, and new in the course
    CHANGES = "changes"  # another role or section
    SAME = "same"


@dataclass(frozen=True)
class Step:
    """What a line of the list changes. `user` is None for somebody new; `note` says what of the line is not done."""

    row: Row
    change: Change
    user: User | None
    before: Member | None
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """What a list would change. `digest` is the same for the same list against the same people."""

    steps: tuple[Step, ...]
    faults: tuple[Fault, ...]
    absent: tuple[Member, ...]  # students of the course who are not in the list
    digest: str

    def count(self, change: Change) -> int:
        return sum(step.change is change for step in self.steps)

    @property
    def changes(self) -> int:
        return len(self.steps) - self.count(Change.SAME)


class Outdated(Exception):
    """The people have changed since the plan was shown."""


# -- read ------------------------------------------------------------------------------------------------------------


def decoded(data: bytes) -> str:
    """The text of a file as spreadsheets write it: UTF-8, UTF-16 with its mark, or Windows' western code page."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def read(text: str) -> tuple[list[Row], list[Fault]]:
    """The rows of a list, and what is wrong with it, each by its line (the first is 1)."""
    text = text.removeprefix("\ufeff")
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        lines = list(_lines(text, delimiter))
    except csv.Error as error:
        return [], [Fault(1, wording.roster_unreadable(str(error)))]
    if not lines:
        return [], [Fault(1, wording.ROSTER_EMPTY)]
    head_line, head = lines[0]
    columns, faults = _columns(head_line, head)
    if faults:
        return [], faults
    if len(lines) - 1 > MOST_ROWS:
        return [], [Fault(lines[MOST_ROWS + 1][0], wording.roster_long(MOST_ROWS))]
    rows = []
    for line, cells in lines[1:]:
        if len(cells) > len(head) and any(cells[len(head) :]):
            faults.append(Fault(line, wording.roster_wide(len(cells), len(head))))
            continue
        row = _row(line, {name: cells[at] if at < len(cells) else "" for name, at in columns.items()})
        if isinstance(row, Fault):
            faults.append(row)
        else:
            rows.append(row)
    twice = list(_twice(rows))
    bad = {fault.line for fault in twice}
    return [row for row in rows if row.line not in bad], sorted([*faults, *twice], key=lambda fault: fault.line)


def _lines(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of every line that is not empty, with the line each begins at."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begins_at = 1
    for cells in reader:
        cells = [cell.strip() for cell in cells]
        if any(cells):
            yield begins_at, cells
        begins_at = reader.line_num + 1


def _columns(line: int, head: Sequence[str]) -> tuple[dict[str, int], list[Fault]]:
    found: dict[str, int] = {}
    for at, cell in enumerate(head):
        for name, known in COLUMNS.items():
            if cell.casefold() in known and name not in found:
                found[name] = at
    if "login" not in found and "student" not in found:
        return {}, [Fault(line, wording.roster_without_login(head))]
    return found, []


def _row(line: int, cells: Mapping[str, str]) -> Row | Fault:
    student = cells.get("student", "")
    login = users.folded(cells.get("login", "") or student)
    name = cells.get("name", "") or f"{cells.get('first', '')} {cells.get('last', '')}".strip()
    section = cells.get("section", "")
    role = cells.get("role", "").casefold() or Role.STUDENT.value
    if not login:
        return Fault(line, wording.ROSTER_NOBODY)
    if not users.is_login(login):
        return Fault(line, wording.login_invalid(login))
    if role not in OF_MEMBERS:
        return Fault(line, wording.role_unknown(role))
    for what, value, most in (
        ("login", login, users.LOGIN_CHARS if student else STUDENT_CHARS),
        ("student", student, STUDENT_CHARS),
        ("name", name, users.NAME_CHARS),
        ("section", section, members.SECTION_CHARS),
    ):
        if len(value) > most or not value.isprintable():
            return Fault(line, wording.cell_invalid(what, most))
    return Row(line, login, student, name, section, Role(role))


def _twice(rows: Sequence[Row]) -> Iterator[Fault]:
    """The lines that name somebody whom another line before names."""
    for what in ("login", "student"):
        first: dict[str, int] = {}
        for row in rows:
            value = getattr(row, what)
            if value and first.setdefault(value, row.line) != row.line:
                yield Fault(row.line, wording.roster_twice(what, value, first[value]))


# -- plan and apply --------------------------------------------------------------------------------------------------


def plan(connection: sa.Connection, course: str, text: str) -> Plan:
    """What the list would change in the course."""
    rows, faults = read(text)
    there = {member.user.id: member for member in members.of_course(connection, course)}
    by_login = users.having_logins(connection, [row.login for row in rows])
    by_student = users.having_students(connection, [row.student or row.login for row in rows])
    steps, named = [], set[str]()
    for row in rows:
        step = _step(row, by_login.get(row.login), by_student.get(row.student or row.login), there)
        if isinstance(step, Fault):
            faults.append(step)
            continue
        if step.user is not None and step.user.id in named:
            faults.append(Fault(row.line, wording.ROSTER_SAME_PERSON))
            continue
        steps.append(step)
        if step.user is not None:
            named.add(step.user.id)
    absent = [each for each in there.values() if each.role is Role.STUDENT and each.user.id not in named]
    shown = [f"{step.row} {step.change.value} {step.user} {step.before}" for step in steps]
    return Plan(
        tuple(steps),
        tuple(sorted(faults, key=lambda fault: fault.line)),
        tuple(absent),
        digest_of((str(at), each.encode()) for at, each in enumerate(shown)),
    )


def _step(row: Row, by_login: User | None, by_student: User | None, there: Mapping[str, Member]) -> Step | Fault:
    if by_login is not None and row.student and by_login.student != row.student:
        return Fault(row.line, wording.login_of_another(row.login, row.student))
    user = by_login or by_student
    if user is None:
        return Step(row, Change.NEW, None, None)
    note = wording.login_kept(row.login) if user.login != row.login else ""
    before = there.get(user.id)
    if before is None:
        return Step(row, Change.JOINS, user, None, note)
    if row.role is Role.STUDENT and before.role is not Role.STUDENT:
        return Step(row, Change.SAME, user, before, wording.role_kept(before.role.value))
    same = (before.role, before.section) == (row.role, row.section)
    return Step(row, Change.SAME if same else Change.CHANGES, user, before, note)


def apply(connection: sa.Connection, course: str, text: str, by: By, digest: str | None = None) -> Plan:
    """Do what the plan says, if nothing is wrong with the list; returns the plan.

    Raises Outdated if `digest` is given and is not the plan's any more, LastTeacher.
    """
    found = plan(connection, course, text)
    if found.faults:
        return found
    if digest is not None and digest != found.digest:
        raise Outdated
    for step in found.steps:
        row, user = step.row, step.user
        if step.change is Change.SAME:
            continue
        if user is None:
            user = users.add(
                connection,
                login=row.login,
                name=row.name,
                student=row.student,
                now=by.now,
                created_by=by.who.id if by.who is not None else None,
            )
        elif not user.name and row.name:
            users.change(connection, user, name=row.name, admin=user.admin)
        members.put(connection, course, user, row.role, row.section, Source.CSV, by)
    return found
