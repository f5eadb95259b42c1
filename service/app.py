"""What the handlers work with goes in; the ASGI application comes out."""

import secrets
from importlib.resources import files

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import pages, problems, routes
from service.dependencies import Service

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def create_app(service: Service) -> FastAPI:
    app = FastAPI(
        title="Autograder",
        summary="Grades a unit's code and the tests written for it.",
        version="1",
        docs_url=None,  # the usual viewers load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # curl does not follow, and would end well with nothing said
    )
    app.state.service = service
    problems.install(app)
    for router in routes.ALL:
        app.include_router(router)
    app.include_router(pages.router)
    app.mount("/static", StaticFiles(directory=str(files("service") / "static")), name="static")
    app.add_middleware(Headers)
    return app


class Headers:
    """Gives every request an id, every response the headers that keep browsers careful, and a bug its answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # what GET would answer; the server leaves the body out
            scope = {**scope, "method": "GET"}
        request_id = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id

        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception as error:
            answer = problems.of_bug(Request(scope), error)
            if not started:
                await answer(scope, receive, send_with_headers)
