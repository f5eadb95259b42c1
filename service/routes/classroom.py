"""A teacher's question about a class goes in, with whom it is about; JSON, or a table for a spreadsheet, comes out."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from grader.report import Verdict
from grader.unit import Unit
from service import links, offerings, page_keys, schedules, walltime
from service.classroom import (
    answers,
    course_tests,
    misconceptions,
    mutants,
    overview,
    selection,
    sheets,
    students,
)
from service.classroom.selection import Selection
from service.database import reading
from service.dependencies import ClassReader, CourseId, Served, Wanted
from service.offerings import Offering
from service.posted import NAME_CHARS, STORABLE
from service.problems import documented

T = TypeVar("T")

router = APIRouter(tags=["class"])

HERE = "/v1/courses/{course}/units/{unit}"
MOST_ROWS = 2_000
MOST_CHARS = 400

Name = Annotated[str | None, Query(max_length=NAME_CHARS, pattern=STORABLE)]
After = Annotated[str | None, Query(max_length=1_000, description="`next` of the page before, without its path")]


class Format(StrEnum):
    JSON = "json"
    CSV = "csv"


InFormat = Annotated[Format, Query(description="csv: all rows as a table that a spreadsheet opens, in UTF-8")]


@dataclass(frozen=True)
class Asked:
    """Whom a question is about, and the course and unit it names."""

    of: Selection
    course: Offering
    unit: Unit
    now: float

    @property
    def said(self) -> dict[str, Any]:
        """What every answer begins with."""
        at = walltime.show(self.now, self.course.timezone)
        return {"course": self.course.id, "unit": self.unit.id, "at": at}

    def sheet(self, name: str, text: str) -> Response:
        disposition = f'attachment; filename="{self.course.id}-{self.unit.id}-{name}.csv"'
        return Response(text, media_type=sheets.MEDIA_TYPE, headers={"Content-Disposition": disposition})


def asked(
    account: ClassReader,
    course: CourseId,
    unit: Wanted,
    service: Served,
    section: Name = None,
    student: Name = None,
    search: Annotated[Name, Query(description="a part of the student's name or id")] = None,
    verdict: Annotated[Verdict | None, Query(description="on the student's latest graded submission")] = None,
    since: Annotated[schedules.Moment, Query(description="that submission was received then or later")] = None,
    until: Annotated[schedules.Moment, Query(description="and before then")] = None,
) -> Asked:
    """Whom the question is about; 404 for a course or unit that is not there, 422 for a time that cannot be read."""
    with reading(service.engine) as connection:
        found = offerings.course_of(connection, course)
    times = [schedules.read_time(text, name, found.timezone) for name, text in (("since", since), ("until", until))]
    return Asked(
        Selection(course, unit.id, section or None, student or None, search or None, verdict, *times),
        found,
        unit,
        service.clock(),
    )


AboutClass = Annotated[Asked, Depends(asked)]


def _described(says: str) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that gives JSON or a table."""
    table = {"text/csv": {"schema": {"type": "string"}}}
    return {200: {"description": says, "content": table}, **documented(401, 403, 404, 422)}


@router.get(
    HERE + "/overview",
    summary="How a class is doing with a unit",
    response_model=answers.OverviewAnswer,
    responses=_described("Figures; as a table, what was submitted when"),
)
def class_overview(
    about: AboutClass,
    service: Served,
    by: Annotated[overview.By | None, Query(description="the steps of the series; without it, what fits")] = None,
    format: InFormat = Format.JSON,
) -> Any:
    with reading(service.engine) as connection:
        answer = overview.of_class(connection, about.of, about.course, by, service.paces, about.now)
    return about.sheet("series", sheets.series(answer.series)) if format is Format.CSV else answer


@router.get(
    HERE + "/tests",
    summary="Which course tests the class passes, and where it is stuck",
    response_model=answers.TestsAnswer,
    responses=_described("A row for each course test"),
)
def class_tests(about: AboutClass, service: Served, format: InFormat = Format.JSON) -> Any:
    with reading(service.engine) as connection:
        count, rows = course_tests.of_class(connection, about.of, about.unit)
    if format is Format.CSV:
        return about.sheet("tests", sheets.tests(rows))
    return answers.TestsAnswer(**about.said, students=count, tests=rows)


