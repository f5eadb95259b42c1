"""The supervisor: orders come in as frames on stdin, what became of each run leaves as frames on stdout.

It starts runs in slots, passes each its package, keeps what it writes, ends it at a limit, empties its slot, and
reports what was seen. It judges nothing: `ending.py` does, on the host, from this evidence. One thread, one loop,
no blocking but for the moment in which a slot is emptied. If anything here goes wrong it leaves with a traceback,
and with it everything in its container: the host then starts another.
"""

import contextlib
import json
import marshal
import os
import selectors
import signal
import socket
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sandbox.inside.confine import Confinement, ProcessTrees, Tenant, UserIds, empty
from sandbox.inside.procfs import Process, oom_kills, processes
from sandbox.wire import Frames, Header, encode, source_digest

POLL_SECONDS = 0.02
COLLECT_SECONDS = 10.0
KEPT_BYTES = 32 << 10
CHUNK_BYTES = 1 << 18
BUSY_BYTES = 1 << 14  # a stream that brings this much between two polls is read as it comes
MESSAGE_BYTES = 1 << 16


@dataclass
class Capture:
    """A stream of a run: its first and last `kept` bytes, and how many there were."""

    fd: int
    kept: int = KEPT_BYTES
    total: int = 0
    head: bytes = b""
    tail: bytes = b""
    busy: bool = False

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self.kept - len(self.head)
        if room > 0:
            self.head += data[:room]
        if len(data) > room:
            self.tail = (self.tail + data[max(room, 0) :])[-self.kept :]


@dataclass
class Active:
    """A run in a slot. `reason` is why we ended it, `seen` what was measured then; empty while we did not."""

    seq: int
    tenant: Tenant
    limits: dict[str, Any]
    deadline: float
    record: Capture
    stdout: Capture
    stderr: Capture
    began: float = field(default_factory=time.monotonic)
    oom_before: int | None = field(default_factory=oom_kills)
    alone: bool = True
    reason: str = ""
    seen: float = 0.0
    cpu_seconds: float = 0.0
    peak_processes: int = 0

    def memory_ran_out(self, kills: int | None) -> bool:
        """Whether the kernel has ended a process of this container for memory since the run began."""
        return kills is not None and self.oom_before is not None and kills > self.oom_before

    @property
    def captures(self) -> tuple[Capture, Capture, Capture]:
        return self.record, self.stdout, self.stderr


@dataclass(frozen=True)
class Zygote:
    """A process that collects an inert suite in a slot, or has done so and can be told to fork runs of it."""

    suite: int
    slot: str
    pid: int
    socket: socket.socket
    until: float = field(default_factory=lambda: time.monotonic() + COLLECT_SECONDS)
    """by when it has to have collected"""


