"""Free disk, the queue's length and the uploads under way go in; whether more is taken in, and if not why, comes out.

Intake closes before anything breaks. It opens again only when there is clear room, so that it does not flap around
the mark. Every web process judges by itself. (docs/decisions/0137)
"""

import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import sqlalchemy as sa
from fastapi import FastAPI, Request
from starlette.responses import Response

from service import wording
from service.database import AWAY
from service.problems import Problem, response
from service.runs import Status
from service.settings import Settings
from service.tables import runs

log = logging.getLogger(__name__)

AGAIN_FREE = 1.2  # times the least free bytes: then intake opens again
AGAIN_QUEUED = 0.9  # times the longest queue: likewise
DISK_RETRY_SECONDS = 300
QUEUE_RETRY_SECONDS = 60
PLACE_RETRY_SECONDS = 5
PLACE_WAIT_SECONDS = 5.0
PLACES_PER_TOKEN_SHARE = 4  # one token holds at most a quarter of the places for uploads
STORING = 1  # submissions that one process stores at a time: more are hardly faster, and hold up every other answer
KEYED = 3  # of those with an Idempotency-Key, beside it


_QUEUED = sa.select(sa.func.count()).select_from(runs).where(runs.c.status == Status.QUEUED.value)


@dataclass(frozen=True)
class Closed:
    """Why nothing is taken in: a problem's code, the reason in words, and when to ask again."""

    code: str
    reason: str
    retry_seconds: int

    def problem(self, note: str = "") -> Problem:
        """The answer to a request; `note` says what to do."""
        message = f"{self.reason} {note}".rstrip()
        return Problem(503, self.code, message, headers={"Retry-After": str(self.retry_seconds)})


def free_bytes(folder: Path) -> int:
    """What an ordinary user may still write on the file system of `folder`."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


@dataclass
class Pressure:
    """What one process remembers: for what it closed, and whose uploads are under way. `storing` lets some store,
    `keyed` those with an Idempotency-Key: these may be told that the one being stored is theirs."""

    free_bytes: Callable[[Path], int] = free_bytes
    closed: set[str] = field(default_factory=set)
    uploads: list[str] = field(default_factory=list)
    storing: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(STORING))
    keyed: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(KEYED))

    def state(self, settings: Settings, connection: sa.Connection) -> tuple[Closed, ...]:
        """Everything that keeps intake closed now; empty: it is open."""
        queued = connection.execute(_QUEUED).scalar_one()
        return self.judge(settings, self.free_bytes(settings.data), queued)

    def judge(self, settings: Settings, free: int, queued: int) -> tuple[Closed, ...]:
        """The same from numbers: free bytes beside the database, and runs that wait."""
        least, most = settings.min_free_bytes, settings.max_queued
        found = []
        if self._is_closed("disk_low", free < least, free >= least * AGAIN_FREE):
            found.append(Closed("disk_low", wording.disk_low(free, least), DISK_RETRY_SECONDS))
        if self._is_closed("queue_full", queued >= most, queued <= most * AGAIN_QUEUED):
            found.append(Closed("queue_full", wording.queue_full(queued), QUEUE_RETRY_SECONDS))
        return tuple(found)

    def _is_closed(self, code: str, over: bool, clear: bool) -> bool:
        if over:
            self.closed.add(code)
        elif clear:
            self.closed.discard(code)
        return code in self.closed

    @asynccontextmanager
    async def place(self, settings: Settings, token: str) -> AsyncIterator[None]:
        """Hold one of the places for uploads, each of which keeps a body in memory; waits a moment for one, then raises
        Problem 503. One token holds only some of them."""
        give_up_at = anyio.current_time() + PLACE_WAIT_SECONDS
        while not self._has_place(settings, token):
            if anyio.current_time() >= give_up_at:
                raise Closed("too_many_uploads", wording.TOO_MANY_UPLOADS, PLACE_RETRY_SECONDS).problem()
            await anyio.sleep(0.05)
        self.uploads.append(token)
        try:
            yield
        finally:
            self.uploads.remove(token)

    def _has_place(self, settings: Settings, token: str) -> bool:
        most = max(1, settings.max_uploads // PLACES_PER_TOKEN_SHARE)
        return len(self.uploads) < settings.max_uploads and self.uploads.count(token) < most


def install(app: FastAPI) -> None:
    """Answer every request that the database fails with its 503; a POST of a submission adds a receipt to that."""

    def on_away(request: Request, error: Exception) -> Response:
        log.warning("the database does not answer: %s", error)
        return response(request, of_database(error).problem(wording.TRY_AGAIN))

    for kind in AWAY:
        app.add_exception_handler(kind, on_away)


def of_database(error: Exception) -> Closed:
    """What to say when the database does not do what it must."""
    text = str(getattr(error, "orig", None) or error).lower()
    if any(sign in text for sign in ("disk is full", "no space left", "could not extend", "readonly")):
        return Closed("database_full", wording.DATABASE_FULL, DISK_RETRY_SECONDS)
    if any(sign in text for sign in ("is locked", "lock timeout", "deadlock", "queuepool limit", "too many clients")):
        return Closed("database_busy", wording.DATABASE_BUSY, 5)
    return Closed("database_unavailable", wording.DATABASE_UNAVAILABLE, 15)
