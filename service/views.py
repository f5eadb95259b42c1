"""A template and its values go in; a page in the service's frame comes out, or the way to the sign-in page.

Whoever has a page of their own takes `page` and one of `Person`, `Staff` and `Teaching`, which let nobody else in. A
form carries `csrf` in a field of that name: a POST without it does not reach its handler. (docs/decisions/0176)
"""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.datastructures import FormData

from service import links, walltime
from service.accounts import Account, Role
from service.dependencies import (
    SAFE,
    CourseId,
    Service,
    Visiting,
    csrf_missing,
    editor,
    reader,
    standing_in,
)
from service.people.passwords import Busy
from service.people.sessions import is_csrf
from service.people.visitors import Visitor
from service.people.wording import SIGN_IN_BUSY
from service.problems import Problem, response
from service.wording import admin_missing

SIGN_IN = "/sign-in"
THEMES = ("light", "dark")
THEME = "ag_theme"  # the cookie
BUSY_SECONDS = 2
MOST_FIELDS = 5_000
FIELD_BYTES = 256 * 2**10

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

templates = Environment(
    loader=FileSystemLoader(str(files("service") / "templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
templates.globals["to"] = links.to
templates.filters["said"] = walltime.said


@dataclass(frozen=True)
class Link:
    """One entry of the navigation."""

    text: str
    path: str
    current: bool


class SignInFirst(Exception):
    """The page is for people who are signed in."""


def install(app: FastAPI) -> None:
    """Lead whoever is not signed in to the sign-in page, and from there back."""

    @app.exception_handler(SignInFirst)
    def on_sign_in_first(request: Request, error: SignInFirst) -> RedirectResponse:
        asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        query = f"?{urlencode({'next': asked})}" if request.method == "GET" else ""
        return RedirectResponse(links.to(SIGN_IN) + query, 303)

    @app.exception_handler(Busy)
    def on_busy(request: Request, error: Busy) -> Response:
        retry = {"Retry-After": str(BUSY_SECONDS)}
        return response(request, Problem(503, "sign_in_busy", SIGN_IN_BUSY, headers=retry))


def page(
    request: Request,
    service: Service,
    name: str,
    *,
    account: Account | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> HTMLResponse:
    """The template with these values, in the frame of pages. `account`: who sees it, as they stand in its course.

    Besides `values` a template has `to`, `csrf`, `visitor`, `account`, `theme`, `here` (path and query) and `nav`.
    Who may frame it is not said here: see service/lti/frames.py.
    """
    visitor: Visitor | None = getattr(request.state, "visitor", None)
    theme = request.cookies.get(THEME, "")
    shown = {
        "csrf": visitor.csrf if visitor is not None else "",
        "visitor": visitor,
        "account": account,
        "theme": theme if theme in THEMES else "",
        "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        "nav": navigation(request, visitor),
        **values,
    }
    policy = {"Content-Security-Policy": PAGE_POLICY}
    return HTMLResponse(templates.get_template(name).render(shown), status, {**policy, **(headers or {})})


def redirect(path: str) -> RedirectResponse:
    """After a form: the page at `path`, which is one of ours without the prefix."""
    return RedirectResponse(links.to(path), 303)


def navigation(request: Request, visitor: Visitor | None, course: str | None = None) -> list[Link]:
    """What this person can go to from here; `course` for pages of a course whose path does not name it."""
    if visitor is None:
        return []
    account, course = visitor.account, course or request.path_params.get("course")
    found = [("Courses", "/courses")]
    within = account.within(course) if isinstance(course, str) else None
    if within is not None and within.sees_class:
        found += [("Class", f"/courses/{course}/class"), ("People", f"/courses/{course}/people")]
        found += [("Regrades", f"/courses/{course}/regrades")]
        found += [("Grades sent", f"/courses/{course}/deliveries")]
    if within is not None and within.changes_class:
        found += [
            ("Settings", f"/courses/{course}/settings"),
            ("Learning platforms", f"/courses/{course}/platforms"),
            ("Course tokens", f"/courses/{course}/tokens"),
            ("Audit", f"/courses/{course}/audit"),
        ]
    elif within is None and account.role is Role.ADMIN:
        found += [("Users", "/users"), ("Learning platforms", "/platforms"), ("Course files", "/course-files")]
        found += [("Audit", "/audit")]
    here = links.inside(request.url.path)
    return [
        Link(text, path, here == path or (path != "/courses" and here.startswith(f"{path}/"))) for text, path in found
    ]


SAFE_NEXT = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*", re.ASCII)


def safe_next(text: str, otherwise: str = "/courses") -> str:
    """Where to go on: a path of this service as its client writes it, and never another site."""
    prefix = links.prefix.get()
    if len(text) <= 2_000 and SAFE_NEXT.fullmatch(text) and (text == prefix or text.startswith(f"{prefix}/")):
        return text
    return links.to(otherwise)


# -- who may see a page ----------------------------------------------------------------------------------------------


async def form_of(request: Request) -> AsyncIterator[FormData]:
    """The fields of the form that was sent; a file in it is gone when the answer is made."""
    async with request.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=FIELD_BYTES) as form:
        yield form


Posted = Annotated[FormData, Depends(form_of)]


def text(form: FormData, name: str) -> str:
    """The field's last value without spaces around it; '' if it was not sent.

    PostgreSQL refuses to compare a NUL, and no field of ours has one.
    """
    value = form.get(name)
    return value.replace("\0", "").strip() if isinstance(value, str) else ""


def signed_in(request: Request, visitor: Visiting, form: Posted) -> Visitor:
    """Who is signed in; others are sent to the sign-in page, and forms without the CSRF token refused."""
    if visitor is None:
        raise SignInFirst
    if request.method not in SAFE:
        sent = request.headers.get("x-csrf-token") or form.get("csrf")
        if not is_csrf(sent, visitor.csrf):
            raise csrf_missing()
    return visitor


SignedIn = Annotated[Visitor, Depends(signed_in)]


def person(visitor: SignedIn) -> Account:
    return visitor.account


def person_in(visitor: SignedIn, course: CourseId) -> Account:
    return standing_in(visitor.account, course)


def staff(visitor: SignedIn, course: CourseId) -> Account:
    return reader(standing_in(visitor.account, course))


def teaching(visitor: SignedIn, course: CourseId) -> Account:
    return editor(standing_in(visitor.account, course))


def administering(visitor: SignedIn) -> Account:
    if visitor.account.role is not Role.ADMIN:
        raise Problem(403, "role_missing", admin_missing(visitor.account.role))
    return visitor.account


Person = Annotated[Account, Depends(person)]
"""Anybody who is signed in."""
PersonIn = Annotated[Account, Depends(person_in)]
"""Anybody with a part in the course of the path, as they stand there."""
Staff = Annotated[Account, Depends(staff)]
"""Who sees the class of the course in the path."""
Teaching = Annotated[Account, Depends(teaching)]
"""Who changes what holds for the class of the course in the path."""
Administering = Annotated[Account, Depends(administering)]