class Supervisor:
    def __init__(
        self,
        control: socket.socket,
        slots: Sequence[str],
        confine: Callable[[int], Confinement],
        sources: str,
    ) -> None:
        self._control = control
        self._sources = sources
        self._confine = confine
        self._confinement: Confinement
        self._frames = Frames()
        self._outgoing = bytearray()
        self._nonce = ""
        self._versions: dict[str, str] = {}
        self._free = list(slots)
        self._waiting: deque[tuple[float, Header, bytes]] = deque()
        self._active: dict[int, Active] = {}
        self._inert: dict[int, bool] = {}  # by the number of a suite, of those that are compiled
        self._zygotes: dict[tuple[int, str], Zygote | None] = {}  # by suite and slot; None where it cannot be collected
        self._collecting: dict[str, Zygote | None] = {}  # by slot; None until its process is known
        self._selector = selectors.DefaultSelector()
        self._finished = False

    def serve(self) -> None:
        """Work until the host closes our stdin; on the way out, end what still runs."""
        os.set_blocking(0, False)
        os.set_blocking(1, False)
        self._selector.register(0, selectors.EVENT_READ, self._hear_host)
        self._selector.register(self._control, selectors.EVENT_READ, self._hear)
        next_poll = 0.0
        try:
            while not self._finished:
                wait = max(0.0, next_poll - time.monotonic()) if self._active or self._collecting else None
                for key, _ in self._selector.select(wait):
                    # A run that was finished a moment ago took its descriptors with it.
                    if self._selector.get_map().get(key.fileobj) is key:
                        key.data()
                if (self._active or self._collecting) and time.monotonic() >= next_poll:
                    self._watch()
                    next_poll = time.monotonic() + POLL_SECONDS
        finally:
            for run in self._active.values():
                self._confinement.evict(run.tenant)

    # From and to the host.

    def _hear_host(self) -> None:
        data = os.read(0, CHUNK_BYTES)
        self._finished = not data
        for header, body in self._frames.feed(data):
            frame, nonce = header.pop("frame"), header.pop("nonce")
            if frame == "open":
                self._open(nonce, header)
            elif nonce != self._nonce:
                raise RuntimeError("a frame of another session")
            elif frame == "preload":
                self._order({"do": "preload"}, body)
            elif frame == "prepare":
                self._order({"do": "prepare"}, body)
            elif frame == "run":
                self._waiting.append((time.monotonic() + header["deadline_seconds"], header, body))
                self._start_what_fits()
            else:
                raise RuntimeError(f"no such order: {frame}")

    def _open(self, nonce: str, header: Header) -> None:
        self._nonce = nonce
        self._confinement = self._confine(header["uid_index"])
        self._say_ready()

    def _say_ready(self) -> None:
        if self._nonce and self._versions:
            self._say("ready", b"", sources=self._sources, **self._versions)

    def _say(self, frame: str, body: bytes = b"", **fields: object) -> None:
        self._outgoing += encode({"frame": frame, "nonce": self._nonce, **fields}, body)
        self._write_host()

    def _write_host(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._outgoing:
                del self._outgoing[: os.write(1, self._outgoing[:CHUNK_BYTES])]
        registered = 1 in self._selector.get_map()
        if self._outgoing and not registered:
            self._selector.register(1, selectors.EVENT_WRITE, self._write_host)
        elif registered and not self._outgoing:
            self._selector.unregister(1)

    # From and to the template.

    def _order(
        self,
        order: dict[str, object],
        package: bytes,
        fds: Sequence[int] = (),
        to: socket.socket | None = None,
    ) -> None:
        """Send an order with its package, and give away `fds` with it."""
        give(to or self._control, marshal.dumps(order), file_in_memory(package), *fds)

    def _hear(self) -> None:
        data, fds, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, 1)
        if not data:
            raise RuntimeError("the template is gone")
        message = json.loads(data)
        what = message.pop("what")
        if what == "ready":
            self._versions = message
            self._say_ready()
        elif what == "preloaded":
            self._say("preloaded", **message)
        elif what == "compiled":
            self._inert[message["suite"]] = message["inert"]
            self._start_what_fits()
        elif what == "zygote":
            zygote = Zygote(**message, socket=socket.socket(fileno=fds[0]))
            self._collecting[zygote.slot] = zygote
            self._confinement.ours.add(zygote.pid)
            self._selector.register(zygote.socket, selectors.EVENT_READ, lambda: self._hear_zygote(zygote))
        else:
            self._hear_of_run(what, message)

    def _hear_zygote(self, zygote: Zygote) -> None:
        data = zygote.socket.recv(MESSAGE_BYTES)
        if self._collecting.get(zygote.slot) is zygote:
            self._has_collected(zygote, well=bool(data))
        elif data:
            message = json.loads(data)
            self._hear_of_run(message.pop("what"), message)
        else:
            raise RuntimeError("a zygote is gone")

    def _hear_of_run(self, what: str, message: dict[str, Any]) -> None:
        run = self._active[message["seq"]]
        if what == "started":
            run.tenant.pid = message["pid"]
        else:
            self._finish(run, message)

    # Inert suites, collected in each slot before the first run of them there.

    def _lacks(self, suite: int, slot: str) -> bool:
        return self._inert.get(suite, False) and (suite, slot) not in self._zygotes

    def _collect(self, suite: int, slot: str) -> None:
        self._free.remove(slot)
        self._collecting[slot] = None
        self._order({"do": "collect", "suite": suite, "slot": slot}, b"")

    def _has_collected(self, zygote: Zygote, well: bool) -> None:
        del self._collecting[zygote.slot]
        self._zygotes[zygote.suite, zygote.slot] = zygote if well else None
        if not well:  # it ended, and may have left files
            self._selector.unregister(zygote.socket)
            zygote.socket.close()
            self._confinement.ours.discard(zygote.pid)
            empty(os.fsencode(zygote.slot), [os.fsencode(name) for name in os.listdir(zygote.slot)])
        self._free.append(zygote.slot)
        self._start_what_fits()

    # A run, from start to finish.

    def _start_what_fits(self) -> None:
        """Start runs in the order they came in, as slots are free: the host sends the next before it has a result.

        A slot in which a run's suite must be collected first does that, and so does one that has nothing to run.
        """
        for slot in tuple(self._free):
            wanted = [self._waiting[0][1]["suite"]] if self._waiting else list(self._inert)
            lacking = next((suite for suite in wanted if self._lacks(suite, slot)), None)
            if lacking is not None:
                self._collect(lacking, slot)
            elif self._waiting and (wanted[0] < 0 or wanted[0] in self._inert):  # or it is being compiled
                self._free.remove(slot)
                self._start(slot, *self._waiting.popleft())

    def _start(self, slot: str, deadline: float, header: Header, body: bytes) -> None:
        tenant = self._confinement.admit(slot)
        pipes = [os.pipe() for _ in range(3)]
        record, stdout, stderr = (read_end for read_end, _ in pipes)
        fds = [write_end for _, write_end in pipes]
        package, other_version = body[: header["package_bytes"]], body[header["package_bytes"] :]
        run = Active(
            seq=header["seq"],
            tenant=tenant,
            limits=header["limits"],
            deadline=deadline,
            record=Capture(record, kept=header["limits"]["record_bytes"] + CHUNK_BYTES),
            stdout=Capture(stdout),
            stderr=Capture(stderr),
        )
        for capture in run.captures:
            os.set_blocking(capture.fd, False)
        self._active[run.seq] = run
        if len(self._active) > 1:
            for other in self._active.values():
                other.alone = False
        suite = header["suite"]
        order = {"do": "run", "seq": run.seq, "suite": suite, "slot": slot, "uid": tenant.uid, "limits": run.limits}
        zygote = self._zygotes.get((suite, slot))
        to = None if zygote is None else zygote.socket
        if other_version:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._selector.register(ours, selectors.EVENT_READ, partial(self._give_other_version, ours, other_version))
            fds.append(theirs.detach())
        self._order(order, package, fds, to)

    def _give_other_version(self, line: socket.socket, other_version: bytes) -> None:
        """When the run asks for it, once; or all of the run has left."""
        with contextlib.suppress(OSError):  # it need not take what it has asked for
            if line.recv(1):
                give(line, b"+", file_in_memory(other_version))
        self._selector.unregister(line)
        line.close()

    def _read(self, run: Active, capture: Capture) -> bool:
        """Take in one chunk of a stream; False at its end, or when it has nothing now."""
        try:
            data = os.read(capture.fd, CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._close(capture)
            return False
        capture.add(data)
        written = run.stdout.total + run.stderr.total
        if run.record.total > run.limits["record_bytes"]:
            self._end(run, "record", run.record.total)
        elif written > run.limits["output_bytes"]:
            self._end(run, "output", written)
        return True

    def _watch(self) -> None:
        """Look at what every run has used, and end those over a limit."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:  # orphans of runs are ours to bury
                pass
        snapshot, kills = tuple(processes(self._confinement.ours)), oom_kills()
        for run in tuple(self._active.values()):
            self._watch_run(run, snapshot, kills)
        for zygote in tuple(self._collecting.values()):
            if zygote is not None and time.monotonic() > zygote.until:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(zygote.pid, signal.SIGKILL)

    def _look_into(self, run: Active, capture: Capture) -> None:
        """Take in what a stream holds. Not as it comes, unless it is much: a run says what it does line by line, and
        each would wake us."""
        before = capture.total
        if capture.fd >= 0 and self._read(run, capture) and not capture.busy and capture.total - before >= BUSY_BYTES:
            capture.busy = True
            self._selector.register(capture.fd, selectors.EVENT_READ, lambda: self._read(run, capture))

    def _watch_run(self, run: Active, snapshot: Sequence[Process], kills: int | None) -> None:
        for capture in run.captures:
            self._look_into(run, capture)
        members = self._confinement.members(run.tenant, snapshot)
        count = sum(process.threads for process in members)
        run.peak_processes = max(run.peak_processes, count)
        run.cpu_seconds = max(run.cpu_seconds, sum(process.cpu_seconds for process in members))
        if run.reason:  # and it is still here: when it was ended it may not have been there yet to be killed
            self._confinement.evict(run.tenant)
            return
        now, limits = time.monotonic(), run.limits
        disk_bytes, disk_files, _ = self._confinement.disk_use(run.tenant)
        late = (
            ("cpu_time", run.cpu_seconds, limits["cpu_seconds"])
            if run.cpu_seconds >= limits["cpu_seconds"]
            else ("no_progress", now - run.began, limits["wall_seconds"])
        )
        if run.memory_ran_out(kills):
            # Whatever it does from here on says nothing of its tests. Ended now, its record names the test that runs.
            self._end(run, "memory", 0.0)
        elif count > limits["processes"] or (late[1] >= late[2] and count == limits["processes"]):
            self._end(run, "processes", count)
        elif late[1] >= late[2]:
            self._end(run, late[0], late[1])
        elif disk_bytes > limits["disk_bytes"]:
            self._end(run, "disk", disk_bytes)
        elif disk_files > limits["disk_files"]:
            self._end(run, "disk", disk_files)
        elif now >= run.deadline:
            self._end(run, "deadline", now - run.began)

    def _end(self, run: Active, reason: str, seen: float) -> None:
        if not run.reason:
            run.reason, run.seen = reason, seen
            self._confinement.evict(run.tenant)

    def _finish(self, run: Active, exit: dict[str, Any]) -> None:
        wall_seconds = time.monotonic() - run.began
        disk_full = self._confinement.disk_use(run.tenant)[2]
        self._confinement.evict(run.tenant)
        for capture in run.captures:
            while capture.fd >= 0 and self._read(run, capture):
                pass
            if capture.fd >= 0:
                self._close(capture)
        del self._active[run.seq]
        kills = oom_kills()
        self._free.append(run.tenant.slot)
        parts = [part for capture in run.captures for part in (capture.head, capture.tail)]
        self._say(
            "result",
            b"".join(parts),
            seq=run.seq,
            reason=run.reason,
            seen=run.seen,
            status=exit["status"],
            cpu_seconds=max(run.cpu_seconds, exit["cpu_seconds"]),
            wall_seconds=wall_seconds,
            peak_memory_bytes=exit["peak_memory_bytes"],
            peak_processes=run.peak_processes,
            disk_full=disk_full,
            oom=run.memory_ran_out(kills),
            oom_known=kills is not None,
            alone=run.alone,
            totals=[capture.total for capture in run.captures],
            parts=[len(part) for part in parts],
        )
        self._start_what_fits()

    def _close(self, capture: Capture) -> None:
        if capture.busy:
            self._selector.unregister(capture.fd)
        os.close(capture.fd)
        capture.fd = -1


def file_in_memory(package: bytes) -> int:
    """Returns the descriptor of a file that holds it and lies nowhere."""
    fd = os.memfd_create("package")
    if os.write(fd, package) != len(package):
        raise RuntimeError("a package that memory has no room for")
    return fd


def give(to: socket.socket, message: bytes, *fds: int) -> None:
    """Send a message with descriptors, which then are no longer ours."""
    try:
        socket.send_fds(to, [message], fds)
    finally:
        for fd in fds:
            os.close(fd)


def main(arguments: Sequence[str], root: str) -> None:
    """Fork the template, then supervise. `arguments`: "container" or "process", then the directories of the slots."""
    kind, *slots = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control, template_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    template_pid = os.fork()
    if template_pid == 0:
        control.close()
        become_template(template_end, slots, root)
    template_end.close()

    def confine(uid_index: int) -> Confinement:
        ours = os.getpid(), template_pid
        return UserIds(uid_index, ours) if kind == "container" else ProcessTrees(ours)

    Supervisor(control, slots, confine, source_digest(Path(root) / "sandbox")).serve()


def become_template(control: socket.socket, slots: Sequence[str], root: str) -> None:
    """Let go of the protocol's descriptors before anything else is imported; never returns."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    try:
        from sandbox.inside.template import Template  # numpy and pytest stay out of the supervisor

        Template(control, slots, [root]).serve()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)
