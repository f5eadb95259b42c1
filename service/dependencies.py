"""What handlers ask for: a request goes in; the service, who is asking, and the unit or submission named come out.

Each raises Problem where there is no such thing, or it is not the caller's to see.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import sqlalchemy as sa
from fastapi import Depends, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from grader.unit import Course, Unit
from service import accounts, submissions, wording
from service.accounts import Account, Role
from service.database import AWAY, reading
from service.places import Paces
from service.posted import STORABLE
from service.pressure import Closed, Pressure, of_database
from service.problems import Problem
from service.queue import Queue
from service.receipts import Signer
from service.settings import Settings
from service.stats import Stats


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


CHALLENGE = {"WWW-Authenticate": "Bearer"}


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(service_of)]
Credentials = Annotated[
    HTTPAuthorizationCredentials | None,
    Depends(HTTPBearer(auto_error=False, description="a token from the course staff")),
]


def caller(request: Request, service: Served, credentials: Credentials) -> Account:
    """The account of the request's bearer token; 401 without a valid one."""
    if credentials is None:
        raise Problem(401, "token_missing", wording.TOKEN_MISSING, headers=CHALLENGE)
    with reading(service.engine) as connection:
        account = accounts.authenticate(connection, credentials.credentials, service.clock())
    if account is None:
        raise token_invalid()
    return account


def token_invalid() -> Problem:
    return Problem(401, "token_invalid", wording.TOKEN_INVALID, headers=CHALLENGE)


Caller = Annotated[Account, Depends(caller)]


def known_caller(request: Request, service: Served, credentials: Credentials) -> Account | None:
    """The caller, or None without a token; 401 for one that is not valid."""
    return caller(request, service, credentials) if credentials is not None else None


KnownCaller = Annotated[Account | None, Depends(known_caller)]


@dataclass(frozen=True)
class Sender:
    """Who posts: the digest of the token, and its account, or why the database cannot tell it now."""

    token: str
    account: Account | Closed


def sender(request: Request, service: Served, credentials: Credentials) -> Sender:
    """The caller, as far as can be told: while the database does not answer, what is sent still gets a receipt."""
    token = accounts.digest_of(credentials.credentials) if credentials is not None else ""
    try:
        return Sender(token, caller(request, service, credentials))
    except AWAY as error:
        return Sender(token, of_database(error))


Sending = Annotated[Sender, Depends(sender)]


def teacher(account: Caller) -> Account:
    """An account that may see a whole class; 403 for others."""
    if not account.sees_class:
        raise Problem(403, "role_missing", wording.role_missing(account.role))
    return account


Teacher = Annotated[Account, Depends(teacher)]


def grades_reader(account: Caller) -> Account:
    """An account that may read everyone's grades: a teacher's, or a learning platform's; 403 for others."""
    if not account.names_students:
        raise Problem(403, "role_missing", wording.role_missing(account.role))
    return account


GradesReader = Annotated[Account, Depends(grades_reader)]


def administrator(account: Caller) -> Account:
    """An account that may do everything; 403 for others."""
    if account.role is not Role.ADMIN:
        raise Problem(403, "role_missing", wording.admin_missing(account.role))
    return account


Administrator = Annotated[Account, Depends(administrator)]


def request_id(request: Request) -> str:
    """The id under which the request stands in logs, answers and the audit log."""
    return getattr(request.state, "request_id", "")


RequestId = Annotated[str, Depends(request_id)]


def wanted_unit(unit: str, service: Served) -> Unit:
    """The unit named in the path; 404 if the course has none of that name."""
    found = service.course.units.get(unit)
    if found is None:
        raise Problem(404, "unit_unknown", wording.unit_unknown(unit, service.course.units))
    return found


Wanted = Annotated[Unit, Depends(wanted_unit)]
OneCourse = Annotated[str | None, Query(max_length=64, pattern=STORABLE)]  # None: all of them


def visible(submission_id: str, service: Served, account: Caller) -> submissions.Stored:
    """The submission named in the path; 404 if there is none, or it is somebody else's."""
    with reading(service.engine) as connection:
        stored = submissions.find(connection, submission_id)
    if stored is None or not (account.names_students or stored.student == account.student):
        raise Problem(404, "submission_unknown", wording.SUBMISSION_UNKNOWN)
    return stored


Visible = Annotated[submissions.Stored, Depends(visible)]
