"""What platforms ask of us, and the browsers that they send: our keys, the start of a login, a launch, and what a
teacher is asked before an activity can be used.

A login is begun once the browser has shown that it keeps a cookie for us; one that does not, inside a frame, is asked
to go on in a window of its own. The platform is not asked before: some answer a login once only. (docs/decisions/0192)
"""

import logging
import secrets
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlencode

import sqlalchemy as sa
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.datastructures import FormData

from service import accounts, links, offerings, views
from service.accounts import Account, Role
from service.audit import By
from service.database import reading, writing
from service.dependencies import RequestId, Served, Service, Unhurried
from service.lti import (
    ags,
    deep_linking,
    invitations,
    keys,
    logins,
    messages,
    people,
    placements,
    platforms,
    registering,
    syncing,
    tickets,
    wording,
)
from service.lti.messages import Kind, Launch, Refused
from service.lti.placements import Context
from service.lti.speaking import Away, Session
from service.offerings import Offering
from service.outbound import Reach
from service.people import pages as people_pages
from service.people import sessions
from service.people.users import User
from service.people.visitors import Visitor
from service.problems import Problem
from service.views import Posted, SignedIn, text

log = logging.getLogger(__name__)

router = APIRouter(include_in_schema=False)

LAUNCH = "/lti/launch"
REGISTER = "/lti/register"
BROWSER = "ag_lti"  # the cookie by which a browser is known between login and launch
LOGIN_FIELDS = ("iss", "login_hint", "target_link_uri", "lti_message_hint", "client_id", "lti_deployment_id")
FIELD_CHARS = 8_000
KEY_SET_SECONDS = 3_600
NEW_COURSE, BY_CODE = "new", "code"  # what a teacher may choose, besides a course of their own

TicketId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]


def base_url(request: Request) -> str:
    """Where this service is, as the client of the request reaches it."""
    return str(request.base_url).rstrip("/")


# -- keys ------------------------------------------------------------------------------------------------------------


@router.get("/lti/jwks")
def jwks(service: Served) -> Response:
    """The public halves of the keys we sign with, for anybody."""
    now = service.clock()
    with reading(service.engine) as connection:
        found = keys.published(connection, now)
    if not found:
        with writing(service.engine) as connection:
            found = [keys.signing(connection, now)]
    return JSONResponse(keys.key_set(found), headers={"Cache-Control": f"public, max-age={KEY_SET_SECONDS}"})


# -- login -----------------------------------------------------------------------------------------------------------


@router.post("/lti/login", dependencies=[Unhurried])
def posted_login(request: Request, form: Posted) -> Response:
    """A platform may begin a login either way; browsers keep our cookie by the same way."""
    return _with_cookie(request, {name: text(form, name) for name in LOGIN_FIELDS})


@router.get("/lti/login", dependencies=[Unhurried])
def login(request: Request, service: Served) -> Response:
    said = {name: request.query_params.get(name, "") for name in LOGIN_FIELDS}
    if not said["iss"] or not said["login_hint"] or any(len(value) > FIELD_CHARS for value in said.values()):
        raise Problem(400, "lti_login_incomplete", wording.LOGIN_INCOMPLETE)
    browser = sessions.cookie(request, BROWSER)
    if browser is None:
        if "kept" not in request.query_params:
            return _with_cookie(request, said)
        again = f"{links.to('/lti/login')}?{urlencode(_sent(said))}"
        return views.page(request, service, "lti/new_window.html", again=again, why=wording.NO_COOKIES)
    with writing(service.engine) as connection:
        known = messages.is_storable(said["iss"]) and messages.is_storable(said["client_id"])
        platform = platforms.named_by_login(connection, said["iss"], said["client_id"]) if known else None
        if platform is None:
            raise Problem(404, "lti_platform_unknown", wording.LOGIN_UNKNOWN)
        asked = logins.begin(
            connection,
            platform,
            browser=browser,
            login_hint=said["login_hint"],
            message_hint=said["lti_message_hint"],
            back=base_url(request) + LAUNCH,
            now=service.clock(),
        )
    return RedirectResponse(asked, 302)


def _with_cookie(request: Request, said: Mapping[str, str]) -> Response:
    answer = RedirectResponse(f"{links.to('/lti/login')}?{urlencode({**_sent(said), 'kept': '1'})}", 303)
    secret = sessions.cookie(request, BROWSER) or secrets.token_urlsafe(32)
    sessions.set_cookie(request, answer, secret, BROWSER, same_site="None")
    return answer


def _sent(said: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in said.items() if value}


# -- launch ----------------------------------------------------------------------------------------------------------


