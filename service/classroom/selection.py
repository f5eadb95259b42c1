"""What a teacher asks about goes in; the students it is about come out, each with the latest submission that is graded.

Everything is asked of a student's latest submission: where the class stands now, with one voice for each student
however often they submit. (docs/decisions/0181)
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa

from grader.report import Verdict
from service.classroom import roster
from service.classroom.facts import Layout
from service.classroom.roster import Person
from service.runs import UNFINISHED, Status
from service.tables import facts, layouts, progress, runs, submissions


@dataclass(frozen=True)
class Selection:
    """A class, or a part of it. `since`, `until` and `verdict` are those of a student's latest graded submission.

    `student` names one exactly, `search` is a part of their name or id.
    """

    course: str
    unit: str
    section: str | None = None
    student: str | None = None
    search: str | None = None
    verdict: Verdict | None = None
    since: float | None = None
    until: float | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is about everyone, also those who have nothing that is graded."""
        return (self.verdict, self.since, self.until) == (None, None, None)


class Latest(NamedTuple):
    """A student's progress, and the facts of the latest submission. `tests` and `mutants` as in facts.py."""

    student: str
    graded: int
    first_at: float
    passed_at: float | None
    best_submission: str
    best_score: float | None
    since_best: int
    submission: str
    received_at: float
    verdict: str
    score: float | None
    tests_passed: int
    tests_total: int
    killed: int
    mutants_total: int
    rejecting: int
    layout: str
    tests: str
    mutants: str


_OF_PROGRESS = ("student", "graded", "first_at", "passed_at", "best_submission", "best_score", "since_best")
_COLUMNS = [getattr(progress.c if name in _OF_PROGRESS else facts.c, name) for name in Latest._fields]


def latest(connection: sa.Connection, wanted: Selection) -> list[Latest]:
    """The students with something that is graded, by name."""
    query = sa.select(*_COLUMNS).select_from(progress.join(facts, facts.c.run == progress.c.run))
    return list(map(Latest._make, connection.execute(query.where(*_of_latest(wanted)).order_by(progress.c.student))))


def of_runs(column: sa.ColumnElement[str], wanted: Selection) -> sa.ColumnElement[bool]:
    """That a run is the latest that is graded of one of these students."""
    query = sa.select(progress.c.run).select_from(progress.join(facts, facts.c.run == progress.c.run))
    return column.in_(query.where(*_of_latest(wanted)))


def _of_latest(wanted: Selection) -> list[sa.ColumnElement[bool]]:
    found = of_students(progress, wanted)
    if wanted.verdict is not None:
        found.append(facts.c.verdict == wanted.verdict.value)
    return [*found, *_in_time(progress.c.latest_at, wanted)]


def _in_time(column: sa.ColumnElement[float], wanted: Selection) -> list[sa.ColumnElement[bool]]:
    """From `since` on, and before `until`."""
    found = [] if wanted.since is None else [column >= wanted.since]
    return found if wanted.until is None else [*found, column < wanted.until]


def of_students(table: sa.Table, wanted: Selection) -> list[sa.ColumnElement[bool]]:
    """That a row with course, unit and student is one of these students'."""
    found = [
        table.c.course == wanted.course,
        table.c.unit == wanted.unit,
        roster.of_class(table.c.student, wanted.course, wanted.section),
    ]
    if wanted.student is not None:
        found.append(table.c.student == wanted.student)
    if wanted.search is not None:
        found.append(roster.is_called(table.c.student, wanted.search))
    return found


def sent_between(wanted: Selection) -> list[sa.ColumnElement[bool]]:
    """That a submission is one of these students', and was received in that time."""
    return [*of_students(submissions, wanted), *_in_time(submissions.c.received_at, wanted)]


def people(connection: sa.Connection, wanted: Selection) -> dict[str, Person]:
    """Who is enrolled, of those the selection names by section, name or id."""
    found = roster.enrolled(connection, wanted.course)
    return {person.student: person for person in found.values() if _is_named(person, wanted)}


def _is_named(person: Person, wanted: Selection) -> bool:
    text = wanted.search.casefold() if wanted.search is not None else ""
    return (
        wanted.section in (None, person.section)
        and wanted.student in (None, person.student)
        and (text in person.student.casefold() or text in person.name.casefold())
    )


def layouts_of(connection: sa.Connection, found: Sequence[Latest]) -> Mapping[str, Layout]:
    """The layouts of these rows, by id."""
    ids = {each.layout for each in found}
    query = sa.select(layouts.c.id, layouts.c.names).where(layouts.c.id.in_(ids))
    return {row.id: Layout.read(row.names) for row in connection.execute(query)}


@dataclass(frozen=True)
class Unfinished:
    """Of a student, the submissions that wait or are being graded, and those of which nothing came."""

    pending: int = 0
    failed: int = 0  # on our side
    returned: int = 0  # attempts that are not used up, as nothing came of them


_CAME_TO_NOTHING = (Status.ERROR, Status.CANCELLED)
_WITHOUT_REPORT = (Status.QUEUED, Status.RUNNING, *_CAME_TO_NOTHING)
_IDS_AT_A_TIME = 500


def unfinished(connection: sa.Connection, wanted: Selection) -> dict[str, Unfinished]:
    """By student, those who have any.

    Such runs are few: they are found by status first, which no database does by itself in one statement.
    """
    query = sa.select(runs.c.id, runs.c.status).where(runs.c.status.in_(_WITHOUT_REPORT), runs.c.unit == wanted.unit)
    statuses = {row.id: Status(row.status) for row in connection.execute(query)}
    ids = list(statuses)
    pending, failed, returned = Counter[str](), Counter[str](), Counter[str]()
    for start in range(0, len(ids), _IDS_AT_A_TIME):
        these = sa.select(submissions.c.student, submissions.c.run, submissions.c.counted)
        these = these.join(runs, runs.c.submission == submissions.c.id).where(submissions.c.run == runs.c.id)
        these = these.where(runs.c.id.in_(ids[start : start + _IDS_AT_A_TIME]), *of_students(submissions, wanted))
        for row in connection.execute(these):
            status = statuses[row.run]
            pending[row.student] += not status.ended
            failed[row.student] += status is Status.ERROR
            returned[row.student] += bool(row.counted) and status in _CAME_TO_NOTHING
    return {name: Unfinished(pending[name], failed[name], returned[name]) for name in pending}


def version(connection: sa.Connection, wanted: Selection) -> str:
    """Another text whenever the class's views may have changed, for pages that look again and again. Cheap."""
    count = sa.select(sa.func.count()).where(submissions.c.course == wanted.course, submissions.c.unit == wanted.unit)
    moving = sa.select(sa.func.count(), sa.func.sum(runs.c.version)).where(UNFINISHED)
    last = sa.select(runs.c.id, runs.c.version).where(runs.c.finished_at.is_not(None))
    parts = [
        *connection.execute(count).one(),
        *connection.execute(moving).one(),
        *(connection.execute(last.order_by(runs.c.finished_at.desc()).limit(1)).first() or ()),
    ]
    return "-".join(str(part) for part in parts)