class Table(StrEnum):
    MUTANTS = "mutants"
    MATRIX = "matrix"


@router.get(
    HERE + "/mutants",
    summary="Which mutants the class's tests catch",
    response_model=answers.MutantsAnswer,
    responses=_described(
        "Mutants, their categories, and a page of the matrix; as a table, mutants or the whole matrix"
    ),
)
def class_mutants(
    request: Request,
    about: AboutClass,
    service: Served,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS, description="students on a page of the matrix")] = 200,
    after: After = None,
    format: InFormat = Format.JSON,
    table: Annotated[Table, Query(description="for format=csv")] = Table.MUTANTS,
) -> Any:
    with reading(service.engine) as connection:
        rows, categories, facing = mutants.of_class(connection, about.of, about.unit)
        known = selection.people(connection, about.of)
    if format is Format.CSV and table is Table.MATRIX:
        matrix = mutants.matrix_rows(facing, known)
        return about.sheet("matrix", sheets.matrix([row.id for row in rows], matrix))
    if format is Format.CSV:
        return about.sheet("mutants", sheets.mutants(rows))
    page, key = page_keys.page(facing, lambda each: (0.0, each.latest.student), "student", limit, after)
    return answers.MutantsAnswer(
        **about.said,
        students=len(facing),
        mutants=rows,
        categories=categories,
        matrix=mutants.matrix_rows(page, known),
        next=links.next_page(request, after=key),
    )


@router.get(
    HERE + "/misconceptions",
    summary="What the class takes for right and is not",
    response_model=answers.MisconceptionsAnswer,
    responses=_described("Misconceptions; as a table, a row for each student who has one"),
)
def class_misconceptions(
    about: AboutClass,
    service: Served,
    who: Annotated[int, Query(ge=0, le=MOST_ROWS, description="how many students to name of each")] = 20,
    format: InFormat = Format.JSON,
) -> Any:
    with reading(service.engine) as connection:
        found = misconceptions.found_in(connection, about.of, about.unit)
        known = selection.people(connection, about.of)
    named = found.students if format is Format.CSV else who
    told = misconceptions.of_class(found, about.unit, known, named)
    if format is Format.CSV:
        return about.sheet("misconceptions", sheets.misconceptions(told))
    return answers.MisconceptionsAnswer(
        **about.said, students=found.students, rejecting=found.rejecting, misconceptions=told
    )


@router.get(
    HERE + "/students",
    summary="How far each student of a class is, and who needs help",
    response_model=answers.StudentsAnswer,
    responses=_described("A page of students; as a table, all of them"),
)
def class_students(
    request: Request,
    about: AboutClass,
    service: Served,
    state: answers.State | None = None,
    at_risk: Annotated[bool, Query(description="only those somebody should look at")] = False,
    failing: Annotated[str | None, Query(max_length=MOST_CHARS, description="a course test they do not pass")] = None,
    survived: Annotated[str | None, Query(max_length=MOST_CHARS, description="a mutant they do not catch")] = None,
    believes: Annotated[str | None, Query(max_length=MOST_CHARS, description="the key of a misconception")] = None,
    sort: students.Sort = students.Sort.STUDENT,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 50,
    after: After = None,
    format: InFormat = Format.JSON,
) -> Any:
    narrowed = students.Narrowed(state, at_risk, failing, survived, believes)
    with reading(service.engine) as connection:
        found = students.of_class(connection, about.of, narrowed, sort, about.unit, about.now)
    if format is Format.CSV:
        return about.sheet("students", sheets.students(students.rows(found, about.course)))
    page, key = page_keys.page(found, students.order(sort), sort.value, limit, after)
    return answers.StudentsAnswer(
        **about.said,
        total=len(found),
        at_risk=sum(bool(student.risk) for student in found),
        students=students.rows(page, about.course),
        next=links.next_page(request, after=key),
    )
