"""A login and a password, or a link, goes in from a page; a session begins, and ends. One's own account."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from starlette.responses import RedirectResponse

from service import audit, links, views, walltime
from service.audit import By
from service.database import reading, writing
from service.dependencies import RequestId, Served, Service, Unhurried, Visiting, csrf_missing
from service.people import invitations, mint, passwords, sessions, sign_in, users, wording
from service.people.sign_in import Slow
from service.people.users import User
from service.views import Posted, SignedIn, text

router = APIRouter(include_in_schema=False)

YEAR_SECONDS = 365 * 86_400


# -- in and out ------------------------------------------------------------------------------------------------------


@router.get(views.SIGN_IN)
def sign_in_page(
    request: Request, service: Served, visitor: Visiting, next: Annotated[str, Query(max_length=2_000)] = ""
) -> Response:
    if visitor is not None:
        return RedirectResponse(views.safe_next(next), 303)
    return _sign_in_form(request, service, next=next)


@router.post(views.SIGN_IN, dependencies=[Unhurried])
def sign_in_form(request: Request, service: Served, form: Posted, request_id: RequestId) -> Response:
    _check_visitor(request, form.get("csrf"))
    now, login, next_path = service.clock(), text(form, "login")[: users.LOGIN_CHARS], text(form, "next")
    sent = form.get("password")
    password = sent if isinstance(sent, str) else ""
    address = sessions.address_of(request)
    found = sign_in.attempt(service.engine, service.passwords, login, password, address, now, request_id)
    if isinstance(found, Slow):
        shown = wording.sign_in_slow(found.retry_seconds)
        answer = _sign_in_form(request, service, next=next_path, login=login, error=shown, status=429)
        answer.headers["Retry-After"] = str(int(found.retry_seconds) + 1)
        return answer
    if found is None:
        return _sign_in_form(request, service, next=next_path, login=login, error=wording.SIGN_IN_WRONG, status=403)
    return begin(request, service, found, views.safe_next(next_path), request_id)


@router.post("/sign-out")
def sign_out(request: Request, service: Served, visitor: SignedIn, request_id: RequestId) -> Response:
    now = service.clock()
    with writing(service.engine) as connection:
        sessions.end(connection, visitor.session.digest, visitor.user.id)
        audit.note(
            connection,
            By(visitor.account, now, request_id),
            action="session.end",
            object=visitor.user.account,
            student=visitor.user.student,
        )
    answer = views.redirect(f"{views.SIGN_IN}?out=1")
    sessions.drop_cookie(request, answer)
    return answer


def begin(
    request: Request,
    service: Service,
    user: User,
    next_path: str,
    request_id: str,
    same_site: sessions.SameSite = "Lax",
) -> RedirectResponse:
    """Sign the person in here, whoever was before, and go on to `next_path`, as the client writes it."""
    now = service.clock()
    with writing(service.engine) as connection:
        if (before := sessions.cookie(request)) is not None:
            sessions.forget(connection, before)
        agent, address = request.headers.get("user-agent", ""), sessions.address_of(request)
        secret = sessions.begin(connection, user.id, now, agent, address)
        audit.note(
            connection, By(None, now, request_id), action="session.begin", object=user.account, student=user.student
        )
    answer = RedirectResponse(next_path, 303)
    sessions.set_cookie(request, answer, secret, same_site=same_site)
    sessions.drop_cookie(request, answer, sessions.VISITOR)
    return answer


def _sign_in_form(
    request: Request, service: Service, *, next: str, login: str = "", error: str = "", status: int = 200
) -> Response:
    notice = wording.SIGNED_OUT if "out" in request.query_params else ""
    return _with_visitor(
        request, service, "people/sign_in.html", status, next=next, login=login, error=error, notice=notice
    )


def _with_visitor(request: Request, service: Service, name: str, status: int, **values: Any) -> Response:
    """A page with a form for somebody who is not signed in: its CSRF token belongs to a cookie of its own."""
    known = sessions.cookie(request, sessions.VISITOR)
    secret = known or sessions.new_secret()
    answer = views.page(request, service, name, status=status, **{**values, "csrf": sessions.csrf_of(secret)})
    if known is None:
        sessions.set_cookie(request, answer, secret, sessions.VISITOR)
    return answer


def _check_visitor(request: Request, sent: object) -> None:
    secret = sessions.cookie(request, sessions.VISITOR)
    if secret is None or not sessions.is_csrf(sent, sessions.csrf_of(secret)):
        raise csrf_missing()


# -- passwords -------------------------------------------------------------------------------------------------------


@router.get(invitations.PATH)
def set_password_page(request: Request, service: Served, code: Annotated[str, Query(max_length=200)] = "") -> Response:
    with reading(service.engine) as connection:
        user = invitations.invited(connection, code, service.clock())
    return _set_password_form(request, service, user, code)


@router.post(invitations.PATH, dependencies=[Unhurried])
def set_password_form(request: Request, service: Served, form: Posted, request_id: RequestId) -> Response:
    _check_visitor(request, form.get("csrf"))
    code, now = text(form, "code"), service.clock()
    with reading(service.engine) as connection:
        user = invitations.invited(connection, code, now)
    if user is None:
        return _set_password_form(request, service, None, code)
    password, wrong = _new_password(form.get("password"), form.get("again"), user)
    if wrong:
        return _set_password_form(request, service, user, code, wrong)
    hashed = service.passwords.hash(password)
    with writing(service.engine) as connection:
        user = invitations.accept(connection, code, hashed, now)
        if user is not None:
            by = By(None, now, request_id)
            audit.note(connection, by, action="password.set", object=user.account, student=user.student)
            mint.revoke_all_of(connection, user.id, user.account, by)  # of whoever knew the password before
    if user is None:  # another was quicker
        return _set_password_form(request, service, None, code)
    return begin(request, service, user, links.to("/courses"), request_id)


def _set_password_form(request: Request, service: Service, user: User | None, code: str, error: str = "") -> Response:
    return _with_visitor(
        request,
        service,
        "people/set_password.html",
        422 if error else 200 if user is not None else 404,
        user=user,
        code=code,
        error=error if user is not None else wording.LINK_DEAD,
        least=passwords.LEAST_CHARS,
        most=passwords.MOST_CHARS,
    )


def _new_password(sent: object, again: object, user: User) -> tuple[str, str]:
    """The password, and why it will not do; '' if it will."""
    password = sent if isinstance(sent, str) else ""
    if passwords.is_weak(password, user.login):
        return "", wording.PASSWORD_WEAK
    return password, "" if password == again else wording.PASSWORDS_DIFFER


# -- one's own account -----------------------------------------------------------------------------------------------


@router.get("/me")
def me(request: Request, service: Served, visitor: SignedIn) -> Response:
    return _me(request, service, visitor)


@router.post("/me/password")
def change_password(
    request: Request, service: Served, visitor: SignedIn, form: Posted, request_id: RequestId
) -> Response:
    now, user = service.clock(), visitor.user
    current = form.get("current")
    address = sessions.address_of(request)
    known = sign_in.attempt(
        service.engine,
        service.passwords,
        user.login,
        current if isinstance(current, str) else "",
        address,
        now,
        request_id,
    )
    if isinstance(known, Slow):
        return _me(request, service, visitor, error=wording.sign_in_slow(known.retry_seconds), status=429)
    if known is None or known.id != user.id:
        return _me(request, service, visitor, error=wording.PASSWORD_WRONG, status=403)
    password, wrong = _new_password(form.get("password"), form.get("again"), user)
    if wrong:
        return _me(request, service, visitor, error=wrong, status=422)
    hashed = service.passwords.hash(password)
    with writing(service.engine) as connection:
        users.set_password(connection, user.id, hashed)
        by = By(visitor.account, now, request_id)
        audit.note(connection, by, "password.change", user.account, student=user.student)
        if text(form, "tokens"):
            mint.revoke_all_of(connection, user.id, user.account, by)
    return begin(request, service, user, links.to("/me?set=1"), request_id)


@router.post("/me/sessions/end")
def end_session(service: Served, visitor: SignedIn, form: Posted) -> Response:
    digest = text(form, "session")
    with writing(service.engine) as connection:
        if digest:
            sessions.end(connection, digest, visitor.user.id)
        else:
            sessions.end_others(connection, visitor.user.id, visitor.session.digest)
    return views.redirect("/me")


@router.post("/theme")
def theme(request: Request, visitor: SignedIn, form: Posted) -> Response:
    """Light, dark, or as the system is: kept in a cookie that says nothing else."""
    wanted = text(form, "theme")
    answer = RedirectResponse(views.safe_next(text(form, "next")), 303)
    secure = request.url.scheme == "https"
    if wanted in views.THEMES:
        answer.set_cookie(views.THEME, wanted, YEAR_SECONDS, samesite="lax", secure=secure, httponly=True)
    else:
        answer.delete_cookie(views.THEME, samesite="lax", secure=secure, httponly=True)
    return answer


def _me(request: Request, service: Service, visitor: SignedIn, error: str = "", status: int = 200) -> Response:
    with reading(service.engine) as connection:
        found = sessions.of_user(connection, visitor.user.id, service.clock())
    return views.page(
        request,
        service,
        "people/me.html",
        account=visitor.account,
        status=status,
        user=visitor.user,
        sessions=found,
        error=error,
        notice=wording.PASSWORD_SET if "set" in request.query_params and not error else "",
        least=passwords.LEAST_CHARS,
        most=passwords.MOST_CHARS,
        at=lambda seconds: f"{walltime.said(walltime.show(seconds, 'UTC'))} UTC",
    )
