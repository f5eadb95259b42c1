"""A request as a proxy sent it goes in; the application sees the client's address, its scheme and its path.

Headers are believed only from the peers that the settings name. Behind a proxy that serves us under a path, that path
comes from the settings (root_path) or from X-Forwarded-Prefix, and it may or may not be cut off by the proxy: both
work. Where the settings say by what address people reach us, no header has a say in it: links to set a password and
what platforms are told are made of that address. (docs/decisions/0140, 0230)
"""

from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from service import links
from service.settings import PREFIX

PREFIX_CHARS = 200


class Proxies:
    """Takes the proxies' headers off a request's way in."""

    def __init__(self, app: ASGIApp, root_path: str, trusted: str, public_url: str = "") -> None:
        self._app = Addressed(app, public_url) if public_url else app
        self._root_path = root_path
        self._told = bool(public_url)
        # It does the scheme and the client; what comes out before it is the peer that is connected.
        self._believed: Any = ProxyHeadersMiddleware(self._app, trusted or "none")  # type: ignore[arg-type]
        self._trusted = self._believed.trusted_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        peer = (scope.get("client") or ("", 0))[0]
        prefix = self._root_path
        if peer in self._trusted and not self._told:
            prefix = _sent_prefix(scope) or prefix
        scope["root_path"] = prefix
        _put_before(scope, prefix)
        token = links.prefix.set(prefix)
        try:
            await self._believed(scope, receive, send)
        finally:
            links.prefix.reset(token)


class Addressed:
    """Lets every request have come to our public address, whatever it says."""

    def __init__(self, app: ASGIApp, public_url: str) -> None:
        self._app = app
        parts = urlsplit(public_url)
        self._scheme, self._host = parts.scheme, parts.netloc.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        others = [(name, value) for name, value in scope["headers"] if name != b"host"]
        headers = [(b"host", self._host), *others]
        await self._app({**scope, "scheme": self._scheme, "headers": headers}, receive, send)


def _put_before(scope: Scope, prefix: str) -> None:
    """Make the path begin with `prefix`, unless the proxy has left it on."""
    path: str = scope["path"]
    if path == prefix or path.startswith(f"{prefix}/"):
        return
    scope["path"] = prefix + path
    if scope.get("raw_path") is not None:
        scope["raw_path"] = prefix.encode() + scope["raw_path"]


def _sent_prefix(scope: Scope) -> str:
    values = [value for name, value in scope["headers"] if name == b"x-forwarded-prefix"]
    if len(values) != 1:
        return ""
    sent = values[0].decode("latin-1").strip().rstrip("/")
    return sent if len(sent) <= PREFIX_CHARS and PREFIX.fullmatch(sent) else ""
