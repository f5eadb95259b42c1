"""A submission's id goes in; an event comes out whenever its run moves, until it ends: Server-Sent Events.

    event: status        the first event, and whenever the status changes; then "progress", and once "done"
    id: RUN-VERSION      a regrade gives a submission another run, and so another id
    data: {...}          what GET on the submission answers

One `Hub` a process reads the database for all clients, and keeps only the newest state: a slow client misses what is
in between, never the end. A client that names the id it saw last is sent nothing until the run has moved on from
there. (docs/decisions/0142)
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field

import anyio
import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service import answers, wording
from service.database import reading
from service.problems import Problem
from service.runs import Status
from service.stats import Stats
from service.tables import runs, submissions

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5  # between two looks at the database
LAST_POLL_SECONDS = 5.0  # while it does not answer
PLACE_SECONDS = 2.0  # between two looks at the places of those that wait
PLACES_PER_LOOK = 50
HEARTBEAT_SECONDS = 15.0  # proxies end what is silent for a minute
LIFE_SECONDS = 900.0  # then a client connects anew, with its token looked at again
RETRY_MILLISECONDS = 2000
CHUNK = 500  # ids in one query

STREAM = "text/event-stream"
HEADERS = {
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",  # nginx would collect the events before it sends them on
}


@dataclass(frozen=True)
class State:
    """Where a submission stands; `mark` is the id of the event that says so."""

    mark: str
    answer: answers.SubmissionAnswer

    @property
    def ended(self) -> bool:
        return self.answer.status.ended


Show = Callable[[sa.Connection, str], State | None]
"""The state of the submission with this id; None if there is none."""


def mark(run_id: str, version: int) -> str:
    return f"{run_id}-{version}"


def state_event(state: State, before: Status | None) -> bytes:
    """The event that tells a state to a client that was told the status `before`."""
    name = "done" if state.ended else "progress" if before is state.answer.status else "status"
    links = answers.links_of(state.answer.id)  # as this client reaches them: the state was read for all
    answer = state.answer.model_copy(update={"links": links})
    return f"event: {name}\nid: {state.mark}\ndata: {answer.model_dump_json()}\n\n".encode()


@dataclass(eq=False)
class Follower:
    """One client. `state` is the newest that it has not been told; `over`: there will be no other."""

    submission: str
    token: str
    seen: State
    state: State | None = None
    over: bool = False
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, state: State | None) -> None:
        if state is None:
            self.over = True
        elif state.mark != self.seen.mark or state.answer.position != self.seen.answer.position:
            self.state = self.seen = state
        else:
            return
        self.moved.set()


class Hub:
    """Follows submissions for the clients of one process, with one task that reads while there is anyone to tell."""

    def __init__(self, engine: sa.Engine, show: Show, stats: Stats, most: int) -> None:
        self._engine = engine
        self._show = show
        self._stats = stats
        self._most = most
        self._followers: set[Follower] = set()
        self._reader: asyncio.Task[None] | None = None
        self._places_at = 0.0
        self._places_from = 0
        self.closed = False

    @contextmanager
    def following(self, submission_id: str, token: str, seen: State, most: int) -> Iterator[Follower]:
        """Follow a submission from the state `seen`. Raises Problem 429 over `most` of a token, 503 over all."""
        if self.closed or len(self._followers) >= self._most:
            raise Problem(503, "too_many_streams", wording.STREAMS_FULL, headers={"Retry-After": "10"})
        if sum(follower.token == token for follower in self._followers) >= most:
            raise Problem(429, "too_many_streams", wording.streams_of_token(most), headers={"Retry-After": "10"})
        follower = Follower(submission_id, token, seen)
        self._followers.add(follower)
        self._count()
        if self._reader is None:
            # In a context of its own: the request that happens to start it must not lend it its id and its path.
            self._reader = asyncio.get_running_loop().create_task(self._read(), name="events", context=Context())
        try:
            yield follower
        finally:
            self._followers.discard(follower)
            self._count()

    def close(self) -> None:
        """End every stream soon; may be called from a signal's handler."""
        self.closed = True

    def _count(self) -> None:
        self._stats.set("followers", len(self._followers))

    async def _read(self) -> None:
        pause = POLL_SECONDS
        while self._followers and not self.closed:
            here = tuple(self._followers)  # who comes later is told by the next look only: it may have seen more
            try:
                found = await run_in_threadpool(self._look, here)
            except (sa.exc.SQLAlchemyError, OSError) as error:
                log.warning("events: the database does not answer (%s)", type(error).__name__)
                pause = min(2 * pause, LAST_POLL_SECONDS)
            else:
                pause = POLL_SECONDS
                for follower in here:
                    if follower.submission in found:
                        follower.tell(found[follower.submission])
            await asyncio.sleep(pause)
        self._reader = None
        if self.closed:
            for follower in self._followers:
                follower.tell(None)

    def _look(self, here: Sequence[Follower]) -> dict[str, State | None]:
        """The states of the submissions that moved for one of `here`, None of those that are gone."""
        ids = sorted({follower.submission for follower in here})
        with reading(self._engine) as connection:
            marks = _marks(connection, ids)
            moved = {each.submission for each in here if marks.get(each.submission) != each.seen.mark}
            waiting = {each.submission for each in here if each.seen.answer.status is Status.QUEUED} - moved
            return {
                submission_id: self._show(connection, submission_id) if submission_id in marks else None
                for submission_id in (*moved, *self._to_place(sorted(waiting)))
            }

    def _to_place(self, waiting: Sequence[str]) -> Sequence[str]:
        """Those whose places are looked at now: a few at a time, in turn."""
        now = time.monotonic()
        if now < self._places_at or not waiting:
            return ()
        self._places_at = now + PLACE_SECONDS
        start = self._places_from % len(waiting)
        self._places_from = start + PLACES_PER_LOOK
        return (*waiting[start:], *waiting[:start])[:PLACES_PER_LOOK]