@router.post(LAUNCH, dependencies=[Unhurried])
def launch(request: Request, service: Served, form: Posted, request_id: RequestId) -> Response:
    """Whoever the platform sends is signed in, and shown what they came for."""
    try:
        if form.get("error"):
            raise Refused(wording.CANCELLED, f"the platform says {text(form, 'error')[:200]}")
        found = messages.verified(
            service.engine,
            Session(Reach.of_platforms(service.settings)),
            state=text(form, "state"),
            browser=sessions.cookie(request, BROWSER) or "",
            id_token=text(form, "id_token"),
            now=service.clock(),
        )
        return _settled(request, service, found, request_id)
    except Refused as error:
        log.warning("launch refused: %s", error.reason)
        raise Problem(error.status, "lti_launch_refused", str(error)) from error
    except Away as error:
        log.warning("launch not checked: %s", error)
        headers = {"Retry-After": "60"}
        raise Problem(503, "lti_platform_away", wording.KEYS_AWAY, headers=headers) from error


def _settled(request: Request, service: Service, found: Launch, request_id: str) -> Response:
    if found.role is None:
        raise Refused(wording.ROLE_UNKNOWN, status=403)
    if not found.context:
        raise Refused(wording.CONTEXT_MISSING, status=400)
    by = By(None, service.clock(), request_id)
    with writing(service.engine) as connection:
        context = placements.find_context(connection, found)
        if context is not None:
            context = placements.refresh(connection, found, context)
        if context is None and found.role is not Role.TEACHER:
            raise Refused(wording.COURSE_NOT_CONNECTED, status=409)
        person = people.person_of(connection, found.platform.id, found, context.course if context else None, by)
        if person.admin:  # or whoever runs the platform would be an administrator of ours
            raise Refused(wording.ADMIN_SIGNS_IN, status=403)
        if not people.is_open(connection, person, by.now):
            raise Refused(wording.ACCOUNT_CLOSED, status=403)
        if context is not None:
            people.enrol(connection, context.course, person, found.role, by)
        next_path = _next(connection, service, found, context, person, by)
    same_site: sessions.SameSite = "None" if _is_framed(request, found) else "Lax"
    return people_pages.begin(request, service, person, links.to(next_path), request_id, same_site)


def _next(
    connection: sa.Connection, service: Service, found: Launch, context: Context | None, person: User, by: By
) -> str:
    """Where the launch leads: to what it is for, or to a teacher's choice if nobody has said what that is."""
    if found.kind is Kind.DEEP_LINKING and found.role is not Role.TEACHER:
        raise Refused(wording.TEACHERS_PICK, status=403)
    if context is None or found.kind is Kind.DEEP_LINKING:
        return f"/lti/setup/{tickets.keep(connection, person.id, found, by.now)}"
    link = placements.find_link(connection, context, found, service.course.units)
    if link is not None and link.unit not in service.course.units:
        if found.role is not Role.TEACHER:
            raise Refused(wording.UNIT_GONE, status=410)
        link = None  # to be chosen anew
    if link is not None and link.is_new and link.line_item_url:
        syncing.tell_of_link(connection, context, link.line_item_url, link.unit, by.now)
    if link is None and found.role is Role.TEACHER:
        return f"/lti/setup/{tickets.keep(connection, person.id, found, by.now)}"
    if link is None:
        raise Refused(wording.UNIT_NOT_CHOSEN, status=409)
    if found.role is not Role.STUDENT:
        return f"/courses/{context.course}/class/{link.unit}"
    syncing.tell(connection, context, found.subject, person, by.now)
    return f"/units/{link.unit}?course={context.course}"


def _is_framed(request: Request, found: Launch) -> bool:
    destination = request.headers.get("sec-fetch-dest")
    return destination in ("iframe", "frame") if destination else found.framed


# -- what a teacher is asked -----------------------------------------------------------------------------------------


@router.get("/lti/setup/{ticket}")
def setup_page(request: Request, service: Served, visitor: SignedIn, ticket: TicketId) -> Response:
    return _setup(request, service, visitor, ticket)


@router.post("/lti/setup/{ticket}")
def setup_form(
    request: Request, service: Served, visitor: SignedIn, ticket: TicketId, form: Posted, request_id: RequestId
) -> Response:
    by = By(visitor.account, service.clock(), request_id)
    with writing(service.engine) as connection:
        found = _waiting(connection, ticket, visitor, by.now)
        context = placements.find_context(connection, found)
        units = _units_chosen(service, form, several=deep_linking.takes_several(found.deep_linking))
        if not units:
            problem = wording.CHOOSE_UNIT
        elif context is None and (course := _course_chosen(connection, form, found, visitor.account, by)) is None:
            problem = wording.COURSE_NOT_YOURS
        else:
            problem = ""
            if context is None:
                assert course is not None
                context = placements.connect(connection, found, course, by)
            people.enrol(connection, context.course, visitor.user, Role.TEACHER, by)
            if found.kind is Kind.RESOURCE:
                link = placements.set_link(connection, context, found, units[0], by)
                if link.line_item_url:
                    syncing.tell_of_link(connection, context, link.line_item_url, link.unit, by.now)
            tickets.drop(connection, ticket)
            key = keys.signing(connection, by.now) if found.kind is Kind.DEEP_LINKING else None
    if problem:
        return _setup(request, service, visitor, ticket, form, problem)
    assert context is not None
    if key is None:
        return views.redirect(f"/courses/{context.course}/class/{units[0]}")
    picked = [deep_linking.Picked(unit, service.course.units[unit].title, ags.POINTS) for unit in units]
    answer = deep_linking.answer(
        found.platform, key, found.deployment, found.deep_linking, picked, base_url(request) + LAUNCH
    )
    return _return_page(request, service, answer)


