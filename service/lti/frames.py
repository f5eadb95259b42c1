"""A request from within a frame goes in; its answer names the registered platforms as those who may frame it.

Everything else stays as it is: framed by nobody. Pages on which a password is typed are framed by nobody at all.
(docs/decisions/0192)
"""

import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import links
from service.database import reading
from service.lti import platforms

IN_FRAMES = ("iframe", "frame")
NOBODY = "frame-ancestors 'none'"
NEVER = ("/sign-in", "/set-password")


class Frames:
    """Widens the policy of answers that a browser asked for in order to show them in a frame."""

    def __init__(self, app: ASGIApp, engine: sa.Engine) -> None:
        self._app = app
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or Headers(scope=scope).get("sec-fetch-dest") not in IN_FRAMES:
            await self._app(scope, receive, send)
            return
        may_be_framed = links.inside(scope["path"]) not in NEVER

        async def send_framed(message: Message) -> None:
            allowed = ""
            if message["type"] == "http.response.start" and may_be_framed:
                allowed = await run_in_threadpool(self._origins)  # now: the request may have registered one
            if allowed:
                headers = MutableHeaders(scope=message)
                policy = headers.get("Content-Security-Policy", "")
                headers["Content-Security-Policy"] = policy.replace(NOBODY, f"frame-ancestors {allowed}")
            await send(message)

        await self._app(scope, receive, send_framed)

    def _origins(self) -> str:
        with reading(self._engine) as connection:
            found = platforms.all_platforms(connection)
        return " ".join(sorted({each.frame_origin for each in found if each.frame_origin and not each.retired_at}))