def _marks(connection: sa.Connection, wanted: Sequence[str]) -> dict[str, str]:
    query = sa.select(submissions.c.id, runs.c.id.label("run"), runs.c.version).join(
        runs, runs.c.id == submissions.c.run
    )
    return {
        row.id: mark(row.run, row.version)
        for start in range(0, len(wanted), CHUNK)
        for row in connection.execute(query.where(submissions.c.id.in_(wanted[start : start + CHUNK])))
    }


class EventStream(Response):
    """The answer that goes on until the submission has ended, the client is gone or the service stops."""

    media_type = STREAM

    def __init__(self, hub: Hub, state: State, token: str, most: int, last_seen: str) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._hub = hub
        self._state = state
        self._token = token
        self._most = most
        self._last_seen = last_seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._state.ended:
            await self._begin(send)
            await _write(send, _first(self._state, self._last_seen), more=False)
            return
        with self._hub.following(self._state.answer.id, self._token, self._state, self._most) as follower:
            await self._begin(send)
            if not scope.get("state", {}).get("head"):
                async with anyio.create_task_group() as group:
                    group.start_soon(_until_gone, receive, group.cancel_scope)
                    await _write(send, _first(self._state, self._last_seen))
                    with anyio.move_on_after(LIFE_SECONDS):
                        await _tell(send, follower, self._state.answer.status)
                    group.cancel_scope.cancel()
            await _write(send, b"", more=False)

    async def _begin(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})


def _first(state: State, last_seen: str) -> bytes:
    told = b"" if state.mark == last_seen else state_event(state, None)
    return f"retry: {RETRY_MILLISECONDS}\n\n".encode() + told


async def _tell(send: Send, follower: Follower, status: Status) -> None:
    """Send what happens until the end."""
    while not follower.over:
        with anyio.move_on_after(HEARTBEAT_SECONDS) as waited:
            await follower.moved.wait()
        if waited.cancelled_caught:
            await _write(send, b": still here\n\n")
            continue
        follower.moved.clear()
        state, follower.state = follower.state, None
        if state is not None:
            await _write(send, state_event(state, status))
            status = state.answer.status
            if state.ended:
                return


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _write(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})
