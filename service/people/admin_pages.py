"""What an administrator decides about people goes in from pages; everybody there is, and the audit log, come out."""

import re
from collections.abc import Sequence

import sqlalchemy as sa
from fastapi import APIRouter, Request
from fastapi.responses import Response

from service import accounts, audit, offerings, views, walltime
from service.accounts import Account
from service.audit import By, Entry, Filter
from service.database import reading, writing
from service.dependencies import RequestId, Served, Service
from service.offerings import Offering
from service.people import invitations, users
from service.people import wording as sentences
from service.people.class_pages import Invited
from service.people.forms import flag
from service.people.routes import invitation, known_or_new
from service.people.users import User
from service.problems import Problem
from service.views import Administering, Posted, Teaching, text

router = APIRouter(include_in_schema=False)

ENTRIES = 100
PAGE = re.compile(r"[0-9]{1,9}", re.ASCII)


# -- everybody -------------------------------------------------------------------------------------------------------


@router.get("/users")
def users_page(request: Request, service: Served, account: Administering) -> Response:
    return _users(request, service, account)


@router.post("/users")
def change_users(
    request: Request, service: Served, account: Administering, form: Posted, request_id: RequestId
) -> Response:
    """Add somebody, make a link, make them an administrator or not, close or open their account."""
    by = By(account, service.clock(), request_id)
    made: list[Invited] = []
    try:
        with writing(service.engine) as connection:
            login = text(form, "login")
            what = text(form, "do")
            if what == "add":
                user = known_or_new(
                    connection, login, text(form, "name")[: users.NAME_CHARS], text(form, "student"), by
                )
                if flag(form, "admin") and not user.admin:
                    _set_admin(connection, user, True, by)
                made.append(_invited(request, connection, account, user, by))
            else:
                user = _known(connection, login)
                _check_not_oneself(account, user, what)
                match what:
                    case "link":
                        made.append(_invited(request, connection, account, user, by))
                    case "admin" | "no-admin":
                        _set_admin(connection, user, what == "admin", by)
                    case "close":
                        users.close(connection, user, by.now)
                        _note(connection, "user.close", user, by)
                    case "open":
                        users.reopen(connection, user)
                        _note(connection, "user.open", user, by)
                    case _:
                        raise Problem(422, "invalid_request", sentences.NOTHING_CHOSEN)
    except Problem as problem:
        return _users(request, service, account, problem.message, problem.status)
    if made:
        return _users(request, service, account, made=made)
    return views.redirect("/users?saved=1")


def _users(
    request: Request,
    service: Service,
    account: Account,
    error: str = "",
    status: int = 200,
    made: Sequence[Invited] = (),
) -> Response:
    with reading(service.engine) as connection:
        found = users.list_all(connection)
        closed = {each.user for each in accounts.closed(connection)}
    return views.page(
        request,
        service,
        "people/users.html",
        account=account,
        status=status,
        users=found,
        closed=closed,
        made=made,
        error=error,
        notice=sentences.SAVED if "saved" in request.query_params and not error else "",
    )


def _known(connection: sa.Connection, login: str) -> User:
    user = users.find_by_login(connection, login) if login.isprintable() else None
    if user is None:
        raise Problem(404, "user_unknown", sentences.USER_UNKNOWN)
    return user


def _check_not_oneself(account: Account, user: User, what: str) -> None:
    """Nobody locks themselves out by a slip."""
    if user.id == account.user and what in ("close", "no-admin"):
        raise Problem(409, "oneself", sentences.NOT_ONESELF)


def _invited(request: Request, connection: sa.Connection, account: Account, user: User, by: By) -> Invited:
    return Invited(user, invitations.link(str(request.base_url), invitation(connection, account, user, None, by)))


def _set_admin(connection: sa.Connection, user: User, admin: bool, by: By) -> None:
    users.change(connection, user, name=user.name, admin=admin)
    _note(connection, "user.admin" if admin else "user.no_admin", user, by)


def _note(connection: sa.Connection, action: str, user: User, by: By) -> None:
    audit.note(
        connection,
        by,
        action=action,
        object=user.account,
        student=user.student,
    )


# -- the audit log ---------------------------------------------------------------------------------------------------


@router.get("/courses/{course}/audit")
def course_audit(request: Request, service: Served, account: Teaching, course: str) -> Response:
    with reading(service.engine) as connection:
        found = offerings.course_of(connection, course)
    return _audit(request, service, account, found)


@router.get("/audit")
def whole_audit(request: Request, service: Served, account: Administering) -> Response:
    return _audit(request, service, account, None)


def _audit(request: Request, service: Service, account: Account, within: Offering | None) -> Response:
    zone = within.timezone if within is not None else "UTC"
    sent = {name: request.query_params.get(name, "")[:128] for name in ("action", "student", "unit", "since", "until")}
    asked = {name: value if value.isprintable() else "" for name, value in sent.items()}
    before = request.query_params.get("before", "")
    wanted = Filter(
        action=asked["action"] or None,
        student=asked["student"] or None,
        unit=asked["unit"] or None,
        since=_day(asked["since"], zone),
        until=_day(asked["until"], zone),
        course=within.id if within is not None else None,
    )
    with reading(service.engine) as connection:
        found, last = audit.page(
            connection,
            wanted,
            ENTRIES,
            int(before) if PAGE.fullmatch(before) else None,
        )
    return views.page(
        request,
        service,
        "people/audit.html",
        account=account,
        offering=within,
        zone=zone,
        entries=found,
        asked=asked,
        units=list(service.course.units),
        next=str(request.url.include_query_params(before=last).query) if last is not None else "",
        at=lambda seconds: walltime.said(walltime.show(seconds, zone), seconds=True),
        shown=_detail,
    )


def _detail(entry: Entry) -> str:
    """What else was written down, in one line."""
    return ", ".join(f"{key}: {value}" for key, value in entry.detail.items() if value not in (None, ""))


def _day(said: str, zone: str) -> float | None:
    """The beginning of a day, or a time, on the clocks of the zone; None if it is neither."""
    try:
        return walltime.read(said if len(said) > 10 else f"{said}T00:00", zone)
    except (walltime.Unreadable, walltime.Skipped, walltime.Repeated):
        return None
