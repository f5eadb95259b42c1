"""Settings go in; the web process, the worker process, or both under one supervisor, run until they are told to stop.

`serve` keeps the two apart, because only the worker may reach the sandbox's engine. A child that dies is started again,
after a pause that grows while it keeps dying. Children end when their stdin does, so that none outlives a killed
supervisor.
"""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field

import uvicorn

from grader.unit import Course
from service import database, dbos_queue
from service.app import Service, create_app
from service.dbos_queue import DbosEngine, DbosQueue
from service.settings import Settings
from service.worker import Grading, GradingWorker

log = logging.getLogger(__name__)

WORKER_NAME = "worker-1"  # the same after every start, so that a new process takes up what the last one left
UNUSABLE = 2  # exit status of a child that would fail again whatever is done
LAST_PAUSE_SECONDS = 10.0
STEADY_SECONDS = 30.0  # a child that lived so long starts over with short pauses
POLL_SECONDS = 0.1
LOCK_SECONDS = 3.0  # for a worker that was just killed to be gone


def prepare(settings: Settings) -> None:
    """Bring the database up to date, ours and the job engine's."""
    database.migrate(settings)
    with database.locked(settings.data / "migrate.lock", wait_seconds=60):
        dbos_queue.migrate(settings.url)


# -- the two processes ---------------------------------------------------------------------------------------------


def run_web(settings: Settings, course: Course, host: str, port: int, *, until_stdin_closes: bool = False) -> None:
    """Answer HTTP until SIGTERM or SIGINT."""
    prepare(settings)
    engine = database.open_engine(settings.url)
    queue = DbosQueue(engine)
    service = Service(settings, engine, queue, course)
    config = uvicorn.Config(
        create_app(service),
        host=host,
        port=port,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=5,
        lifespan="off",
    )
    server = uvicorn.Server(config)

    def stop() -> None:
        server.should_exit = True

    if until_stdin_closes:
        _when_stdin_closes(stop)
    try:
        server.run()
    finally:
        queue.close()
        engine.dispose()


def run_worker(settings: Settings, course: Course, grading: Grading, *, until_stdin_closes: bool = False) -> None:
    """Grade until SIGTERM or SIGINT. Raises database.Held if another worker uses this data directory."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if until_stdin_closes:
        _when_stdin_closes(stop.set)
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


def _when_stdin_closes(then: Callable[[], None]) -> None:
    def watch() -> None:
        while os.read(0, 4096):
            pass
        then()

    threading.Thread(target=watch, name="stdin", daemon=True).start()


# -- both ----------------------------------------------------------------------------------------------------------


@dataclass
class Child:
    """A process that is kept alive."""

    name: str
    arguments: list[str]
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    failures: int = field(default=0)

    def start(self) -> None:
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "service.cli", *self.arguments],
            stdin=subprocess.PIPE,
            env=self.environment,
        )

    def look(self) -> int | None:
        """Start the process again if it ended and its pause is over. Returns its exit status if that is UNUSABLE."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.start_at:
                self.start()
            return None
        status = self.process.poll()
        if status is None:
            return None
        self.process = None
        self.failures = 1 if now - self.started_at > STEADY_SECONDS else self.failures + 1
        pause = min(0.2 * 2 ** (self.failures - 1), LAST_PAUSE_SECONDS)
        self.start_at = now + pause
        log.error("the %s process ended with status %d; it starts again in %.1f s", self.name, status, pause)
        return status if status == UNUSABLE else None

    def terminate(self) -> None:
        if self.process is not None:
            self.process.terminate()

    def wait(self, give_up_at: float) -> None:
        if self.process is None:
            return
        try:
            self.process.wait(max(0.0, give_up_at - time.monotonic()))
        except subprocess.TimeoutExpired:
            log.error("the %s process did not stop in time and is killed", self.name)
            self.process.kill()
            self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process = None


def serve(settings: Settings, host: str, port: int, say: Callable[[str], None]) -> int:
    """Keep the web and the worker process running until SIGTERM or SIGINT; returns the exit status.

    Raises database.Held if another `serve` uses this data directory, OSError if the port is taken.
    """
    with database.locked(settings.data / "serve.lock"):
        _try_port(host, port)
        stop = threading.Event()
        before = {n: signal.signal(n, lambda *_: stop.set()) for n in (signal.SIGTERM, signal.SIGINT)}
        environment = environment_of(settings)
        children = [
            Child("web", ["web", "--host", host, "--port", str(port), "--until-stdin-closes"], environment),
            Child("worker", ["worker", "--until-stdin-closes"], environment),
        ]
        _when_ready(host, port, stop, say)
        try:
            while not stop.wait(POLL_SECONDS):
                if any([child.look() is not None for child in children]):
                    return UNUSABLE
            return 0
        finally:
            give_up_at = time.monotonic() + settings.stop_seconds + 10
            for child in children:
                child.terminate()
            for child in children:
                child.wait(give_up_at)
            for number, handler in before.items():
                signal.signal(number, handler)


def environment_of(settings: Settings) -> dict[str, str]:
    """This process's environment, with the settings as the children read them."""
    return {
        **os.environ,
        "AUTOGRADER_DATA": str(settings.data),
        "AUTOGRADER_COURSE": str(settings.course),
        "AUTOGRADER_DATABASE_URL": settings.database_url,
        "AUTOGRADER_SANDBOX": settings.sandbox,
        "AUTOGRADER_IMAGE": settings.image,
        "AUTOGRADER_JOBS": str(settings.jobs),
        "AUTOGRADER_SLOTS": str(settings.slots),
        "AUTOGRADER_MAX_BODY_BYTES": str(settings.max_body_bytes),
        "AUTOGRADER_STOP_SECONDS": str(settings.stop_seconds),
    }


def _try_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))


def _when_ready(host: str, port: int, stop: threading.Event, say: Callable[[str], None]) -> None:
    """Say once that the service is up, and whenever what it lacks changes until then."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    base = f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"

    def watch() -> None:
        told = ""
        while not stop.wait(0.2):
            ready, state = _readiness(f"{base}/readyz")
            if ready:
                say(f"Serving at {base}")
                return
            if state and state != told:
                told = state
                say(f"Not ready yet: {state}")

    threading.Thread(target=watch, name="ready", daemon=True).start()


def _readiness(url: str) -> tuple[bool, str]:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True, ""
    except urllib.error.HTTPError as error:
        lacks = json.load(error)["missing"]
        return False, "; ".join(lacks)
    except (OSError, ValueError):
        return False, ""
