"""A class goes in; every student comes out: how far, how many attempts, the best and the latest, and who needs help."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import sqlalchemy as sa

from grader.report import Verdict
from grader.unit import Unit
from service import offerings, overrides, walltime
from service.classroom import misconceptions, mutants, selection
from service.classroom.answers import LatestAnswer, RiskReason, State, StudentRow, shown
from service.classroom.course_tests import not_passed
from service.classroom.risk import Situation, risks
from service.classroom.roster import Person
from service.classroom.selection import Latest, Selection, Unfinished
from service.offerings import Assignment, Extension, Offering
from service.tables import submissions


class Sort(StrEnum):
    """Within equals by student. At risk: those with the most reasons first."""

    STUDENT = "student"
    RISK = "risk"
    BEST = "-score"
    WORST = "score"
    NEWEST = "-latest"
    OLDEST = "latest"


@dataclass(frozen=True)
class Narrowed:
    """Which students of the class: by state, those at risk, and by what their latest submission shows."""

    state: State | None = None
    at_risk: bool = False
    failing: str | None = None  # a course test
    survived: str | None = None  # a mutant
    believes: str | None = None  # the key of a misconception


class Student(NamedTuple):
    """Everything that a row says, times in UTC seconds."""

    person: Person
    enrolled: bool
    submissions: int
    attempts_used: int
    attempts_left: int | None
    pending: int
    due_at: float | None
    set_by_hand: float | None
    latest: Latest | None
    risk: tuple[RiskReason, ...] = ()

    @property
    def state(self) -> State:
        if self.latest is not None and self.latest.passed_at is not None:
            return State.PASSED
        return State.UNDER_WAY if self.submissions else State.NOT_BEGUN


def of_class(
    connection: sa.Connection, wanted: Selection, narrowed: Narrowed, sort: Sort, unit: Unit, now: float
) -> list[Student]:
    """The students in the order asked for."""
    found = [each for each in everyone(connection, wanted, now) if _has(each, narrowed)]
    if narrowed.failing or narrowed.survived or narrowed.believes:
        names = _showing(connection, wanted, narrowed, unit, [each.latest for each in found if each.latest])
        found = [each for each in found if each.person.student in names]
    return sorted(found, key=order(sort))


def _has(student: Student, narrowed: Narrowed) -> bool:
    return narrowed.state in (None, student.state) and (bool(student.risk) or not narrowed.at_risk)


def _showing(
    connection: sa.Connection, wanted: Selection, narrowed: Narrowed, unit: Unit, latest: Sequence[Latest]
) -> set[str]:
    """The students whose latest submission fails the test, misses the mutant and shows the belief, as far as asked."""
    layouts = selection.layouts_of(connection, latest)
    names = {
        each.student
        for each in latest
        if (narrowed.failing is None or narrowed.failing in not_passed(each, layouts))
        and (narrowed.survived is None or narrowed.survived in mutants.survivors(each, layouts))
    }
    if narrowed.believes is not None:
        signs = misconceptions.found_in(connection, wanted, unit, latest).signs
        names &= {sign.student for sign in signs.get(narrowed.believes, ())}
    return names


def everyone(connection: sa.Connection, wanted: Selection, now: float) -> list[Student]:
    """Who is enrolled or has submitted, of those the selection is about."""
    latest = {each.student: each for each in selection.latest(connection, wanted)}
    waiting = selection.unfinished(connection, wanted)
    sent = _sent(connection, wanted)
    known = selection.people(connection, wanted)
    asked = offerings.assignment(connection, wanted.course, wanted.unit) or Assignment()
    granted = {each.student: each for each in offerings.extensions(connection, wanted.course, wanted.unit)}
    names = sorted(latest.keys() | known.keys() | sent.keys()) if wanted.is_whole else sorted(latest)
    by_hand = overrides.of_unit(connection, wanted.course, wanted.unit)
    nothing = Unfinished()
    found = [
        _student(
            known.get(name) or Person(name),
            name in known,
            sent.get(name, (0, 0)),
            latest.get(name),
            waiting.get(name, nothing),
            asked,
            granted.get(name),
            by_hand[name].score if name in by_hand else None,
        )
        for name in names
    ]
    idle = any(each.state is State.NOT_BEGUN for each in found)
    began = _began(connection, wanted) if idle else 1.0
    return [_with_risk(each, began, now) for each in found]


def _began(connection: sa.Connection, wanted: Selection) -> float:
    """The share of the whole class that has submitted something, whoever of it is asked about."""
    whole = Selection(wanted.course, wanted.unit)
    query = sa.select(submissions.c.student).distinct().where(*selection.of_students(submissions, whole))
    sent = set(connection.execute(query).scalars())
    return len(sent) / len(sent | selection.people(connection, whole).keys())


def _student(
    person: Person,
    enrolled: bool,
    sent: tuple[int, int],
    latest: Latest | None,
    waiting: Unfinished,
    asked: Assignment,
    granted: Extension | None,
    set_by_hand: float | None,
) -> Student:
    count, counted = sent
    used = counted - waiting.returned
    most = offerings.attempts_for(asked, granted)
    return Student(
        person=person,
        enrolled=enrolled,
        submissions=count,
        attempts_used=used,
        attempts_left=max(0, most - used) if most is not None else None,
        pending=waiting.pending,
        due_at=offerings.times_for(asked, granted).due_at,
        set_by_hand=set_by_hand,
        latest=latest,
    )


def _sent(connection: sa.Connection, wanted: Selection) -> dict[str, tuple[int, int]]:
    """By student, how many submissions there are, and how many of them are attempts unless nothing came of them."""
    attempts = sa.func.count(sa.case((submissions.c.counted, 1)))
    query = sa.select(submissions.c.student, sa.func.count(), attempts)
    query = query.where(*selection.of_students(submissions, wanted)).group_by(submissions.c.student)
    return {row[0]: (row[1], row[2]) for row in connection.execute(query)}


def _with_risk(student: Student, began: float, now: float) -> Student:
    found = risks(_situation(student), began, now) if student.state is not State.PASSED else ()
    return student._replace(risk=found) if found else student


def _situation(student: Student) -> Situation:
    latest = student.latest
    return Situation(
        graded=latest.graded if latest else 0,
        pending=student.pending,
        since_best=latest.since_best if latest else 0,
        best_score=latest.best_score if latest else None,
        latest_at=latest.received_at if latest else None,
        due_at=student.due_at,
        attempts_used=student.attempts_used,
        attempts_left=student.attempts_left,
    )


Key = tuple[float, str]


def order(sort: Sort) -> Callable[[Student], Key]:
    """What the students are sorted by, ascending: a number, and the student's id."""
    number = _NUMBERS[sort]
    return lambda student: (number(student), student.person.student)


