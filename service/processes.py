"""Settings go in; the worker process runs until it is told to stop. With what every process of the service begins with.

Loaded without the web framework, which a worker has no use for (service/web.py has the web process).
"""

import gc
import logging
import os
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from grader.unit import Course
from service import bells, database, dbos_queue, logs, retention
from service.admission import MemoryAdmission, sized
from service.dbos_queue import DbosEngine
from service.settings import Settings
from service.worker import Fenced, Grading, GradingWorker

EMBEDDED_NAME = "worker-1"  # the same after every start, so that a new process takes up at once what the last one left
UNUSABLE = 2  # exit status of a process that would fail again whatever is done
FENCED = 3  # exit status of a worker that another took over; it may start again
LOCK_SECONDS = 3.0  # for a worker that was just killed to be gone


def prepare(settings: Settings) -> None:
    """Bring the database up to date, ours and the job engine's."""
    database.wait_for(settings)
    database.migrate(settings)
    with database.alone(settings):
        dbos_queue.migrate(settings.url)


def pass_over_what_lasts() -> None:
    """Have garbage collection look no more at what there is by now, which lives as long as the process: the course and
    our modules. It would take a tenth of a second, in the middle of a grading or of a request."""
    gc.collect()
    gc.freeze()


def when_stdin_closes(then: Callable[[], None]) -> None:
    """Call `then` from a thread when standard input ends: the supervisor is gone, or wants this process to end."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        then()

    threading.Thread(target=watch, name="stdin", daemon=True).start()


def run_worker(
    settings: Settings,
    course: Course,
    grading: Grading,
    *,
    until_stdin_closes: bool = False,
    course_load: int | None = None,
) -> None:
    """Grade until SIGTERM or SIGINT, and end the process: with status FENCED if another worker took over. The database
    is up to date.

    Raises database.Held if another embedded worker uses this data directory.
    """
    settings = sized(settings)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if until_stdin_closes:
        when_stdin_closes(stop.set)
    with _name(settings, embedded=until_stdin_closes) as name:
        logs.name_process(worker=name)
        engine = database.open_engine(settings.url)
        worker = GradingWorker(
            settings,
            engine,
            course,
            grading,
            name=name,
            stop=stop,
            admission=MemoryAdmission(settings),
            course_load=course_load,
        )
        status = 0
        try:
            with retention.daily(engine, settings):
                queue = DbosEngine(settings.url, name, settings.slots, settings.engine_poll_seconds)

                def look(word: str) -> None:
                    worker.more_waits()
                    queue.wake()

                pass_over_what_lasts()
                with bells.queued(settings.data).heard(look):
                    worker.run(queue)
        except Fenced:
            status = FENCED
        logging.shutdown()
        # A thread may still be at a run that was given back, or wait for a database that does not answer.
        os._exit(status)


@contextmanager
def _name(settings: Settings, *, embedded: bool) -> Iterator[str]:
    """What the worker is called: by its machine, its process and a number that no other start has.

    The only worker of `serve` on its own SQLite file is called the same at every start: what the last process left is
    then known to be left, without waiting. Two live ones of that name would grade it twice, so it holds a lock.
    """
    if not (embedded and settings.url.startswith("sqlite")):
        yield f"{socket.gethostname()[:30]}-{os.getpid()}-{uuid.uuid4().hex[:16]}"
        return
    with database.locked(settings.data / "worker.lock", wait_seconds=LOCK_SECONDS):
        yield EMBEDDED_NAME
