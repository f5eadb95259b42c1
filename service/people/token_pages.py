"""Which token is wanted goes in from a page; it is shown once, and those there are can be made useless."""

from collections.abc import Sequence

import sqlalchemy as sa
from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import ValidationError
from starlette.datastructures import FormData

from service import offerings, views, walltime
from service.accounts import OF_TOKENS, Account, Role
from service.answers import moment
from service.audit import By
from service.database import reading, writing
from service.dependencies import RequestId, Served, Service
from service.people import mint
from service.people import wording as sentences
from service.people.forms import Number, amount
from service.people.mint import Minted, TooMany
from service.people.routes import TokenBody, minted
from service.posted import NAME_CHARS
from service.problems import Problem
from service.views import Administering, Posted, SignedIn, Teaching, text

router = APIRouter(include_in_schema=False)

COURSE_ROLES = (Role.LMS, Role.STUDENT, Role.GRADER, Role.TEACHER)
MOST_DAYS = 3_650


# -- one's own -------------------------------------------------------------------------------------------------------


@router.get("/me/tokens")
def my_tokens(request: Request, service: Served, visitor: SignedIn) -> Response:
    return _mine(request, service, visitor)


@router.post("/me/tokens")
def change_my_tokens(
    request: Request, service: Served, visitor: SignedIn, form: Posted, request_id: RequestId
) -> Response:
    by = By(visitor.account, service.clock(), request_id)
    user = visitor.user
    try:
        with writing(service.engine) as connection:
            if revoked := text(form, "revoke"):
                _revoke(connection, mint.of_person(connection, user.id, user.account), revoked, None, by)
                return views.redirect("/me/tokens")
            label, expires_at = _label(form), _expires_at(form, by.now)
            account = visitor.account
            made = mint.for_person(connection, account, user.student, by, label=label, expires_at=expires_at)
    except TooMany:
        return _mine(request, service, visitor, error=sentences.TOO_MANY_TOKENS, status=409)
    except Problem as problem:
        return _mine(request, service, visitor, error=problem.message, status=problem.status)
    return _mine(request, service, visitor, made=made)


def _mine(
    request: Request,
    service: Service,
    visitor: SignedIn,
    error: str = "",
    status: int = 200,
    made: Minted | None = None,
) -> Response:
    with reading(service.engine) as connection:
        found = mint.of_person(connection, visitor.user.id, visitor.user.account)
    return _page(request, service, visitor.account, "/me/tokens", found, (), error, status, made)


# -- a course's ------------------------------------------------------------------------------------------------------


@router.get("/courses/{course}/tokens")
def course_tokens(request: Request, service: Served, account: Teaching, course: str) -> Response:
    return _of_course(request, service, account, course)


@router.post("/courses/{course}/tokens")
def change_course_tokens(
    request: Request, service: Served, account: Teaching, course: str, form: Posted, request_id: RequestId
) -> Response:
    by = By(account, service.clock(), request_id)
    try:
        with writing(service.engine) as connection:
            offerings.course_of(connection, course)
            if revoked := text(form, "revoke"):
                _revoke(connection, mint.of_course(connection, course), revoked, course, by)
                return views.redirect(f"/courses/{course}/tokens")
            made = minted(connection, course, _body(form, COURSE_ROLES), by)
    except Problem as problem:
        return _of_course(request, service, account, course, error=problem.message, status=problem.status)
    return _of_course(request, service, account, course, made=made)


def _of_course(
    request: Request,
    service: Service,
    account: Account,
    course: str,
    error: str = "",
    status: int = 200,
    made: Minted | None = None,
) -> Response:
    with reading(service.engine) as connection:
        offerings.course_of(connection, course)
        found = mint.of_course(connection, course)
    here = f"/courses/{course}/tokens"
    return _page(request, service, account, here, found, COURSE_ROLES, error, status, made)


# -- every other -----------------------------------------------------------------------------------------------------


@router.get("/tokens")
def all_tokens(request: Request, service: Served, account: Administering) -> Response:
    return _all(request, service, account)


@router.post("/tokens")
def change_all_tokens(
    request: Request, service: Served, account: Administering, form: Posted, request_id: RequestId
) -> Response:
    by = By(account, service.clock(), request_id)
    try:
        with writing(service.engine) as connection:
            if revoked := text(form, "revoke"):
                _revoke(connection, mint.of_nobody(connection), revoked, None, by)
                return views.redirect("/tokens")
            role, student = text(form, "role"), text(form, "student") or None
            if role not in OF_TOKENS or (role == Role.STUDENT) != (student is not None) or not _is_name(student):
                raise Problem(422, "student_missing", sentences.TOKEN_NEEDS_STUDENT)
            made = mint.for_course(
                connection,
                None,
                Role(role),
                by,
                student=student,
                label=_label(form),
                expires_at=_expires_at(form, by.now),
            )
    except Problem as problem:
        return _all(request, service, account, error=problem.message, status=problem.status)
    return _all(request, service, account, made=made)


def _all(
    request: Request,
    service: Service,
    account: Account,
    error: str = "",
    status: int = 200,
    made: Minted | None = None,
) -> Response:
    with reading(service.engine) as connection:
        found = mint.of_nobody(connection)
    return _page(request, service, account, "/tokens", found, OF_TOKENS[::-1], error, status, made)


# -- all of them -----------------------------------------------------------------------------------------------------


def _page(
    request: Request,
    service: Service,
    account: Account,
    path: str,
    found: Sequence[Account],
    roles: Sequence[Role],
    error: str,
    status: int,
    made: Minted | None,
) -> Response:
    return views.page(
        request,
        service,
        "people/tokens.html",
        account=account,
        status=status,
        path=path,
        tokens=found,
        roles=[(role.value, role.value) for role in roles],
        mine=path == "/me/tokens",
        all=path == "/tokens",
        error=error,
        made=made,
        now=service.clock(),
        at=lambda seconds: f"{walltime.said(moment(seconds))} UTC",
    )


def _body(form: FormData, roles: Sequence[Role]) -> TokenBody:
    role = text(form, "role")
    try:
        return TokenBody.model_validate(
            {
                "role": role if role in roles else "",
                "student": text(form, "student") or None,
                "label": text(form, "label"),
                "days": amount(form, "days", Number.SHARE),
            }
        )
    except ValidationError as error:
        raise Problem(422, "invalid_request", sentences.TOKEN_INVALID) from error


def _label(form: FormData) -> str:
    label = text(form, "label")
    if len(label) > mint.LABEL_CHARS or not label.isprintable():
        raise Problem(422, "invalid_request", sentences.TOKEN_INVALID)
    return label


def _expires_at(form: FormData, now: float) -> float | None:
    days = amount(form, "days", Number.SHARE)
    if days is not None and not 0 < days <= MOST_DAYS:
        raise Problem(422, "invalid_request", sentences.TOKEN_INVALID)
    return now + days * 86_400 if days is not None else None


def _is_name(student: str | None) -> bool:
    return student is None or (student.isprintable() and len(student) <= NAME_CHARS)


def _revoke(connection: sa.Connection, found: Sequence[Account], token_id: str, course: str | None, by: By) -> None:
    account = next((each for each in found if each.id == token_id), None)
    if account is None:
        raise Problem(404, "token_unknown", sentences.TOKEN_UNKNOWN)
    if account.revoked_at is None:
        mint.revoke(connection, account, course, by)