def _score(student: Student) -> float:
    latest = student.latest
    return latest.best_score if latest and latest.best_score is not None else -1.0


def _at(student: Student) -> float:
    return student.latest.received_at if student.latest else 0.0


_NUMBERS: Mapping[Sort, Callable[[Student], float]] = {
    Sort.STUDENT: lambda student: 0.0,
    Sort.RISK: lambda student: -len(student.risk),
    Sort.BEST: lambda student: -_score(student),
    Sort.WORST: _score,
    Sort.NEWEST: lambda student: -_at(student),
    Sort.OLDEST: _at,
}


def rows(found: Sequence[Student], course: Offering) -> tuple[StudentRow, ...]:
    """The students as they are shown, times on the clocks of the course."""
    return tuple(_row(student, course) for student in found)


def _row(student: Student, course: Offering) -> StudentRow:
    latest = student.latest
    return StudentRow(
        student=student.person.student,
        name=student.person.name,
        section=student.person.section,
        enrolled=student.enrolled,
        state=student.state,
        submissions=student.submissions,
        attempts_used=student.attempts_used,
        attempts_left=student.attempts_left,
        pending=student.pending,
        passed_at=shown(latest.passed_at, course.timezone) if latest else None,
        best_submission=latest.best_submission if latest else None,
        best_score=latest.best_score if latest else None,
        set_by_hand=student.set_by_hand,
        since_best=latest.since_best if latest else 0,
        latest=_latest(latest, course) if latest else None,
        due_at=shown(student.due_at, course.timezone),
        risk=student.risk,
    )


def _latest(latest: Latest, course: Offering) -> LatestAnswer:
    return LatestAnswer(
        submission=latest.submission,
        received_at=walltime.show(latest.received_at, course.timezone),
        verdict=Verdict(latest.verdict),
        score=latest.score,
        tests_passed=latest.tests_passed,
        tests_total=latest.tests_total,
        killed=latest.killed,
        mutants_total=latest.mutants_total,
        rejecting=latest.rejecting,
    )
