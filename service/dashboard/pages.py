"""A request for a page about a class, or about a student of it, goes in; the page comes out.

Everything about a class is for its staff; a student sees their own page.
"""

from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from grader.unit import Unit
from service import (
    grades,
    limits,
    links,
    listing,
    offerings,
    views,
    wording,
)
from service.accounts import Account
from service.classroom import course_tests, misconceptions, mutants, overview, roster, selection, students
from service.classroom.selection import Selection
from service.dashboard import asked, by_hand, charts, drawings, live, units
from service.dashboard import wording as words
from service.dashboard.asked import Asked
from service.dashboard.at import At
from service.dashboard.saying import Saying
from service.database import reading
from service.dependencies import CourseId, RequestId, Served, Service, Wanted
from service.problems import Problem
from service.routes.offerings import Student
from service.views import PersonIn, Posted, Staff, Teaching

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

CLASS = "/courses/{course}/class"
UNIT = CLASS + "/{unit}"
STUDENT = UNIT + "/students/{student:path}"  # a name may hold a slash

STUDENTS_A_PAGE = 100
ROWS_OF_A_MATRIX = 50
MOST_STUCK = 3  # tests that are named at the top
MOST_SENT = 500  # submissions on a student's page


class View:
    """What every view of a class begins with: the course, the filters, and whether anything moved."""

    def __init__(
        self, connection: sa.Connection, request: Request, service: Service, account: Account, unit: Unit
    ) -> None:
        self.now = service.clock()
        self.course = offerings.course_of(connection, request.path_params["course"])
        self.at = At(self.course.id, unit.id)
        self.say = Saying(self.course.timezone)
        self.asked = Asked.of(request.query_params)
        self.wanted = self.asked.selection(self.course.id, unit.id, self.course.timezone)
        self.mark = live.mark(connection, request, account, self.wanted, service.course.digest, self.now)
        self.unchanged = live.unchanged(request, self.mark)
        self.sections = roster.sections(connection, self.course.id)
        self._rest = (request, service, account, unit)

    def page(self, tab: str, template: str, **values: Any) -> HTMLResponse:
        request, service, account, unit = self._rest
        return views.page(
            request,
            service,
            template,
            account=account,
            headers=live.tag(self.mark),
            tab=tab,
            unit=unit,
            course=self.course,
            at=self.at,
            base=self.at.base,
            here_path=self.at.base + words.TABS[tab],
            say=self.say,
            words=words,
            charts=charts,
            wanted=self.asked,
            kept=self.asked.kept,
            sections=self.sections,
            live=self.mark,
            **values,
        )


# -- the class -------------------------------------------------------------------------------------------------------


@router.get(CLASS)
def class_page(request: Request, service: Served, account: Staff, course: CourseId) -> Response:
    with reading(service.engine) as connection:
        offering = offerings.course_of(connection, course)
        found = units.of_course(connection, course, service.course.units.values())
    return views.page(
        request,
        service,
        "dashboard/class.html",
        account=account,
        course=offering,
        units=found,
        say=Saying(offering.timezone),
        words=words,
        charts=charts,
    )


@router.get(UNIT)
def overview_page(request: Request, service: Served, account: Staff, unit: Wanted) -> Response:
    with reading(service.engine) as connection:
        view = View(connection, request, service, account, unit)
        if view.unchanged:
            return view.unchanged
        by = view.asked.by()
        found = overview.of_class(connection, view.wanted, view.course, by, service.paces, view.now)
    return view.page(
        "Overview",
        "dashboard/overview.html",
        found=found,
        drawn=drawings.overview(found, view.at, view.say),
        queue=drawings.queue(found.queue, view.say),
    )


@router.get(UNIT + "/tests")
def tests_page(request: Request, service: Served, account: Staff, unit: Wanted) -> Response:
    with reading(service.engine) as connection:
        view = View(connection, request, service, account, unit)
        if view.unchanged:
            return view.unchanged
        count, rows = course_tests.of_class(connection, view.wanted, unit)
    stuck = sorted((row for row in rows if row.stuck), key=lambda row: -row.stuck)[:MOST_STUCK]
    return view.page("Tests", "dashboard/tests.html", students=count, tests=rows, stuck=stuck)


@router.get(UNIT + "/mutants")
def mutants_page(request: Request, service: Served, account: Staff, unit: Wanted) -> Response:
    with reading(service.engine) as connection:
        view = View(connection, request, service, account, unit)
        if view.unchanged:
            return view.unchanged
        rows, categories, facing = mutants.of_class(connection, view.wanted, unit)
        known = selection.people(connection, view.wanted)
    shown, following = asked.page_of(
        facing, view.asked, lambda each: (0.0, each.latest.student), "student", ROWS_OF_A_MATRIX
    )
    return view.page(
        "Mutants",
        "dashboard/mutants.html",
        students=len(facing),
        categories=categories,
        hardest=sorted(rows, key=lambda row: (row.share if row.share is not None else 1.0, row.id)),
        drawn=drawings.matrix(mutants.matrix_rows(shown, known), rows, view.say) if shown else "",
        next=following,
        first=view.asked.other(after="") or "?" if view.asked.after else None,
    )


