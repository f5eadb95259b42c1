"""What handlers ask for: a request goes in; the service, who is asking, and the unit or submission named come out.

Each raises Problem where there is no such thing, or it is not the caller's to see. Those that wait for nothing are
coroutines: each of the others takes a thread, and has to wait for one while all are busy.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import sqlalchemy as sa
from fastapi import Depends, Path, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from grader.unit import Course, Unit
from service import accounts, schedules, submissions, wording
from service.accounts import Account, Role
from service.bells import Waiters
from service.database import AWAY, reading
from service.people import sessions, visitors
from service.people import wording as people_wording
from service.people.passwords import Passwords
from service.people.sessions import is_csrf
from service.people.visitors import Visitor
from service.places import Paces
from service.posted import STORABLE
from service.pressure import Closed, Pressure, of_database
from service.problems import Problem
from service.queue import Queue
from service.receipts import Signer
from service.settings import Settings
from service.stats import Stats
from service.throttle import Throttle


@dataclass(frozen=True)
class Service:
    """What the handlers work with. `clock` gives UTC seconds since 1970."""

    settings: Settings
    engine: sa.Engine
    queue: Queue
    course: Course
    clock: Callable[[], float] = time.time
    pressure: Pressure = field(default_factory=Pressure)
    paces: Paces = field(default_factory=Paces)
    receipts: Signer = field(default_factory=Signer)
    stats: Stats = field(default_factory=Stats)  # of this process
    passwords: Passwords = field(default_factory=Passwords)
    throttle: Throttle = field(default_factory=Throttle)
    course_load: int = 0  # the number of the choice of files that the course was read from
    waiters: Waiters = field(default_factory=Waiters)  # for runs to end


CHALLENGE = {"WWW-Authenticate": "Bearer"}


async def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(service_of)]
Credentials = Annotated[
    HTTPAuthorizationCredentials | None,
    Depends(HTTPBearer(auto_error=False, description="a token from the course staff")),
]


async def unhurried(request: Request, service: Served) -> None:
    """For routes that do something for whoever is not signed in; raises Problem 429 for a flood."""
    seconds = service.throttle.wait_seconds(sessions.address_of(request), service.clock())
    if seconds:
        headers = {"Retry-After": str(int(seconds) + 1)}
        raise Problem(429, "too_many_requests", wording.TOO_MANY_REQUESTS, headers=headers)


Unhurried = Depends(unhurried)


SAFE = ("GET", "HEAD", "OPTIONS")
OURS = ("same-origin", "none")  # what browsers say of requests that no other site began


def visitor(request: Request, service: Served) -> Visitor | None:
    """Who is signed in, by the session's cookie."""
    found = visitors.visitor(service.engine, request, service.clock())
    request.state.visitor = found
    return found


Visiting = Annotated[Visitor | None, Depends(visitor)]


def caller(request: Request, service: Served, credentials: Credentials) -> Account:
    """The account of the request's bearer token, or of who is signed in; 401 without either.

    The cookie counts for requests of our own pages only, and where something changes with the CSRF token.
    """
    if credentials is None:
        found = visitor(request, service) if request.headers.get("sec-fetch-site", "none") in OURS else None
        if found is None:
            raise Problem(401, "token_missing", wording.TOKEN_MISSING, headers=CHALLENGE)
        if request.method not in SAFE and not is_csrf(request.headers.get("x-csrf-token"), found.csrf):
            raise csrf_missing()
        return found.account
    with reading(service.engine) as connection:
        return holder(connection, credentials, service.clock())


def holder(connection: sa.Connection, credentials: HTTPAuthorizationCredentials, now: float) -> Account:
    """The account of a bearer token; raises Problem 401."""
    account = accounts.authenticate(connection, credentials.credentials, now)
    if account is None:
        raise token_invalid()
    return account


def csrf_missing() -> Problem:
    return Problem(403, "csrf_missing", people_wording.CSRF_MISSING)


def token_invalid() -> Problem:
    return Problem(401, "token_invalid", wording.TOKEN_INVALID, headers=CHALLENGE)


Caller = Annotated[Account, Depends(caller)]


def known_caller(request: Request, service: Served, credentials: Credentials) -> Account | None:
    """The caller, or None without a token; 401 for one that is not valid."""
    if credentials is not None:
        return caller(request, service, credentials)
    found = visitor(request, service)
    return found.account if found is not None else None


KnownCaller = Annotated[Account | None, Depends(known_caller)]


@dataclass(frozen=True)
class Sender:
    """Who posts: the digest of the token, and its account, or why the database cannot tell it now."""

    token: str
    account: Account | Closed

    @property
    def holder(self) -> str:
        """Whose share of the places for uploads it takes: a person's tokens and sessions together have one."""
        return getattr(self.account, "user", None) or self.token


def sender(request: Request, service: Served, credentials: Credentials) -> Sender:
    """The caller, as far as can be told: while the database does not answer, what is sent still gets a receipt."""
    secret = credentials.credentials if credentials is not None else sessions.cookie(request)
    token = accounts.digest_of(secret) if secret is not None else ""
    try:
        return Sender(token, caller(request, service, credentials))
    except AWAY as error:
        return Sender(token, of_database(error))


Sending = Annotated[Sender, Depends(sender)]


# -- within a course -------------------------------------------------------------------------------------------------
#
# An account that is good for some courses knows nothing of the others: one that it names is answered like one that is
# not there. (docs/decisions/0177)

CourseId = Annotated[str, Path(pattern=schedules.COURSE_ID)]


def reader(account: Account) -> Account:
    """The same account, as it stands in a course, if it may see the whole class there; raises Problem 403."""
    if not account.sees_class:
        raise Problem(403, "role_missing", wording.role_missing(account.role))
    return account


