"""Runs as processes of this machine: limits hold, but nothing keeps a run from this user's files and processes.

For developing units and for tests of what builds on a sandbox. `Environment.isolated` says False, and nothing that
strangers send may run here.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path

from sandbox.errors import EngineFailed
from sandbox.leftovers import directory_prefix, sweep_directories
from sandbox.records import Environment, Module, SuiteFolder
from sandbox.runtimes import LIBRARIES, PLAIN, VARIABLE
from sandbox.session import StationSession
from sandbox.station import Loss, Lost, SocketLine, Station

ENTRY = Path(__file__).parent / "inside" / "__main__.py"
LEAVE_SECONDS = 5.0
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class ProcessSandbox:
    """Opens sessions whose supervisor is a child of this process, `jobs` runs at a time."""

    def __init__(self, jobs: int = 2) -> None:
        self._jobs = jobs
        sweep_directories()

    @contextmanager
    def session(
        self,
        preload: Sequence[Module] = (),
        deadline_seconds: float = 600.0,
        runtime: str = PLAIN,
        likely: Sequence[SuiteFolder] = (),
    ) -> Iterator[StationSession]:
        session = StationSession(
            partial(self._open, LIBRARIES[runtime]), environment_of, preload, self._jobs, deadline_seconds
        )
        try:
            yield session
        finally:
            session.close()

    def _open(self, libraries: Sequence[str]) -> Station:
        line = ProcessLine(self._jobs, libraries)
        try:
            return Station(line)
        except Lost as error:
            raise EngineFailed(f"the supervisor did not start: {error}; {line.close().text}") from error
        except BaseException:
            line.close()
            raise


def environment_of(station: Station) -> Environment:
    return Environment("process", "", **asdict(station.versions), isolated=False)


class ProcessLine(SocketLine):
    """A supervisor as a child process, in a directory of its own, which goes with it."""

    def __init__(self, jobs: int, libraries: Sequence[str]) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix=directory_prefix(), ignore_cleanup_errors=True)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed in close)
        slots = [f"{self._directory.name}/{number}" for number in range(jobs)]
        for slot in slots:
            os.mkdir(slot, 0o700)
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-s", str(ENTRY), "process", *slots],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=self._log,
            env={**ENVIRONMENT, VARIABLE: " ".join(libraries)},
            start_new_session=True,
        )
        theirs.close()
        super().__init__(ours)

    def hasten(self) -> None:
        pass

    def memory_events(self) -> int:
        return 0

    def kill(self) -> None:
        # End of file tells the supervisor to end its runs, which are in sessions of their own, and itself.
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> Loss:
        self.kill()
        try:
            self._process.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._connection.close()
        self._log.seek(0)
        text = self._log.read()[-4000:].decode("utf-8", "replace")
        self._log.close()
        self._directory.cleanup()
        return Loss(False, f"exit {self._process.returncode}: {text}")