def _return_page(request: Request, service: Service, answer: deep_linking.Answer) -> Response:
    """A page whose one form takes the answer to the platform; the only page of ours that may send a form elsewhere."""
    policy = views.PAGE_POLICY.replace("form-action 'self'", f"form-action {platforms.origin(answer.url)}")
    headers = {"Content-Security-Policy": policy}
    return views.page(request, service, "lti/return.html", headers=headers, answer=answer)


def _setup(
    request: Request, service: Service, visitor: Visitor, ticket: str, form: FormData | None = None, error: str = ""
) -> Response:
    """The questions; with a form that came back, and its answers as they were given."""
    sent = form if form is not None else FormData()
    with reading(service.engine) as connection:
        found = _waiting(connection, ticket, visitor, service.clock())
        context = placements.find_context(connection, found)
        mine = [] if context is not None else _taught(connection, visitor.account)
        links_here = placements.links_of(connection, context) if context is not None else []
    units = service.course.units
    stood = (link.unit for link in links_here if link.resource_link == found.resource_link)
    gone = next((unit for unit in stood if unit not in units), "")
    return views.page(
        request,
        service,
        "lti/setup.html",
        status=422 if error else 200,
        account=visitor.account,
        ticket=ticket,
        sent={"course": text(sent, "course") or NEW_COURSE, "code": text(sent, "code"), "units": sent.getlist("unit")},
        gone=gone,
        launch=found,
        context=context,
        courses=mine,
        units=list(units.values()),
        several=found.kind is Kind.DEEP_LINKING and deep_linking.takes_several(found.deep_linking),
        picking=found.kind is Kind.DEEP_LINKING,
        error=error,
    )


def _waiting(connection: sa.Connection, ticket: str, visitor: Visitor, now: float) -> Launch:
    found = tickets.find(connection, ticket, visitor.user.id, now)
    if found is None or (found.kind is Kind.DEEP_LINKING and not deep_linking.returns_to(found.deep_linking)):
        raise Problem(404, "lti_choice_expired", wording.PICK_EXPIRED)
    return found


def _taught(connection: sa.Connection, account: Account) -> list[Offering]:
    return [
        each
        for each in offerings.all_offerings(connection)
        if account.courses is not None
        and (within := account.within(each.id)) is not None
        and within.changes_class
        and each.archived_at is None
    ]


def _units_chosen(service: Service, form: FormData, *, several: bool) -> list[str]:
    sent = [value for value in form.getlist("unit") if isinstance(value, str)]
    chosen = [unit for unit in service.course.units if unit in sent]
    return chosen if several else chosen[:1]


def _course_chosen(connection: sa.Connection, form: FormData, found: Launch, account: Account, by: By) -> str | None:
    """The course that the platform's is to stand for; None if it is not this teacher's to give."""
    chosen = text(form, "course")
    if chosen == NEW_COURSE:
        title = found.context_title or found.context
        made = Offering(placements.slug(title), title, "UTC", by.now, listed_only=True)
        offerings.put(connection, made, by)
        return made.id
    if chosen == BY_CODE:
        invitation = invitations.use(connection, text(form, "code"), by.now, registers=False)
        return invitation.course if invitation is not None else None
    return chosen if chosen in {each.id for each in _taught(connection, account)} else None


# -- a platform that introduces itself ---------------------------------------------------------------------------------


@router.get(REGISTER, dependencies=[Unhurried])
def register(
    request: Request,
    service: Served,
    request_id: RequestId,
    openid_configuration: Annotated[str, Query(max_length=2_000)] = "",
    registration_token: Annotated[str, Query(max_length=FIELD_CHARS)] = "",
    invitation: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """The platform opens this for an administrator of its own, with the invitation of one of ours."""
    now = service.clock()
    with writing(service.engine) as connection:
        invited = invitations.use(connection, invitation, now, registers=True)
    if invited is None:
        raise Problem(403, "lti_invitation_used", wording.INVITATION_USED)
    try:
        made = registering.register(
            Session(Reach.of_platforms(service.settings)), openid_configuration, registration_token, base_url(request)
        )
    except Away as error:
        raise Problem(502, "lti_registration_failed", wording.REGISTRATION_FAILED + str(error)) from error
    with writing(service.engine) as connection:
        by = By(accounts.find(connection, invited.token, now), now, request_id)
        stored = platforms.register(connection, made.platform, by)
        if stored is not None and made.deployment:
            platforms.allow(connection, stored.id, made.deployment, by)
    if stored is None:
        raise Problem(409, "lti_platform_known", wording.PLATFORM_KNOWN)
    return views.page(request, service, "lti/registered.html", platform=stored, deployment=made.deployment)
