"""Who shall be in a course, one by one or as a class list, goes in from pages; the course's people come out."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from service import offerings, views
from service.accounts import OF_MEMBERS, Account, Role
from service.audit import By
from service.database import reading, writing
from service.dependencies import RequestId, Served, Service
from service.people import invitations, inviting, members, roster, users
from service.people import wording as sentences
from service.people.members import LastTeacher, Source
from service.people.routes import find_member, invitation, known_or_new, remove
from service.people.users import User
from service.problems import Problem
from service.views import Posted, SignedIn, Staff, Teaching, text

router = APIRouter(include_in_schema=False)

PEOPLE = "/courses/{course}/people"
ROLES = {role.value for role in OF_MEMBERS}


@dataclass(frozen=True)
class Invited:
    """A link to hand over; it is shown this once."""

    user: User
    link: str


@router.get(PEOPLE)
def people_page(request: Request, service: Served, account: Staff, visitor: SignedIn, course: str) -> Response:
    return _people(request, service, account, visitor.account, course)


@router.post(PEOPLE)
def change_people(
    request: Request,
    service: Served,
    account: Teaching,
    visitor: SignedIn,
    course: str,
    form: Posted,
    request_id: RequestId,
) -> Response:
    """Add somebody, change their part, take it away, or make links: which, the button says."""
    by = By(account, service.clock(), request_id)
    made: list[Invited] = []
    base = str(request.base_url)
    try:
        with writing(service.engine) as connection:
            offerings.course_of(connection, course)
            match text(form, "do"):
                case "add":
                    user = known_or_new(
                        connection,
                        text(form, "login"),
                        text(form, "name")[: users.NAME_CHARS],
                        text(form, "student"),
                        by,
                    )
                    members.put(connection, course, user, _role(form), _section(form), Source.PAGE, by)
                case "change":
                    member = find_member(connection, course, text(form, "login"))
                    members.put(connection, course, member.user, _role(form), _section(form), member.source, by)
                case "remove":
                    remove(connection, course, text(form, "login"), by)
                case "link":
                    user = find_member(connection, course, text(form, "login")).user
                    code = invitation(connection, visitor.account, user, course, by)
                    made.append(Invited(user, invitations.link(base, code)))
                case "links":
                    made += _links(connection, visitor.account, course, by, base)
                case _:
                    raise Problem(422, "invalid_request", sentences.NOTHING_CHOSEN)
    except LastTeacher:
        return _people(request, service, account, visitor.account, course, sentences.LAST_TEACHER, 409)
    except Problem as problem:
        return _people(request, service, account, visitor.account, course, problem.message, problem.status)
    if text(form, "do") in ("link", "links"):
        return _people(request, service, account, visitor.account, course, made=made)
    return views.redirect(f"/courses/{course}/people?saved=1")


def _links(connection: sa.Connection, caller: Account, course: str, by: By, base: str) -> list[Invited]:
    """A link for each who has neither a password nor a link: those that were handed out go on working."""
    held = invitations.waiting(connection, by.now)
    there = [each.user for each in members.of_course(connection, course)]
    without = [each for each in there if not each.has_password and each.id not in held]
    return [
        Invited(user, invitations.link(base, invitation(connection, caller, user, course, by)))
        for user in without
        if inviting.may_invite(connection, caller, user)
    ]


def _people(
    request: Request,
    service: Service,
    account: Account,
    caller: Account,
    course: str,
    error: str = "",
    status: int = 200,
    made: Sequence[Invited] | None = None,
) -> Response:
    role = request.query_params.get("role", "")
    section = request.query_params.get("section", "")[: members.SECTION_CHARS]
    with reading(service.engine) as connection:
        found = offerings.course_of(connection, course)
        shown = members.of_course(
            connection,
            course,
            Role(role) if role in ROLES else None,
            section if section and section.isprintable() else None,
        )
        sections = members.sections(connection, course)
    return views.page(
        request,
        service,
        "people/people.html",
        account=account,
        status=status,
        offering=found,
        members=shown,
        sections=sections,
        role=role,
        section=section,
        roles=[(role.value, role.value) for role in OF_MEMBERS[::-1]],
        error=error,
        notice=sentences.SAVED if "saved" in request.query_params and not error and made is None else "",
        made=made,
    )


def _role(form: FormData) -> Role:
    role = text(form, "role")
    if role not in ROLES:
        raise Problem(422, "role_unknown", sentences.role_unknown(role))
    return Role(role)


def _section(form: FormData) -> str:
    section = text(form, "section")
    if len(section) > members.SECTION_CHARS or not section.isprintable():
        raise Problem(422, "section_invalid", sentences.cell_invalid("section", members.SECTION_CHARS))
    return section


# -- class lists -----------------------------------------------------------------------------------------------------


@router.get(PEOPLE + "/import")
def import_page(request: Request, service: Served, account: Teaching, course: str) -> Response:
    return _import(request, service, account, course)


@router.post(PEOPLE + "/import")
async def import_form(
    request: Request, service: Served, account: Teaching, course: str, form: Posted, request_id: RequestId
) -> Response:
    """Show what the list would change, or, once that was seen, do it."""
    file = form.get("file")
    listed = text(form, "csv")
    if isinstance(file, UploadFile) and file.filename:
        listed = roster.decoded(await file.read())
    return await run_in_threadpool(_imported, request, service, account, course, form, listed, request_id)


def _imported(
    request: Request, service: Service, account: Account, course: str, form: FormData, listed: str, request_id: str
) -> Response:
    if not listed:
        return _import(request, service, account, course, error=sentences.ROSTER_EMPTY, status=422)
    if text(form, "do") != "apply":
        with reading(service.engine) as connection:
            offerings.course_of(connection, course)
            plan = roster.plan(connection, course, listed)
        status = 422 if plan.faults else 200
        return _import(request, service, account, course, listed=listed, plan=plan, status=status)
    by = By(account, service.clock(), request_id)
    try:
        with writing(service.engine) as connection:
            offerings.course_of(connection, course)
            plan = roster.apply(connection, course, listed, by, text(form, "digest"))
    except roster.Outdated:
        with reading(service.engine) as connection:
            plan = roster.plan(connection, course, listed)
        error = sentences.ROSTER_OUTDATED
        return _import(request, service, account, course, error=error, listed=listed, plan=plan, status=409)
    except LastTeacher:
        return _import(request, service, account, course, error=sentences.LAST_TEACHER, listed=listed, status=409)
    if plan.faults:
        return _import(request, service, account, course, listed=listed, plan=plan, status=422)
    return views.redirect(f"/courses/{course}/people?saved=1")


def _import(
    request: Request,
    service: Service,
    account: Account,
    course: str,
    error: str = "",
    status: int = 200,
    listed: str = "",
    plan: roster.Plan | None = None,
) -> Response:
    with reading(service.engine) as connection:
        found = offerings.course_of(connection, course)
    return views.page(
        request,
        service,
        "people/import.html",
        account=account,
        status=status,
        offering=found,
        error=error,
        listed=listed,
        plan=plan,
        change_of={change.value: change for change in roster.Change},
    )
