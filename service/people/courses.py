"""A person's courses, and what a teacher decides about one, go in from pages; the pages that show them come out."""

import sqlalchemy as sa
from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import ValidationError
from starlette.datastructures import FormData

from grader.report import Level
from service import answers, limits, listing, offerings, schedules, views, walltime, wording
from service.accounts import Account, Role
from service.audit import By
from service.database import reading, writing
from service.dependencies import RequestId, Served, Service, Wanted
from service.offerings import Assignment, Counts
from service.people import members, users
from service.people import wording as sentences
from service.people.forms import Number, amount, flag, number
from service.problems import Problem
from service.views import Administering, Person, PersonIn, Posted, Teaching, text

router = APIRouter(include_in_schema=False)

SECONDS_PER_HOUR = 3_600.0
SHOWN_SUBMISSIONS = 50


@router.get("/courses")
def courses_page(request: Request, service: Served, account: Person) -> Response:
    return _courses(request, service, account)


@router.post("/courses")
def make_course(
    request: Request, service: Served, account: Administering, form: Posted, request_id: RequestId
) -> Response:
    course, now = text(form, "course"), service.clock()
    by = By(account, now, request_id)
    try:
        if not schedules.is_course_id(course):
            raise Problem(422, "course_id_invalid", wording.COURSE_ID_INVALID)
        body = _offering_body(form)
        with writing(service.engine) as connection:
            if offerings.find(connection, course) is not None:
                raise Problem(409, "course_taken", sentences.COURSE_TAKEN)
            offerings.put(connection, schedules.offering(course, body, None, now), by)
            user = users.find(connection, account.user or "")
            if user is not None and flag(form, "teach"):
                members.put(connection, course, user, Role.TEACHER, "", members.Source.PAGE, by)
    except Problem as problem:
        return _courses(request, service, account, error=problem.message, status=problem.status, form=form)
    return views.redirect(f"/courses/{course}")


def _courses(
    request: Request,
    service: Service,
    account: Account,
    error: str = "",
    status: int = 200,
    form: FormData | None = None,
) -> Response:
    with reading(service.engine) as connection:
        parts = members.of_user(connection, account.user or "")
        offered = offerings.all_offerings(connection) if account.role is Role.ADMIN else []
    mine = {part.course for part in parts}
    return views.page(
        request,
        service,
        "people/courses.html",
        account=account,
        status=status,
        parts=parts,
        others=[each for each in offered if each.id not in mine],
        makes=account.role is Role.ADMIN,
        error=error,
        sent={name: text(form or FormData(), name) for name in ("course", "title", "timezone")},
    )


@router.get("/courses/{course}")
def course_page(request: Request, service: Served, account: PersonIn, course: str) -> Response:
    with reading(service.engine) as connection:
        found = offerings.course_of(connection, course)
        asked = offerings.assignments(connection, course)
    units = [
        (unit, schedules.shown_assignment(found, unit.id, asked.get(unit.id, Assignment())))
        for unit in service.course.units.values()
    ]
    return views.page(request, service, "people/course.html", account=account, offering=found, units=units)


# -- settings --------------------------------------------------------------------------------------------------------


@router.get("/courses/{course}/settings")
def settings_page(request: Request, service: Served, account: Teaching, course: str) -> Response:
    return _settings(request, service, account, course)


@router.post("/courses/{course}/settings")
def change_settings(
    request: Request, service: Served, account: Teaching, course: str, form: Posted, request_id: RequestId
) -> Response:
    now = service.clock()
    try:
        body = _offering_body(form)
        with writing(service.engine) as connection:
            wanted = schedules.offering(course, body, offerings.course_of(connection, course), now)
            offerings.put(connection, wanted, By(account, now, request_id))
    except Problem as problem:
        return _settings(request, service, account, course, error=problem.message, status=problem.status)
    return views.redirect(f"/courses/{course}/settings?saved=1")


def _settings(
    request: Request, service: Service, account: Account, course: str, error: str = "", status: int = 200
) -> Response:
    with reading(service.engine) as connection:
        found = offerings.course_of(connection, course)
        asked = offerings.assignments(connection, course)
    units = [
        (unit, schedules.shown_assignment(found, unit.id, asked.get(unit.id, Assignment())), unit.id in asked)
        for unit in service.course.units.values()
    ]
    return views.page(
        request,
        service,
        "people/settings.html",
        account=account,
        status=status,
        offering=found,
        units=units,
        error=error,
        notice=sentences.SAVED if "saved" in request.query_params and not error else "",
        zones=[(zone, zone) for zone in walltime.zones()],
    )


