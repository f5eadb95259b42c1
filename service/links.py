"""A path of the service goes in; the path under which a client reaches it through a proxy comes out."""

from contextvars import ContextVar

from fastapi import Request

prefix: ContextVar[str] = ContextVar("prefix", default="")
"""What stands before every path of this request as its client sees it, such as /grader; see service/proxies.py."""


def to(path: str) -> str:
    """The path as this request's client writes it."""
    return prefix.get() + path


def next_page(request: Request, **key: str | int | None) -> str | None:
    """The same question, from behind `key` (a parameter and its value) on; None behind the last page."""
    known = {name: value for name, value in key.items() if value is not None}
    following = request.url.include_query_params(**known)
    return f"{following.path}?{following.query}" if known else None


def inside(path: str) -> str:
    """The path without what the proxy put before it."""
    return path.removeprefix(prefix.get())
