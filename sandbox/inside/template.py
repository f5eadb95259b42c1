"""The process that runs are forked from: orders come from the supervisor over a socket, exits go back over it.

It imports and exercises all that a run needs, then the submission's trusted modules. It executes nothing untrusted; a
zygote, forked from it for an inert suite and a slot, executes that suite's imports and definitions and no more
(decision 0159). A container serves one submission, so for all other runs this process is the zygote (decision 0031).

    supervisor -> template                                      template -> supervisor
                                                                ready {python, numpy, ..., libraries}
    preload {} + package                                        preloaded {error}
    prepare {} + package of suites                              compiled {suite, inert}, for each of them
    collect {suite, slot}                                       zygote {suite, slot, pid} + its socket
    run {seq, suite, slot, uid, limits} + package, record, out, err    exited {seq, status, ...}; of a run without a uid
      (and a socket to ask for another version by)              started {seq, pid} before

    supervisor -> zygote                                        zygote -> supervisor
                                                                collected {}; or it ends
    run ..., of its suite and slot                              exited ...
"""

import contextlib
import gc
import importlib
import io
import json
import marshal
import os
import platform
import select
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import numpy
import pytest

from sandbox.inside import hugepages
from sandbox.inside.child import Order, opened, read_all, read_package, run, settle_hypothesis, sources_of
from sandbox.inside.codes import Codes, Compiled, compile_ahead, in_fork
from sandbox.inside.modules import MemoryFinder
from sandbox.inside.pytest_session import PreparedSession
from sandbox.inside.recorder import Place, Task
from sandbox.inside.zygote import SuiteSource, address_space_bytes, collect

MESSAGE_BYTES = 1 << 16
FDS_PER_MESSAGE = 5
EXITED = b'{"what": "exited", "seq": %d, "status": %d, "cpu_seconds": %.6f, "peak_memory_bytes": %d}'
WARMUPS = Path(__file__).parent / "warmup"