def _offering_body(form: FormData) -> schedules.OfferingBody:
    try:
        return schedules.OfferingBody(
            title=text(form, "title"),
            timezone=text(form, "timezone") or "UTC",
            archived=flag(form, "archived"),
            listed_only=flag(form, "listed_only"),
        )
    except ValidationError as error:
        raise Problem(422, "invalid_request", sentences.TITLE_INVALID) from error


# -- one unit --------------------------------------------------------------------------------------------------------

UNIT = "/courses/{course}/units/{unit}"


@router.get(UNIT)
def unit_page(request: Request, service: Served, account: PersonIn, course: str, unit: Wanted) -> Response:
    """What the unit asks of whoever looks, and for a student what they sent."""
    now = service.clock()
    with reading(service.engine) as connection:
        found = offerings.course_of(connection, course)
        stood = limits.standing(connection, course, unit.id, account.student, now, limits.usual(service.settings))
        sent: tuple[answers.SubmissionRow, ...] = ()
        more = None
        if account.student is not None:
            wanted = listing.Filter(unit.id, account.student, course)
            sent, more = listing.page(connection, wanted, listing.Sort.NEWEST, SHOWN_SUBMISSIONS, None)
    return views.page(
        request,
        service,
        "people/unit.html",
        account=account,
        offering=found,
        unit=unit,
        standing=schedules.shown_standing(found, stood, now),
        sent=sent,
        more=more is not None,
        fields=[file.stem for file in unit.files],
        at=lambda seconds: walltime.said(walltime.show(seconds, found.timezone)),
        local=lambda moment: walltime.said(walltime.show(moment.timestamp(), found.timezone), seconds=True),
    )


@router.get(UNIT + "/settings")
def assignment_page(request: Request, service: Served, account: Teaching, course: str, unit: Wanted) -> Response:
    return _assignment(request, service, account, course, unit)


@router.post(UNIT + "/settings")
def change_assignment(
    request: Request,
    service: Served,
    account: Teaching,
    course: str,
    unit: Wanted,
    form: Posted,
    request_id: RequestId,
) -> Response:
    by = By(account, service.clock(), request_id)
    try:
        with writing(service.engine) as connection:
            found = offerings.course_of(connection, course)
            before = offerings.assignment(connection, course, unit.id) or Assignment()
            body = _assignment_body(form, schedules.shown_assignment(found, unit.id, before))
            offerings.put_assignment(connection, course, unit.id, schedules.assignment(body, found.timezone), by)
    except Problem as problem:
        return _assignment(request, service, account, course, unit, problem.message, problem.status, form)
    return views.redirect(f"/courses/{course}/units/{unit.id}/settings?saved=1")


def _assignment(
    request: Request,
    service: Service,
    account: Account,
    course: str,
    unit: Wanted,
    error: str = "",
    status: int = 200,
    form: FormData | None = None,
) -> Response:
    with reading(service.engine) as connection:
        found = offerings.course_of(connection, course)
        asked = offerings.assignment(connection, course, unit.id) or Assignment()
        granted = offerings.extensions(connection, course, unit.id)
        students = members.of_course(connection, course, Role.STUDENT)
    known = {member.user.student for member in students}
    shown = schedules.shown_assignment(found, unit.id, asked)
    return views.page(
        request,
        service,
        "people/assignment.html",
        account=account,
        status=status,
        offering=found,
        unit=unit,
        values=({name: text(form, name) for name in FIELDS} if form is not None else _values(shown)),
        counts=list(Counts),
        levels=list(Level),
        extensions=[schedules.shown_extension(each, found.timezone) for each in granted],
        students=students,
        unknown=[each.student for each in granted if each.student not in known],
        error=error,
        notice=sentences.SAVED if "saved" in request.query_params and not error else "",
    )


_COUNTS = ("attempts", "attempts_per_hour", "hints", "hints_per_hour")
_TIMES = ("opens_at", "due_at", "closes_at")
_LEVELS = ("normal", "past_limit", "after_deadline", "after_passing")
FIELDS = (
    *_TIMES,
    *_COUNTS,
    *("cooldown_minutes", "hint_cooldown_seconds", "counts"),
    *("penalty_percent", "per", "cap_percent", "grace_minutes", "zero_after_hours"),
    *_LEVELS,
    "feedback_attempts",
)
"""What the form holds; '' where there is no limit."""


