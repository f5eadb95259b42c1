"""What the handlers work with goes in; the ASGI application comes out."""

import asyncio
import logging
import re
import secrets
import time
from importlib.resources import files

from fastapi import APIRouter, FastAPI
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import logs, pages, pressure, problems, routes, views, wording
from service.course_files import pages as course_pages
from service.dashboard import routers as dashboard
from service.database import AWAY
from service.dependencies import Service
from service.events import STREAM, Hub
from service.lti import api as lti_api
from service.lti import pages as lti_pages
from service.lti import routes as lti_routes
from service.lti.frames import Frames
from service.outbox import pages as outbox_pages
from service.people import routers as people
from service.people import routes as people_routes
from service.pressure import of_database
from service.proxies import Proxies
from service.regrading import pages as regrading_pages
from service.routes import events
from service.stats import Stats

log = logging.getLogger(__name__)

REQUEST_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# Routes that bound the body themselves, see upload.py.
COUNTS_ITSELF = ("/v1/units/{unit}/submissions", "/v1/course/versions")
PROBES = ("/livez", "/readyz", "/metrics")  # asked every few seconds
JSON_BODY_BYTES = 256 * 2**10  # of requests that are no submissions

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


ROUTERS = (
    *routes.ALL,
    people_routes.router,
    pages.router,
    *people.ROUTERS,
    outbox_pages.router,
    *dashboard.ROUTERS,
    regrading_pages.router,
    course_pages.router,
    lti_routes.router,
    lti_api.router,
    lti_pages.router,
)


def _routes() -> list[BaseRoute]:
    every = APIRouter()
    for router in ROUTERS:
        every.include_router(router)
    return every.routes


ROUTES = _routes()
"""Everything the service answers to: one list for all applications of a process, as a route is worked out when a
request first needs it, which takes long."""


def create_app(service: Service) -> FastAPI:
    settings = service.settings
    app = FastAPI(
        title="Autograder",
        summary="Grades a unit's code and the tests written for it.",
        version="1",
        routes=[*ROUTES],
        docs_url=None,  # the usual viewers load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # curl does not follow, and would end well with nothing said
    )
    app.state.service = service
    app.state.hub = Hub(service.engine, events.show(service), service.stats, settings.max_streams)
    problems.install(app)
    views.install(app)
    for error in AWAY:
        app.add_exception_handler(error, _without_database)
    pressure.install(app)
    app.mount("/static", StaticFiles(directory=str(files("service") / "static")), name="static")
    app.add_middleware(Answering, stats=service.stats, body_seconds=settings.max_upload_seconds)
    app.add_middleware(Frames, engine=service.engine)
    app.add_middleware(
        Proxies, root_path=settings.root_path, trusted=settings.forwarded_allow_ips, public_url=settings.public_url
    )
    return app


def _without_database(request: Request, error: Exception) -> Response:
    log.warning("the database does not answer: %s", error)
    return problems.response(request, of_database(error).problem())


class Answering:
    """Gives every request an id, a line in the log and a place in the figures, every response the headers that keep
    browsers careful, and a bug its answer.

    An id that the client or a proxy sends as X-Request-ID is kept if it is of a harmless form.
    """

    def __init__(self, app: ASGIApp, stats: Stats, body_seconds: float) -> None:
        self.app = app
        self._stats = stats
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = _request_id(scope)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        method = scope["method"]
        if method == "HEAD":  # what GET would answer; the server leaves the body out
            state["head"] = True
            scope = {**scope, "method": "GET"}
        begun_at = time.monotonic()
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                if headers.get("content-type", "").startswith(STREAM):
                    self._count(scope, method, status, time.monotonic() - begun_at)
            await send(message)

        with logs.about(request=request_id):
            try:
                await self.app(scope, _bounded(scope, receive, self._body_seconds), send_with_headers)
            except Exception as error:
                answer = problems.of_bug(Request(scope), error)
                if not status:
                    await answer(scope, receive, send_with_headers)
            finally:
                seconds = time.monotonic() - begun_at
                if not state.get("counted"):
                    self._count(scope, method, status, seconds)
                fields = {
                    "method": method,
                    "path": scope["path"],
                    "status": status,
                    "seconds": round(seconds, 4),
                    "client": (scope.get("client") or ("",))[0],
                }
                level = logging.DEBUG if scope["path"].endswith(PROBES) and status == 200 else logging.INFO
                log.log(level, "%s %s: %d", method, scope["path"], status, extra={"fields": fields})

    def _count(self, scope: Scope, method: str, status: int, seconds: float) -> None:
        state = scope["state"]
        state["counted"] = True
        route = _route(scope)
        shown = method if method in METHODS else "other"
        self._stats.count("http_requests", route=route, method=shown, status=str(status))
        self._stats.observe("http_request_seconds", seconds, route=route)
        if status in (429, 503):
            self._stats.count("refused", status=str(status), reason=state.get("problem", "not_ready"))


def _request_id(scope: Scope) -> str:
    sent = [value for name, value in scope["headers"] if name == b"x-request-id"]
    if len(sent) == 1 and REQUEST_ID.fullmatch(sent[0]):
        return str(sent[0].decode("ascii"))
    return secrets.token_hex(8)


def _bounded(scope: Scope, receive: Receive, seconds: float) -> Receive:
    """`receive`, which gives up when the body is larger than it may be, or not complete after so many seconds."""
    give_up_at = time.monotonic() + seconds
    complete = False
    count = 0

    async def receive_bounded() -> Message:
        nonlocal complete, count
        if complete or _route(scope) in COUNTS_ITSELF:
            return await receive()
        try:
            async with asyncio.timeout(max(0.0, give_up_at - time.monotonic())):
                message = await receive()
        except TimeoutError as error:
            complete = True
            raise HTTPException(408, wording.upload_too_slow(seconds), {"Connection": "close"}) from error
        count += len(message.get("body", b""))
        if count > JSON_BODY_BYTES:
            complete = True
            raise HTTPException(413, wording.BODY_TOO_LARGE, {"Connection": "close"})
        complete = not message.get("more_body", False)
        return message

    return receive_bounded


def _route(scope: Scope) -> str:
    """The path of the route that answers, with its parameters by name; "none" if there is none (yet)."""
    return getattr(scope.get("route"), "path", None) or "none"
