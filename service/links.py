"""A path of the service goes in; the path under which a client reaches it through a proxy comes out."""

from contextvars import ContextVar

prefix: ContextVar[str] = ContextVar("prefix", default="")
"""What stands before every path of this request as its client sees it, such as /grader; see service/proxies.py."""


def to(path: str) -> str:
    """The path as this request's client writes it."""
    return prefix.get() + path


def inside(path: str) -> str:
    """The path without what the proxy put before it."""
    return path.removeprefix(prefix.get())
