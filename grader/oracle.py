"""A unit's oracle and a seed arrive; fresh cases leave, each with what a correct unit answers to it.

The unit's `cases` and `expected` run in a process of their own, which is trusted: all that it is told is the oracle's
source and seeds, and nothing of a submission ever reaches it (docs/decisions/0085). It is started when first needed,
and kept. Whatever goes wrong here is ours: OracleError, and nothing is known about the submission.
"""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from grader.comparator import Expectation
from grader.errors import OracleFailed, OracleMissing
from grader.unit import UnitOracle
from sandbox.arrays import Array, arrays_of
from sandbox.station import Lost, SocketLine
from sandbox.wire import Frames, Header, WireError, encode

T = TypeVar("T")

START_SECONDS = 120.0  # the first import of a large library from a cold disk
ANSWER_SECONDS = 30.0
LOG_BYTES = 4000
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Trial:
    """A case for the unit: `says` describes it in a student's words, `case` is it as a frame for the sandbox."""

    id: str
    says: str
    case: bytes
    expected: Mapping[str, Expectation]


class Oracle(Protocol):
    def trials(self, oracle: UnitOracle, seed: int) -> tuple[Trial, ...]:
        """The cases of a seed: the same for the same seed. Raises OracleError."""
        ...


class FakeOracle:
    """Answers from a function instead of a process: for tests of what builds on an oracle."""

    def __init__(self, answer: Callable[[int], tuple[Trial, ...]]) -> None:
        self._answer = answer

    def trials(self, oracle: UnitOracle, seed: int) -> tuple[Trial, ...]:
        return self._answer(seed)


def numpy_of(array: Array) -> NDArray[Any]:
    """The same as numpy's, read-only."""
    return np.frombuffer(array.data, dtype=array.dtype).reshape(array.shape)


class OracleProcesses:
    """One process for each unit's oracle, kept warm until `close`. Any thread may ask; a process answers in turn."""

    def __init__(
        self,
        python: str = sys.executable,
        start_seconds: float = START_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._command = [python, "-P", "-s", "-m", "grader.oracle_process"]
        self._start_seconds, self._answer_seconds = start_seconds, answer_seconds
        self._processes: dict[UnitOracle, OracleProcess] = {}
        self._locks: dict[UnitOracle, threading.Lock] = {}
        self._lock = threading.Lock()
        self._closed = False

    def start(self, oracle: UnitOracle) -> None:
        """Begin to start the process, without waiting for it."""
        with self._lock_of(oracle):
            self._process_of(oracle)

    def open(self, oracle: UnitOracle) -> None:
        """Wait until the process answers. Raises OracleError, saying what is missing."""
        self._with_process(oracle, lambda process: process.wait_until_ready(self._start_seconds))

    def trials(self, oracle: UnitOracle, seed: int) -> tuple[Trial, ...]:
        def ask(process: OracleProcess) -> tuple[Trial, ...]:
            process.wait_until_ready(self._start_seconds)
            return process.ask(seed, self._answer_seconds)

        return self._with_process(oracle, ask)

    def close(self) -> None:
        """End every process; who waits for one sees OracleFailed."""
        with self._lock:
            self._closed = True
            processes = list(self._processes.values())
            self._processes.clear()
        for process in processes:
            process.close()

    def __enter__(self) -> "OracleProcesses":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _with_process(self, oracle: UnitOracle, work: Callable[["OracleProcess"], T]) -> T:
        """Do `work`; a process that is lost over it is replaced once."""
        with self._lock_of(oracle):
            for attempt in (1, 2):
                try:
                    return work(self._process_of(oracle))
                except (Lost, WireError) as error:
                    log = self._drop(oracle)
                    if attempt == 2:
                        raise OracleFailed(f"the unit's oracle was lost: {error}; {log}") from error
                except BaseException:
                    self._drop(oracle)
                    raise
        raise AssertionError("not reached")

    def _lock_of(self, oracle: UnitOracle) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(oracle, threading.Lock())

    def _process_of(self, oracle: UnitOracle) -> "OracleProcess":
        with self._lock:
            if self._closed:
                raise OracleFailed("the oracle was closed")
            if oracle not in self._processes:
                self._processes[oracle] = OracleProcess(self._command, oracle)
            return self._processes[oracle]

    def _drop(self, oracle: UnitOracle) -> str:
        with self._lock:
            process = self._processes.pop(oracle, None)
        return process.close() if process else ""


class OracleProcess:
    """A process that runs one oracle. The protocol is stated in `oracle_process.py`."""

    def __init__(self, command: list[str], oracle: UnitOracle) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed in close)
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            command,
            stdin=theirs.fileno(),
            stdout=self._log,
            stderr=self._log,
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
        theirs.close()
        self._connection = ours
        self._line = SocketLine(ours)
        self._frames = Frames()
        self._received: list[tuple[Header, bytes]] = []
        self._ready = False
        self._closing = threading.Lock()
        self._source = oracle.source

    def wait_until_ready(self, seconds: float) -> None:
        if self._ready:
            return
        until = time.monotonic() + seconds
        self._line.send(encode({"frame": "oracle"}, self._source), until)
        header, _ = self._receive(until)
        if header["frame"] == "missing":
            raise OracleMissing(
                f"the unit's oracle needs the package {header['module']}, which is not installed: run `make setup`"
            )
        if header["frame"] != "ready":
            raise OracleFailed(f"the unit's oracle does not start: {header.get('error')}")
        self._ready = True

    def ask(self, seed: int, seconds: float) -> tuple[Trial, ...]:
        until = time.monotonic() + seconds
        self._line.send(encode({"frame": "ask", "seed": seed}), until)
        trials: list[Trial] = []
        while True:
            header, body = self._receive(until)
            if header["frame"] == "end":
                return tuple(trials)
            if header["frame"] != "trial":
                raise OracleFailed(f"the unit's oracle failed on seed {seed}: {header.get('error')}")
            trials.append(trial_of(header, body))

    def close(self) -> str:
        """End the process; returns words for the log."""
        with self._closing:
            if self._log.closed:
                return ""
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            status = self._process.wait()
            self._connection.close()
            self._log.seek(0)
            text = self._log.read()[-LOG_BYTES:].decode("utf-8", "replace")
            self._log.close()
            return f"exit {status}: {text}"

    def _receive(self, until: float) -> tuple[Header, bytes]:
        while not self._received:
            self._received += self._frames.feed(self._line.receive(until))
        return self._received.pop(0)


def trial_of(header: Header, body: bytes) -> Trial:
    """A trial from its frame: the case's arrays come first, then those expected."""
    case, split = header["case"], header["case_bytes"]
    arrays = arrays_of(header["expected_arrays"], body[split:])
    expected = {
        name: Expectation.of({**said, "array": numpy_of(arrays[name])}) for name, said in header["expected"].items()
    }
    frame = encode({"case": case, "arrays": header["case_arrays"]}, body[:split])
    return Trial(str(case["id"]), str(case["says"]), frame, expected)