def _values(asked: schedules.AssignmentAnswer) -> dict[str, str]:
    """The fields of the form as they stand."""
    late, told = asked.late_policy, asked.feedback
    times = {name: getattr(asked, name) for name in _TIMES}
    return {
        **{name: time.strftime("%Y-%m-%dT%H:%M") if time else "" for name, time in times.items()},
        **{name: number(getattr(asked, name)) for name in _COUNTS},
        "cooldown_minutes": number(asked.cooldown_seconds, 60),
        "hint_cooldown_seconds": number(asked.hint_cooldown_seconds),
        "counts": asked.counts.value,
        "penalty_percent": number(late.penalty, 0.01),
        "per": late.per.value,
        "cap_percent": number(late.cap, 0.01),
        "grace_minutes": number(late.grace_seconds, 60),
        "zero_after_hours": number(late.zero_after_seconds, SECONDS_PER_HOUR),
        **{name: level.value if (level := getattr(told, name)) is not None else "" for name in _LEVELS},
        "feedback_attempts": number(told.attempts),
    }


def _assignment_body(form: FormData, before: schedules.AssignmentAnswer) -> schedules.AssignmentBody:
    """What the form asks for; a time that is as it was keeps its seconds and its offset. Raises Problem 422."""
    unchanged = _values(before)
    times: dict[str, str | None] = {}
    for name in _TIMES:
        said, stood = text(form, name), getattr(before, name)
        times[name] = stood.isoformat() if stood is not None and said == unchanged[name] else said or None
    try:
        return schedules.AssignmentBody.model_validate(
            {
                **times,
                **{name: amount(form, name, Number.COUNT) for name in _COUNTS},
                "cooldown_seconds": amount(form, "cooldown_minutes", Number.SHARE, 60),
                "hint_cooldown_seconds": amount(form, "hint_cooldown_seconds", Number.SHARE),
                "counts": text(form, "counts") or Counts.BEST,
                "late_policy": {
                    "penalty": amount(form, "penalty_percent", Number.SHARE, 0.01) or 0.0,
                    "per": text(form, "per") or "day",
                    "cap": _or(amount(form, "cap_percent", Number.SHARE, 0.01), 1.0),
                    "grace_seconds": amount(form, "grace_minutes", Number.SHARE, 60) or 0.0,
                    "zero_after_seconds": amount(form, "zero_after_hours", Number.SHARE, SECONDS_PER_HOUR),
                },
                "feedback": {
                    "normal": text(form, "normal") or Level.HINTS,
                    **{name: text(form, name) or None for name in _LEVELS[1:]},
                    "attempts": amount(form, "feedback_attempts", Number.COUNT),
                },
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Problem(422, "invalid_request", sentences.field_wrong(where, first["msg"])) from error


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


# -- extensions ------------------------------------------------------------------------------------------------------


@router.post(UNIT + "/extensions")
def extend(
    request: Request,
    service: Served,
    account: Teaching,
    course: str,
    unit: Wanted,
    form: Posted,
    request_id: RequestId,
) -> Response:
    """Give a student more time or attempts, or take it away."""
    by = By(account, service.clock(), request_id)
    student = text(form, "student")
    try:
        with writing(service.engine) as connection:
            found = offerings.course_of(connection, course)
            if flag(form, "withdraw"):
                if not offerings.withdraw(connection, course, unit.id, student, by):
                    raise Problem(404, "extension_unknown", wording.EXTENSION_UNKNOWN)
            else:
                _check_student(connection, course, student)
                body = _extension_body(form)
                granted = schedules.extension(student, body, found.timezone, account.id, by.now)
                offerings.grant(connection, course, unit.id, granted, by)
    except Problem as problem:
        return _assignment(request, service, account, course, unit, problem.message, problem.status)
    return views.redirect(f"/courses/{course}/units/{unit.id}/settings?saved=1#extensions")


def _check_student(connection: sa.Connection, course: str, student: str) -> None:
    """Raises Problem 422 for somebody who is no student of the course: on a page that is a slip."""
    user = users.find_by_student(connection, student) if student.isprintable() else None
    if user is None or members.find(connection, course, user.id) is None:
        raise Problem(422, "student_unknown", sentences.STUDENT_NOT_MEMBER)


def _extension_body(form: FormData) -> schedules.ExtensionBody:
    try:
        return schedules.ExtensionBody(
            due_at=text(form, "due_at") or None,
            closes_at=text(form, "closes_at") or None,
            extra_attempts=int(amount(form, "extra_attempts", Number.COUNT) or 0),
            reason=text(form, "reason"),
        )
    except ValidationError as error:
        raise Problem(422, "invalid_request", sentences.EXTENSION_INVALID) from error
