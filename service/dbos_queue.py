"""The port of service/queue.py on DBOS Transact, which keeps its queue in our database.

The web process has a client and never launches the engine. The worker launches it on the database's URL: launched on
an engine of ours, which begins transactions itself, it fails. (docs/decisions/0060)
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions, WorkflowSerializationFormat, _dbos, _queue

from service.database import BUSY_MILLISECONDS, open_engine
from service.queue import Handler, Stopping

QUEUE = "grading"
WORKFLOW = "grade"
# Pinned: by default the engine hashes the source and strands what was queued under another hash.
# A run whose shape changes gets another workflow name instead.
VERSION = "1"
NAME = "autograder"

_PORTABLE = WorkflowSerializationFormat.PORTABLE  # JSON; the engine's default is pickle
_LIVE = ["ENQUEUED", "DELAYED", "PENDING"]
_ENDED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
_AT_A_TIME = 500  # rows deleted in one statement
LEAST_SLEEP_SECONDS = 0.01  # between two looks, however often it is woken
STOP_SECONDS = 0.25  # by which who sleeps notices that it is to stop

_look_at_queue = _queue.queue_worker_thread

logging.getLogger("dbos").setLevel(logging.WARNING)


def migrate(url: str) -> None:
    """Create or update the engine's own tables."""
    DBOS.migrate(url)


def _options(run_id: str, priority: int) -> EnqueueOptions:
    return {
        "workflow_name": WORKFLOW,
        "queue_name": QUEUE,
        "workflow_id": run_id,
        "priority": priority,
        "app_version": VERSION,
        "serialization_type": _PORTABLE,
    }


class DbosQueue:
    """Enqueues through a client on the service's own database engine."""

    def __init__(self, engine: sa.Engine) -> None:
        # A request does not wait for a database that is away.
        self._client = DBOSClient(
            system_database_engine=engine, application_name=NAME, lazy=True, retry_connection_errors=False
        )

    def submit(self, connection: sa.Connection, run_id: str, priority: int) -> None:
        self._client.enqueue_in_transaction(connection, _options(run_id, priority), run_id)

    def cancel(self, run_id: str) -> None:
        self._client.cancel_workflow(run_id)

    def forget(self, run_ids: Sequence[str]) -> None:
        for start in range(0, len(run_ids), _AT_A_TIME):
            self._client.delete_workflows(list(run_ids[start : start + _AT_A_TIME]))

    def close(self) -> None:
        self._client.destroy()


class LightSleep(threading.Event):
    """The event that tells the engine's thread to stop, for which it waits between two looks: it can be woken, too.
    While this process is `busy` it sleeps on: there is nothing that it could take."""

    def __init__(self, stop: threading.Event, rung: threading.Event, busy: Callable[[], bool]) -> None:
        super().__init__()
        self._stop, self._rung, self._busy = stop, rung, busy

    def is_set(self) -> bool:
        return self._stop.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        until = math.inf if timeout is None else time.monotonic() + timeout
        self._stop.wait(min(LEAST_SLEEP_SECONDS, max(0.0, until - time.monotonic())))
        while not self.is_set() and ((left := until - time.monotonic()) > 0 or self._busy()):
            if self._rung.wait(min(left, STOP_SECONDS) if left > 0 else STOP_SECONDS):
                break
        self._rung.clear()
        return self.is_set()


def _idle(stop_event: threading.Event, dbos: DBOS) -> None:
    """What a thread of the engine does that would look for what is never there, beside the runs."""
    stop_event.wait()


