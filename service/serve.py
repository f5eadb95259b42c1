"""Settings go in; a web, a worker and a sender process are kept running until this one is told to stop.

They are apart, because only the worker may reach the sandbox's engine, and only the sender waits for others. A child
that dies is started again, after a pause that grows while it keeps dying. Children end when their standard input does,
so that none outlives a killed supervisor. (docs/decisions/0064)
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
from dataclasses import dataclass

from service import database, wording
from service.processes import UNUSABLE
from service.settings import Settings, to_environment

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.2
LAST_PAUSE_SECONDS = 10.0
STEADY_SECONDS = 30.0  # a child that lived so long starts over with short pauses
POLL_SECONDS = 0.1


@dataclass
class Child:
    """A process that is kept alive."""

    name: str
    arguments: list[str]
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    failures: int = 0

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
        if status == 0:  # it wants to start anew
            log.info("the %s process ended, and starts again", self.name)
            self.failures, self.start_at = 0, now
            return None
        self.failures = 1 if now - self.started_at > STEADY_SECONDS else self.failures + 1
        pause = min(FIRST_PAUSE_SECONDS * 2 ** (self.failures - 1), LAST_PAUSE_SECONDS)
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


def serve(
    settings: Settings, host: str, port: int, say: Callable[[str], None], begin: Callable[[], None] = lambda: None
) -> int:
    """Keep the web, the worker and the sender process running until SIGTERM or SIGINT; returns the exit status.

    `begin` is called when it is sure that this service can start: no token is shown by one that cannot.

    Raises database.Held if another `serve` uses this data directory, OSError if the port is taken.
    """
    with database.locked(settings.data / "serve.lock"):
        _try_port(host, port)
        begin()
        stop = threading.Event()
        before = {n: signal.signal(n, lambda *_: stop.set()) for n in (signal.SIGTERM, signal.SIGINT)}
        environment = {**os.environ, **to_environment(settings)}
        children = [
            Child("web", ["web", "--host", host, "--port", str(port), "--until-stdin-closes"], environment),
            Child("worker", ["worker", "--until-stdin-closes"], environment),
        ]
        if settings.sender:
            children.append(Child("sender", ["sender", "--until-stdin-closes"], environment))
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


def _try_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))


def address(host: str, port: int) -> str:
    """Where somebody at this machine reaches the service."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def _when_ready(host: str, port: int, stop: threading.Event, say: Callable[[str], None]) -> None:
    """Say once that the service is up, and whenever what it lacks changes until then."""
    base = address(host, port)

    def watch() -> None:
        told = ""
        while not stop.wait(0.2):
            ready, state = _readiness(f"{base}/readyz")
            if ready:
                say(wording.serving(base))
                return
            if state and state != told:
                told = state
                say(wording.not_ready(state))

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