def editor(account: Account) -> Account:
    """The same account, as it stands in a course, if it may change what holds for the class; raises Problem 403."""
    if not account.changes_class:
        raise Problem(403, "role_missing", wording.role_missing(account.role))
    return account


def standing_in(account: Caller, course: CourseId) -> Account:
    """The caller as they stand in the course of the path; 404 if they have no part in it."""
    found = account.within(course)
    if found is None:
        raise Problem(404, "course_unknown", wording.offering_unknown(course))
    return found


StandingIn = Annotated[Account, Depends(standing_in)]


async def class_reader(account: StandingIn) -> Account:
    return reader(account)


async def class_editor(account: StandingIn) -> Account:
    return editor(account)


ClassReader = Annotated[Account, Depends(class_reader)]
"""May see the class of the course in the path."""
ClassEditor = Annotated[Account, Depends(class_editor)]
"""May change what holds for the class of the course in the path."""


OneCourse = Annotated[str | None, Query(max_length=64, pattern=STORABLE)]  # None: all of them


@dataclass(frozen=True)
class Class:
    """Whose class is asked about, by an account that may see it. `course` None: of all courses together."""

    account: Account
    course: str | None


def asked(account: Account, course: str) -> Account:
    """The account as it stands in a course named in the query; raises Problem 422 if it has no part in it."""
    found = account.within(course)
    if found is None:
        raise Problem(422, "course_unknown", wording.offering_unknown(course))
    return found


def class_asked(account: Caller, course: OneCourse = None) -> Class:
    """The class of `?course=`. Who sees one course only need not name it; who sees several must."""
    if account.courses is None:
        return Class(reader(account), course)
    if course is None:
        mine = seen_courses(account)
        if len(mine) > 1:
            raise Problem(422, "course_missing", people_wording.course_missing(mine))
        course = mine[0] if mine else None
    return Class(reader(asked(account, course) if course is not None else account), course)


def seen_courses(account: Account) -> list[str]:
    """The courses whose class an account with limits sees."""
    return _courses_where(account, lambda found: found.sees_class)


def edited_courses(account: Account) -> list[str]:
    """The courses in which an account with limits may change what holds for the class."""
    return _courses_where(account, lambda found: found.changes_class)


def _courses_where(account: Account, may: Callable[[Account], bool]) -> list[str]:
    within = {course: account.within(course) for course in account.courses or ()}
    return [course for course, found in within.items() if found is not None and may(found)]


ClassAsked = Annotated[Class, Depends(class_asked)]


async def administrator(account: Caller) -> Account:
    """An account that may do everything; 403 for others."""
    if account.role is not Role.ADMIN:
        raise Problem(403, "role_missing", wording.admin_missing(account.role))
    return account


Administrator = Annotated[Account, Depends(administrator)]


async def request_id(request: Request) -> str:
    """The id under which the request stands in logs, answers and the audit log."""
    return getattr(request.state, "request_id", "")


RequestId = Annotated[str, Depends(request_id)]


def wanted_unit(unit: str, service: Service) -> Unit:
    """The unit named in the path; 404 if the course has none of that name."""
    found = service.course.units.get(unit)
    if found is None:
        if listed := service.course.listed_as(unit):
            raise Problem(404, "unit_not_offered", f"{listed.id}, {listed.title}: {listed.reason}")
        raise Problem(404, "unit_unknown", wording.unit_unknown(unit, service.course.units))
    return found


async def unit_of_path(unit: str, service: Served) -> Unit:
    return wanted_unit(unit, service)


Wanted = Annotated[Unit, Depends(unit_of_path)]


@dataclass(frozen=True)
class Sight:
    """A submission, and the caller as they stand in its course."""

    stored: submissions.Stored
    account: Account


def sight(submission_id: str, service: Served, account: Caller) -> Sight:
    """The submission named in the path; 404 if there is none, or it is not the caller's to see."""
    with reading(service.engine) as connection:
        return seen(connection, submission_id, account)


def seen(connection: sa.Connection, submission_id: str, account: Account) -> Sight:
    """The same in a transaction."""
    stored = submissions.find(connection, submission_id)
    within = account.within(stored.course) if stored is not None else None
    if stored is None or within is None or not (within.reads_all or _owns(within, stored)):
        raise Problem(404, "submission_unknown", wording.SUBMISSION_UNKNOWN)
    return Sight(stored, within)


def _owns(account: Account, stored: submissions.Stored) -> bool:
    return account.student is not None and account.student == stored.student


Seeing = Annotated[Sight, Depends(sight)]


async def visible(sight: Seeing) -> submissions.Stored:
    return sight.stored


async def viewer(sight: Seeing) -> Account:
    return sight.account


def actor(account: Annotated[Account, Depends(viewer)]) -> Account:
    """Who sees a submission and may do something to it: everybody but a grader."""
    if account.role is Role.GRADER:
        raise Problem(403, "role_missing", people_wording.GRADER_CHANGES_NOTHING)
    return account


async def edits_somewhere(account: Caller) -> Account:
    """Somebody who may change what holds for some class; others need not know whether there is such a submission."""
    if not edited_courses(account):
        editor(account)
    return account


async def submission_editor(
    account: Annotated[Account, Depends(edits_somewhere)], viewer: Annotated[Account, Depends(viewer)]
) -> Account:
    return editor(viewer)


Visible = Annotated[submissions.Stored, Depends(visible)]
"""The submission in the path."""
Viewer = Annotated[Account, Depends(viewer)]
"""Who asks for the submission in the path, as they stand in its course."""
Actor = Annotated[Account, Depends(actor)]
"""A viewer who may cancel, unlock and rate."""
SubmissionEditor = Annotated[Account, Depends(submission_editor)]
"""A viewer who may change what holds for the class."""