class Forks:
    """What forks runs when it is told to, each with the session of its slot, and says how each left.

    Whatever it writes to between two runs, reference counts above all, is copied for the run that was forked last: so
    it does little, and that with few objects.
    """

    def __init__(
        self,
        control: socket.socket,
        finder: MemoryFinder,
        prepared: Mapping[str, PreparedSession],
        suites: dict[int, SuiteSource],
        reserved_bytes: int = 0,
    ) -> None:
        """`suites` are those that were made ready, by number. `reserved_bytes`: of address space, which the runtime's
        libraries take and not what runs."""
        self._control = control
        self._finder = finder
        self._reserved_bytes = reserved_bytes
        self._prepared = prepared
        self._suites = suites
        self._running: dict[int, int] = {}  # pid -> seq

    def serve(self) -> None:
        """Follow orders until the supervisor is gone."""
        wake_in, wake_out = socket.socketpair()
        for end in (wake_in, wake_out):
            end.setblocking(False)
        signal.set_wakeup_fd(wake_out.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        exits, orders = wake_in.fileno(), self._control.fileno()
        poll = select.poll()
        poll.register(exits, select.POLLIN)
        poll.register(orders, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == exits:
                    wake_in.recv(4096)
                    self._report_exits()
                elif not self._follow_order():
                    return

    def _follow_order(self) -> bool:
        data, fds, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, FDS_PER_MESSAGE)
        if not data:
            return False
        self._follow(marshal.loads(data), fds)
        for fd in fds:
            os.close(fd)
        return True

    def _follow(self, order: dict[str, Any], fds: Sequence[int]) -> None:
        sys.stdout.flush()
        gc.collect(1)  # or the run does, of what this process made last, and copies it
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            limits = with_room(order["limits"], self._reserved_bytes)
            suite = self._suites.get(order["suite"])
            files = {} if suite is None else suite.files
            run(Order(order["uid"], limits, *fds), self._finder, self._prepared[order["slot"]], files)
        self._running[pid] = order["seq"]
        if order["uid"] is None:  # it is told by where it comes from
            self.tell("started", seq=order["seq"], pid=pid)

    def _report_exits(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid in self._running:
                    seq, exit_code = self._running.pop(pid), os.waitstatus_to_exitcode(status)
                    cpu_seconds = usage.ru_utime + usage.ru_stime
                    self._control.send(EXITED % (seq, exit_code, cpu_seconds, usage.ru_maxrss * 1024))

    def tell(self, what: str, **fields: object) -> None:
        self._control.send(json.dumps({"what": what, **fields}).encode())


class Template(Forks):
    def __init__(self, control: socket.socket, slots: Sequence[str], import_paths: Sequence[str]) -> None:
        super().__init__(control, MemoryFinder(), {}, {})
        self._codes = Codes()
        self._compiled: dict[int, Compiled] = {}
        self._slots = slots
        for path in import_paths:
            sys.path.remove(path)  # our own code must not be importable by the name of its folder's neighbours

    def serve(self) -> None:
        """Warm up, then follow orders until the supervisor is gone."""
        before = address_space_bytes()
        libraries = {name: str(importlib.import_module(name).__version__) for name in named_libraries()}
        warm_up(f"{self._slots[0]}/warmup", libraries)
        self._reserved_bytes = address_space_bytes() - before if libraries else 0
        self._prepared = {slot: PreparedSession(f"{slot}/run") for slot in self._slots}
        self._codes.install()
        self.tell("ready", **versions(), libraries=libraries)
        super().serve()

    def _follow(self, order: dict[str, Any], fds: Sequence[int]) -> None:
        if order["do"] == "preload":
            self.tell("preloaded", error=self._preload(fds[0]))
        elif order["do"] == "prepare":
            self._prepare(fds[0])
        elif order["do"] == "collect":
            self._collect(order["suite"], order["slot"])
        else:
            super()._follow(order, fds)

    def _preload(self, package_fd: int) -> str:
        header, blobs = opened(read_package(package_fd))
        sources = sources_of(header, blobs)
        try:
            self._finder.install(sources)
            for source in sources:
                __import__(source.name)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def _prepare(self, package_fd: int) -> None:
        """Compile suites, which are numbered as they come, and say of each whether it is inert."""
        header, blobs = opened(read_package(package_fd))
        suites = [
            SuiteSource({path: blobs.take(size) for path, size in suite["files"]}, suite["path_dirs"])
            for suite in header["suites"]
        ]
        answers = [in_fork(partial(self._compile, suite)) for suite in suites]
        for number, (suite, answer) in enumerate(zip(suites, answers, strict=True), len(self._suites)):
            self._suites[number] = suite
            inert = False
            with contextlib.suppress(EOFError, ValueError, TypeError):  # it was cut off by a limit
                compiled = self._compiled[number] = Compiled.from_bytes(read_all(answer))
                self._codes.know(compiled, [prepared.directory for prepared in self._prepared.values()])
                inert = compiled.early is not None
            os.close(answer)
            self.tell("compiled", suite=number, inert=inert)

    def _compile(self, suite: SuiteSource) -> bytes:
        config = self._prepared[self._slots[0]].config
        return compile_ahead(suite.code, suite.path_dirs, config).to_bytes()

    def _collect(self, number: int, slot: str) -> None:
        """Fork a process that collects an inert suite in a free slot, says so, and then follows the orders that come to
        its socket."""
        suite, compiled = self._suites[number], self._compiled[number]
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid:
            theirs.close()
            message = {"what": "zygote", "suite": number, "slot": slot, "pid": pid}
            socket.send_fds(self._control, [json.dumps(message).encode()], [ours.fileno()])
            ours.close()
            return
        try:
            ours.close()
            self._control.close()
            signal.set_wakeup_fd(-1)
            if collect(self._prepared[slot], self._codes, suite, compiled):
                hugepages.collapse()
                prepared, suites = {slot: self._prepared[slot]}, {number: suite}
                zygote = Forks(theirs, self._finder, prepared, suites, self._reserved_bytes)
                zygote.tell("collected")
                zygote.serve()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)


def warm_up(directory: str, libraries: Iterable[str] = ()) -> None:
    """Exercise pytest and the libraries as a run does: the first pass imports and compiles more than their import."""
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
    suites = [suite for name in ("warmup", *libraries) if (suite := WARMUPS / f"{name}_suite.py").is_file()]
    for suite in suites:
        shutil.copy(suite, f"{session.root}/test_{suite.name}")
    status = session.run()
    shutil.rmtree(directory)
    for saved, fd in zip(streams, (1, 2), strict=True):
        os.dup2(saved, fd)
        os.close(saved)
    os.close(null)
    if status != pytest.ExitCode.TESTS_FAILED:
        raise RuntimeError(f"the warm-up suite ended with {status!r}")
    sys.path[:], sys.meta_path[:] = paths, finders
    for suite in suites:
        del sys.modules[f"test_{suite.stem}"]


def named_libraries() -> list[str]:
    """What the image, or who started this process, wants imported before anything is forked."""
    return os.environ.get("AUTOGRADER_LIBRARIES", "").split()


def with_room(limits: dict[str, Any], reserved_bytes: int) -> dict[str, Any]:
    return {**limits, "memory_bytes": limits["memory_bytes"] + reserved_bytes}


def versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "pytest": pytest.__version__,
        "hypothesis": hypothesis.__version__,
    }
