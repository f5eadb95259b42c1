"""The process that runs are forked from: orders come from the supervisor over a socket, exits go back over it.

It imports and exercises all that a run needs, then the submission's trusted modules, and never runs untrusted code.
A container serves one submission, so this one process is template and zygote at once (decision 0031).

    supervisor -> template                                      template -> supervisor
                                                                ready {python, numpy, pytest, hypothesis}
    preload {} + package                                        preloaded {error}
    compile {} + package of files                               (nothing)
    run {seq, slot, uid, limits} + package, record, out, err    started {seq, pid}, later exited {seq, status, ...}
"""

import contextlib
import io
import json
import os
import platform
import selectors
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hypothesis
import numpy
import pytest

from sandbox.inside.child import Blobs, Order, read_all, run, settle_hypothesis, sources_of
from sandbox.inside.codes import Codes, compile_ahead, in_fork
from sandbox.inside.modules import MemoryFinder
from sandbox.inside.pytest_session import PreparedSession
from sandbox.inside.recorder import Place, Task
from sandbox.wire import decode

MESSAGE_BYTES = 1 << 16
FDS_PER_MESSAGE = 4
WARMUP = Path(__file__).parent / "warmup" / "warmup_suite.py"


class Template:
    def __init__(self, control: socket.socket, slots: Sequence[str], import_paths: Sequence[str]) -> None:
        self._control = control
        self._finder = MemoryFinder()
        self._codes = Codes()
        self._compiling: dict[int, list[bytes]] = {}  # descriptor -> what came from it by now
        self._selector = selectors.DefaultSelector()
        self._running: dict[int, int] = {}  # pid -> seq
        self._slots = slots
        self._prepared: dict[str, PreparedSession] = {}
        for path in import_paths:
            sys.path.remove(path)  # our own code must not be importable by the name of its folder's neighbours

    def serve(self) -> None:
        """Warm up, then follow orders until the supervisor is gone."""
        warm_up(f"{self._slots[0]}/warmup")
        self._prepared = {slot: PreparedSession(f"{slot}/run") for slot in self._slots}
        self._codes.install()
        self._tell("ready", **versions())
        wake_in, wake_out = socket.socketpair()
        for end in (wake_in, wake_out):
            end.setblocking(False)
        signal.set_wakeup_fd(wake_out.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(self._control, selectors.EVENT_READ)
        self._selector.register(wake_in, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in self._selector.select()]
            if wake_in in ready:
                wake_in.recv(4096)
                self._report_exits()
            for fd in self._compiling.keys() & ready:
                self._take_codes(fd)
            if self._control in ready and not self._follow_order():
                return

    def _follow_order(self) -> bool:
        data, fds, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, FDS_PER_MESSAGE)
        if not data:
            return False
        order = json.loads(data)
        if order["do"] == "preload":
            self._tell("preloaded", error=self._preload(fds[0]))
        elif order["do"] == "compile":
            self._compile(fds[0])
        else:
            self._fork(order, fds)
        for fd in fds:
            os.close(fd)
        return True

    def _preload(self, package_fd: int) -> str:
        header, body = decode(read_all(package_fd))
        sources = sources_of(header, Blobs(body))
        try:
            self._finder.install(sources)
            for source in sources:
                __import__(source.name)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def _compile(self, package_fd: int) -> None:
        """Begin to compile; runs that start before it is done compile for themselves."""
        config = next(iter(self._prepared.values())).config

        def work() -> bytes:
            header, body = decode(read_all(package_fd))
            blobs = Blobs(body)
            return compile_ahead([(path, blobs.take(size)) for path, size in header["files"]], config)

        fd = in_fork(work)
        self._compiling[fd] = []
        self._selector.register(fd, selectors.EVENT_READ)

    def _take_codes(self, fd: int) -> None:
        if part := os.read(fd, 1 << 20):
            self._compiling[fd].append(part)
            return
        self._selector.unregister(fd)
        os.close(fd)
        if compiled := b"".join(self._compiling.pop(fd)):
            with contextlib.suppress(EOFError, ValueError, TypeError):  # it was cut off by a limit
                self._codes.know(compiled, [prepared.directory for prepared in self._prepared.values()])

    def _fork(self, order: dict[str, Any], fds: Sequence[int]) -> None:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            prepared = self._prepared[order["slot"]]
            run(Order(order["uid"], order["limits"], *fds), self._finder, prepared)
        self._running[pid] = order["seq"]
        self._tell("started", seq=order["seq"], pid=pid)

    def _report_exits(self) -> None:
        while self._running:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid in self._running:
                self._tell(
                    "exited",
                    seq=self._running.pop(pid),
                    status=os.waitstatus_to_exitcode(status),
                    cpu_seconds=usage.ru_utime + usage.ru_stime,
                    peak_memory_bytes=usage.ru_maxrss * 1024,
                )

    def _tell(self, what: str, **fields: object) -> None:
        self._control.send(json.dumps({"what": what, **fields}).encode())


def warm_up(directory: str) -> None:
    """Exercise pytest as a run does: its first pass imports and compiles more than its import."""
    sys.dont_write_bytecode = True
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    settle_hypothesis()
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(errors="backslashreplace")  # as pytest's own streams, which take any text
    session = PreparedSession(directory)
    session.recorder.begin(Task(lambda line: None, Place(directory, session.root)))
    paths, finders, streams = list(sys.path), list(sys.meta_path), (os.dup(1), os.dup(2))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.makedirs(session.root)
    shutil.copy(WARMUP, f"{session.root}/test_{WARMUP.stem}.py")
    status = session.run()
    shutil.rmtree(directory)
    for saved, fd in zip(streams, (1, 2), strict=True):
        os.dup2(saved, fd)
        os.close(saved)
    os.close(null)
    if status != pytest.ExitCode.TESTS_FAILED:
        raise RuntimeError(f"the warm-up suite ended with {status!r}")
    sys.path[:], sys.meta_path[:] = paths, finders
    del sys.modules[f"test_{WARMUP.stem}"]


def versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "pytest": pytest.__version__,
        "hypothesis": hypothesis.__version__,
    }
