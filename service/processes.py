"""Settings go in; the worker process runs until it is told to stop. With what every process of the service begins with.

Loaded without the web framework, which a worker has no use for (service/web.py has the web process).
"""

import os
import signal
import threading
from collections.abc import Callable

from grader.unit import Course
from service import database, dbos_queue
from service.dbos_queue import DbosEngine
from service.settings import Settings
from service.worker import Grading, GradingWorker

WORKER_NAME = "worker-1"  # the same after every start, so that a new process takes up what the last one left
UNUSABLE = 2  # exit status of a process that would fail again whatever is done
LOCK_SECONDS = 3.0  # for a worker that was just killed to be gone


def prepare(settings: Settings) -> None:
    """Bring the database up to date, ours and the job engine's."""
    database.migrate(settings)
    with database.locked(settings.data / "migrate.lock", wait_seconds=60):
        dbos_queue.migrate(settings.url)


def when_stdin_closes(then: Callable[[], None]) -> None:
    """Call `then` from a thread when standard input ends: the supervisor is gone, or wants this process to end."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        then()

    threading.Thread(target=watch, name="stdin", daemon=True).start()


def run_worker(settings: Settings, course: Course, grading: Grading, *, until_stdin_closes: bool = False) -> None:
    """Grade until SIGTERM or SIGINT. Raises database.Held if another worker uses this data directory."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if until_stdin_closes:
        when_stdin_closes(stop.set)
    prepare(settings)
    # The engine finds what a dead worker left by its name; two live ones of that name would run it twice.
    with database.locked(settings.data / "worker.lock", wait_seconds=LOCK_SECONDS):
        engine = database.open_engine(settings.url)
        worker = GradingWorker(
            settings,
            engine,
            course,
            grading,
            name=WORKER_NAME,
            stop=stop,
        )
        try:
            worker.run(DbosEngine(settings.url, WORKER_NAME, settings.slots, settings.engine_poll_seconds))
        finally:
            engine.dispose()