@router.get(UNIT + "/misconceptions")
def misconceptions_page(request: Request, service: Served, account: Staff, unit: Wanted) -> Response:
    with reading(service.engine) as connection:
        view = View(connection, request, service, account, unit)
        if view.unchanged:
            return view.unchanged
        found = misconceptions.found_in(connection, view.wanted, unit)
        known = selection.people(connection, view.wanted)
    told = misconceptions.of_class(found, unit, known)
    return view.page(
        "Misconceptions",
        "dashboard/misconceptions.html",
        students=found.students,
        rejecting=found.rejecting,
        common=[each for each in told if each.students > 1],
        single=[each for each in told if each.students == 1],
    )


@router.get(UNIT + "/students")
def students_page(request: Request, service: Served, account: Staff, unit: Wanted) -> Response:
    with reading(service.engine) as connection:
        view = View(connection, request, service, account, unit)
        if view.unchanged:
            return view.unchanged
        narrowed, sort = view.asked.narrowed(), view.asked.sort()
        found = students.of_class(connection, view.wanted, narrowed, sort, unit, view.now)
    shown, following = asked.page_of(found, view.asked, students.order(sort), sort.value, STUDENTS_A_PAGE)
    sentence = misconceptions.said(narrowed.believes, len(found), unit)[1] if narrowed.believes else ""
    return view.page(
        "Students",
        "dashboard/students.html",
        total=len(found),
        at_risk=sum(bool(each.risk) for each in found),
        students=students.rows(shown, view.course),
        asked_for=words.narrowed(narrowed, sentence),
        csv=links.to(f"{view.at.data}/students{view.asked.other(after='', format='csv')}"),
        risky=view.asked.other(after="", risk="true"),
        next=following,
        first=view.asked.other(after="") or "?" if view.asked.after else None,
    )


# -- a student -------------------------------------------------------------------------------------------------------


@router.get(STUDENT)
def student_page(
    request: Request, service: Served, account: PersonIn, course: CourseId, unit: Wanted, student: Student
) -> Response:
    if not (account.sees_class or account.student == student):
        raise Problem(404, "student_unknown", wording.STUDENT_UNKNOWN)
    now = service.clock()
    with reading(service.engine) as connection:
        offering = offerings.course_of(connection, course)
        wanted = Selection(course, unit.id, student=student)
        mark = live.mark(connection, request, account, wanted, service.course.digest, now)
        if unchanged := live.unchanged(request, mark):
            return unchanged
        found = students.everyone(connection, wanted, now)
        row = next(iter(students.rows(found, offering)), None)
        if row is None and account.sees_class:
            raise Problem(404, "student_unknown", wording.STUDENT_UNKNOWN)
        sent, _ = listing.page(
            connection, listing.Filter(unit.id, student, course), listing.Sort.NEWEST, MOST_SENT, None
        )
        grade = next(
            (each for each in grades.of_student(connection, course, student, None) if each.unit == unit.id), None
        )
        usual = limits.usual(service.settings)
        standing = limits.standing(connection, course, unit.id, student, now, usual)
        granted = offerings.extension(connection, course, unit.id, student)
    at = At(course, unit.id)
    return views.page(
        request,
        service,
        "dashboard/student.html",
        account=account,
        headers=live.tag(mark),
        staff=account.sees_class,
        unit=unit,
        course=offering,
        at=at,
        base=at.base,
        student=student,
        called=row.name if row is not None else "",
        row=row if account.sees_class else None,
        sent=sent,
        scores=[each.score for each in reversed(sent) if each.score is not None],
        grade=grade,
        standing=standing,
        used=grade.attempts_used if grade is not None else 0,
        granted=granted,
        live=mark,
        say=Saying(offering.timezone),
        words=words,
        charts=charts,
    )


@router.post(STUDENT)
def set_grade(
    service: Served,
    account: Teaching,
    course: CourseId,
    unit: Wanted,
    student: Student,
    form: Posted,
    request_id: RequestId,
) -> Response:
    """Set the student's grade by hand, or let the submissions be the grade again."""
    if not by_hand.decide(service, account, course, unit.id, student, form, request_id):
        raise Problem(422, "invalid_field", wording.OVERRIDE_INCOMPLETE)
    return views.redirect(At(course, unit.id).student(student))