class DbosEngine:
    """Runs the queue in this process. `executor_id` names the worker: what a process of that name left unfinished is
    delivered again when the next one starts, so no two live processes may share it.

    What is asked about the queue goes through a client: it works before the start and after the stop, and it fails
    where the engine itself would wait for the database for ever.
    """

    def __init__(self, url: str, executor_id: str, slots: int, poll_seconds: float) -> None:
        self._url = url
        self._executor_id = executor_id
        self._slots = slots
        self._poll_seconds = poll_seconds
        self._database = open_engine(url)
        self._client = DBOSClient(
            system_database_engine=self._database, application_name=NAME, lazy=True, retry_connection_errors=False
        )
        # The engine's own count of slots leaves out what it recovers; this one does not.
        self._free = threading.BoundedSemaphore(slots)
        self._delivered: set[str] = set()
        self._rung = threading.Event()
        self._lock = threading.Lock()
        self._at_work = 0
        self._lost: set[str] = set()

    def start(self, handler: Handler) -> None:
        config: DBOSConfig = {
            "name": NAME,
            "system_database_url": self._url,
            "application_version": VERSION,
            "executor_id": self._executor_id,
            "log_level": "WARNING",
            "enable_otlp": False,
            "run_migrations": False,
        }
        if self._url.startswith("sqlite"):
            config["db_engine_kwargs"] = {"connect_args": {"timeout": BUSY_MILLISECONDS / 1000}}
        DBOS(config=config)

        # No step inside: a checkpointed step would answer a second delivery from the engine's memory, while the
        # truth about a run is in our tables.
        @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None, serialization_type=_PORTABLE)
        def grade(run_id: str) -> str:
            self._delivered.add(run_id)
            with self._free, self._working(), suppress(Stopping):
                handler(run_id)
            self._delivered.discard(run_id)
            return run_id

        _queue.queue_worker_thread = self._look_at_queue
        vars(_dbos)["background_jobs_thread"] = _idle  # it looks for delays and deadlines: no run has any
        DBOS.launch()
        DBOS.register_queue(
            QUEUE,
            worker_concurrency=self._slots,
            polling_interval_sec=self._poll_seconds,
            on_conflict="always_update",
        )

    def wake(self) -> None:
        """Look into the queue now, not only when it is time; from any thread."""
        self._rung.set()

    def _look_at_queue(self, stop_event: threading.Event, dbos: DBOS, queue: _queue.Queue) -> None:
        if queue.name == QUEUE:
            _look_at_queue(LightSleep(stop_event, self._rung, self._is_busy), dbos, queue)
        else:
            _idle(stop_event, dbos)  # the engine's own queue: every run names ours, and what is recovered stays in it

    @contextmanager
    def _working(self) -> Iterator[None]:
        with self._lock:
            self._at_work += 1
        try:
            yield
        finally:
            with self._lock:
                self._at_work -= 1
            self.wake()  # for the next one

    def _is_busy(self) -> bool:
        return self._at_work >= self._slots

    def known(self) -> dict[str, str | None]:
        found = self._client.list_workflows(name=WORKFLOW, status=_LIVE, load_input=False, load_output=False)
        known = {each.workflow_id: each.executor_id if each.status == "PENDING" else None for each in found}
        # A run can be marked as given to this process without reaching it, if the database fails in between.
        mine = {run_id for run_id, worker in known.items() if worker == self._executor_id}
        lost = mine - self._delivered
        for run_id in lost & self._lost:  # twice in a row: this is no moment in between
            del known[run_id]
        self._lost = lost
        return known

    def deliver_again(self, runs: Mapping[str, int]) -> None:
        self._delete(runs)
        for run_id, priority in runs.items():
            with self._database.begin() as connection:
                self._client.enqueue_in_transaction(connection, _options(run_id, priority), run_id)

    def forget_ended(self, before: float) -> int:
        moment = datetime.fromtimestamp(before, UTC).isoformat()
        ended = self._client.list_workflows(status=_ENDED, completed_before=moment, load_input=False, load_output=False)
        self._delete([each.workflow_id for each in ended])
        return len(ended)

    def stop(self, grace_seconds: float) -> None:
        DBOS.destroy(workflow_completion_timeout_sec=int(grace_seconds))

    def close(self) -> None:
        self._client.destroy()
        self._database.dispose()

    def _delete(self, run_ids: Iterable[str]) -> None:
        ids = list(run_ids)
        for start in range(0, len(ids), _AT_A_TIME):
            self._client.delete_workflows(ids[start : start + _AT_A_TIME])
