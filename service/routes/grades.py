"""A unit, or a student, goes in; grades come out: which submission counts, how late it was, and what is left of its
score.
"""

from datetime import datetime
from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from grader.report import Verdict
from service import grades, links, offerings, schedules, walltime, wording
from service.answers import Share
from service.database import reading
from service.dependencies import Caller, Served, Wanted, asked
from service.grades import Grade, View
from service.offerings import Offering
from service.overrides import Override
from service.posted import NAME_CHARS, STORABLE
from service.problems import Problem, documented

router = APIRouter(tags=["grades"])

MOST_STUDENTS = 10_000

InCourse = Annotated[str, Query(pattern=schedules.COURSE_ID)]
Viewed = Annotated[
    View | None,
    Query(description="which submission counts; without it, as the course says. as_submitted: before any regrade"),
]
Name = Annotated[str | None, Query(max_length=NAME_CHARS, pattern=STORABLE)]


class ByHandAnswer(BaseModel):
    """A grade that a teacher has set: it counts, whatever is submitted or regraded."""

    model_config = ConfigDict(frozen=True)

    score: Share
    reason: str
    set_at: datetime


class GradeAnswer(BaseModel):
    """A student's grade for a unit. Times have the offset of the course's zone."""

    model_config = ConfigDict(frozen=True)

    student: str
    unit: str
    due_at: datetime | None = Field(description="for this student")
    submission: str | None = Field(description="the one that counts; null while none has a report")
    received_at: datetime | None
    verdict: Verdict | None
    score: Share | None = Field(description="of the report; null where it has none")
    late_seconds: float | None
    penalty: Share | None = Field(description="the share of the score lost for being late")
    final_score: Share | None = Field(
        description="what is left of the score after the penalty, or what was set by hand"
    )
    by_hand: ByHandAnswer | None = Field(description="null: nothing was set by hand")
    attempts_used: int
    pending: int = Field(description="submissions that wait or are being graded")


class GradeList(BaseModel):
    model_config = ConfigDict(frozen=True)

    course: str
    grades: tuple[GradeAnswer, ...]


class GradePage(GradeList):
    unit: str
    next: str | None = Field(description="the next page; null on the last one")


@router.get(
    "/v1/units/{unit}/grades",
    summary="The grades of a class for a unit, by student",
    responses=documented(401, 403, 404, 422),
)
def class_grades(
    request: Request,
    account: Caller,
    unit: Wanted,
    service: Served,
    course: InCourse = schedules.DEFAULT_COURSE,
    view: Viewed = None,
    limit: Annotated[int, Query(ge=1, le=MOST_STUDENTS, description="students on a page")] = 1_000,
    after: Annotated[Name, Query(description="the last student of the page before")] = None,
) -> GradePage:
    within = asked(account, course)
    if not within.reads_all:
        raise Problem(403, "role_missing", wording.role_missing(within.role))
    with reading(service.engine) as connection:
        offering = _offering(connection, course)
        found, last = grades.of_class(connection, course, unit.id, view, after, limit)
    return GradePage(
        course=course,
        unit=unit.id,
        grades=tuple(_shown(each, offering) for each in found),
        next=links.next_page(request, after=last),
    )


@router.get(
    "/v1/grades",
    summary="A student's own grades in a course, by unit",
    responses=documented(401, 403, 422),
)
def own_grades(
    account: Caller,
    service: Served,
    course: InCourse = schedules.DEFAULT_COURSE,
    view: Viewed = None,
    student: Annotated[Name, Query(description="for teachers and learning platforms: whose")] = None,
) -> GradeList:
    within = asked(account, course)
    if within.student is not None and student not in (None, within.student):
        raise Problem(403, "student_mismatch", wording.STUDENT_MISMATCH)
    whose = within.student if within.student is not None else student
    if whose is None:
        raise Problem(422, "student_missing", wording.STUDENT_MISSING)
    with reading(service.engine) as connection:
        offering = _offering(connection, course)
        found = grades.of_student(connection, course, whose, view)
    return GradeList(course=course, grades=tuple(_shown(each, offering) for each in found))


def _offering(connection: sa.Connection, course: str) -> Offering:
    found = offerings.find(connection, course)
    if found is None:
        raise Problem(422, "course_unknown", wording.offering_unknown(course))
    return found


def _shown(found: Grade, course: Offering) -> GradeAnswer:
    graded = found.graded
    return GradeAnswer(
        student=found.student,
        unit=found.unit,
        due_at=walltime.show(found.due_at, course.timezone) if found.due_at is not None else None,
        submission=graded.sent.id if graded else None,
        received_at=walltime.show(graded.sent.received_at, course.timezone) if graded else None,
        verdict=graded.sent.verdict if graded else None,
        score=graded.sent.score if graded else None,
        late_seconds=round(graded.late.seconds, 3) if graded else None,
        penalty=round(graded.late.penalty, 6) if graded else None,
        final_score=round(found.final_score, 6) if found.final_score is not None else None,
        by_hand=_shown_by_hand(found.by_hand, course) if found.by_hand is not None else None,
        attempts_used=found.attempts_used,
        pending=found.pending,
    )


def _shown_by_hand(found: Override, course: Offering) -> ByHandAnswer:
    return ByHandAnswer(score=found.score, reason=found.reason, set_at=walltime.show(found.set_at, course.timezone))
