"""One run: a fork of the template, or of a zygote, gives up its rights, receives what to run, runs pytest or a drive,
and leaves.

Everything in `enter` is done before the version under test is received: nothing of it is in memory until this process
can reach nothing that is not its own, but for the socket by which it may ask once for another version (decision 0252).
"""

import _signal  # type: ignore[import-not-found]  # without the enums of `signal`, which cost a page for each name
import json
import os
import random
import resource
import socket
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import hypothesis
import numpy

from sandbox.inside.drive import run_drive
from sandbox.inside.modules import MemoryFinder, Source
from sandbox.inside.pytest_session import PreparedSession, needs_fresh, run_afresh
from sandbox.inside.recorder import Place, Recorder, Task
from sandbox.wire import PREFIX, Header

Files = Mapping[str, bytes | memoryview]
"""What lies in a run's directory, by path."""

RECORD_FD = 3
PACKAGE_FD = 4
OTHER_VERSION_FD = 5
PIPE_BYTES = 1 << 16  # what a pipe holds
HANDLERS = (
    (_signal.SIGCHLD, _signal.SIG_DFL),
    (_signal.SIGINT, _signal.default_int_handler),
    (_signal.SIGTERM, _signal.SIG_DFL),
)


@dataclass(frozen=True)
class Order:
    """What the supervisor asks for: as whom, within which limits, and the run's descriptors."""

    uid: int | None
    limits: dict[str, Any]
    package_fd: int
    record_fd: int
    stdout_fd: int
    stderr_fd: int
    other_version_fd: int | None = None
    """a socket by which another version of the modules can be asked for"""


def run(order: Order, finder: MemoryFinder, prepared: PreparedSession, files: Files) -> None:
    """Make the run in this process, which is a fork of its own, and leave it: never returns. `files` are those of its
    suite that do not come with it."""
    try:
        directory = prepared.directory
        enter(order, directory)
        header, calls, laid = unpack(read_package(PACKAGE_FD), finder, directory, files)
        os.close(PACKAGE_FD)
        if calls is not None:
            status = run_calls(header["drive"], calls, finder, directory)
        else:
            status = run_suite(header, finder, prepared, laid, has_other=order.other_version_fd is not None)
    except BaseException as error:
        os.write(2, f"the run could not be made: {type(error).__name__}: {error}\n".encode())
        status = 70
    os._exit(status)  # without atexit: what a test left for later is not part of the run


def enter(order: Order, directory: str) -> None:
    """Close what is not ours, lower the limits, become the run's user, make and enter its private directory."""
    os.setsid()
    for number, handler in HANDLERS:
        _signal.signal(number, handler)
    arrange_descriptors(order)
    raise_oom_score()
    lower_limits(order)
    if order.uid is not None:
        os.setgroups([order.uid])
        os.setresgid(order.uid, order.uid, order.uid)
        os.setresuid(order.uid, order.uid, order.uid)
    os.umask(0o077)
    os.mkdir(directory, 0o700)
    os.chdir(directory)


def arrange_descriptors(order: Order) -> None:
    """Leave open: 0 the null device, 1 and 2 the run's streams, 3 its record, 4 its package, 5 the socket by which it
    may ask for another version, if there is one."""
    wanted = [order.stdout_fd, order.stderr_fd, order.record_fd, order.package_fd]
    if order.other_version_fd is not None:
        wanted.append(order.other_version_fd)
    high = [os.dup2(fd, 64 + index) for index, fd in enumerate(wanted)]  # out of each other's way
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for target, fd in enumerate(high, 1):
        os.dup2(fd, target, inheritable=target < RECORD_FD)
    os.closerange(1 + len(wanted), os.sysconf("SC_OPEN_MAX"))


def raise_oom_score() -> None:
    """If the container runs out of memory, a run goes before the template and the supervisor."""
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    os.write(fd, b"1000")
    os.close(fd)


def lower_limits(order: Order) -> None:
    limits = order.limits
    cpu_seconds = int(limits["cpu_seconds"]) + 2  # the supervisor, which sees all processes, comes first
    lower(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)
    lower(resource.RLIMIT_AS, limits["memory_bytes"])
    lower(resource.RLIMIT_FSIZE, limits["file_bytes"])
    lower(resource.RLIMIT_NOFILE, limits["open_files"])
    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_MSGQUEUE, 0)
    lower(resource.RLIMIT_MEMLOCK, 0)
    if order.uid is not None:
        lower(resource.RLIMIT_NPROC, limits["processes"])


def lower(kind: int, soft: int, hard: int | None = None) -> None:
    """Set a limit, or keep the one there is if that is lower."""
    most = resource.getrlimit(kind)[1]
    wanted = (soft, soft if hard is None else hard)
    resource.setrlimit(kind, wanted if most == resource.RLIM_INFINITY else (min(wanted[0], most), min(wanted[1], most)))


@dataclass(frozen=True)
class Calls:
    """What a drive is made of: its driver's source and its cases."""

    driver: bytes
    cases: list[bytes]


def unpack(
    package: bytes, finder: MemoryFinder, directory: str, files: Files
) -> tuple[Header, Calls | None, Collection[str]]:
    """Lay the files and install the modules; returns the header, the calls of a drive, and the paths of the files.

    The package goes with this call: a frame that held it while tests run would show them the source of their variant.
    """
    header, blobs = opened(package)
    made: set[str] = set()
    files = files or {path: blobs.view(size) for path, size in header.get("files", ())}
    for path, data in files.items():
        lay(directory, path, data, made)
    finder.install(sources_of(header, blobs))
    if "drive" not in header:
        return header, None, tuple(files)
    drive = header["drive"]
    calls = Calls(blobs.take(drive["driver"]), [blobs.take(size) for size in drive["cases"]])
    return header, calls, ()


def run_suite(
    header: Header, finder: MemoryFinder, prepared: PreparedSession, laid: Collection[str], has_other: bool
) -> int:
    """Run pytest on what was laid, and what failed on another version if the run has one and is as a new process would
    be; returns the process's exit code: 0 if the record is whole."""
    directory, suite = prepared.directory, header["suite"]
    laid_conftests = [f"{directory}/{path}" for path in laid if path.endswith("conftest.py")]
    root = f"{directory}/{suite['root']}"
    os.makedirs(root, exist_ok=True)
    prepare_process(directory, suite["environment"])
    collected = prepared.complete()
    if not collected:
        sys.path += [f"{directory}/{path}" for path in suite["path_dirs"]]
    if suite["messages"]:
        hypothesis.settings.load_profile("autograder")
    task = Task(
        write_record,
        Place(directory, root, frozenset(finder.visible)),
        only=frozenset(suite["only"]),
        first=tuple(suite["first"]),
        skip=frozenset(suite["skip"]),
        marks=suite["marks"],
        stop_at_first_failure=suite["stop_at_first_failure"],
        messages=suite["messages"],
    )
    if collected or (root == prepared.root and not needs_fresh(laid_conftests)):
        recorder = prepared.recorder
        recorder.begin(task)
        status = prepared.run()
    else:
        recorder = Recorder()
        recorder.begin(task)
        status = run_afresh(directory, root, recorder)
    flush_streams()
    recorder.end(status)
    if has_other and collected and prepared.can_go_on() and not files_were_left(directory, suite["root"], laid):
        run_on_other_version(task, finder, prepared, suite["environment"])
    return 0


def files_were_left(directory: str, suite: str, laid: Collection[str]) -> bool:
    """Whether something lies in the run's directory that did not when its tests began."""
    known = {path.partition("/")[0] for path in (*laid, suite)}
    return not known.issuperset(os.listdir(directory))


def run_on_other_version(
    task: Task, finder: MemoryFinder, prepared: PreparedSession, variables: Sequence[tuple[str, str]]
) -> None:
    """Run what failed, the quickest first, until something fails again."""
    prepared.recorder.emit("goes on")
    if not install_other_version(finder):
        return
    os.chdir(prepared.directory)
    prepare_process(prepared.directory, variables)
    recorder = prepared.recorder
    failed = recorder.seconds_of_failed
    if prepared.begin_again():
        quickest_first = tuple(sorted(failed, key=failed.__getitem__))
        recorder.begin(replace(task, only=frozenset(failed), first=quickest_first, stop_at_first_failure=True))
        status = prepared.run()
        flush_streams()
        recorder.end(status)


def install_other_version(finder: MemoryFinder) -> bool:
    """Ask for it, and have it imported from now on; whether there was one. As with `unpack`, the package goes with this
    call."""
    try:
        with socket.socket(fileno=OTHER_VERSION_FD) as line:
            line.send(b"?")
            _, fds, _, _ = socket.recv_fds(line, 1, 1)
    except OSError:  # a test has closed it, or has asked already
        return False
    for fd in fds:
        header, blobs = opened(read_package(fd))
        os.close(fd)
        finder.install(sources_of(header, blobs))
    return bool(fds)


def run_calls(drive: Header, calls: Calls, finder: MemoryFinder, directory: str) -> int:
    """Drive the unit; returns the process's exit code: 0 if the record is whole."""
    prepare_process(directory)
    place = Place(directory, f"{directory}/suite", frozenset(finder.visible))
    run_drive(calls.driver, "driver.py", drive["unit"], calls.cases, place, write_record)
    flush_streams()
    return 0


def prepare_process(directory: str, variables: Sequence[tuple[str, str]] = ()) -> None:
    """The environment and generators that every run starts with."""
    environment = {name: value.replace("{dir}", directory) for name, value in variables}
    own = {"HOME": directory, "TMPDIR": directory, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment}
    for name in set(os.environ) - own.keys() - KEPT_VARIABLES:
        del os.environ[name]
    for name, value in own.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    tempfile.tempdir = None
    random.seed(0)
    numpy.random.seed(0)
    if torch := sys.modules.get("torch"):  # where the runtime has it
        torch.manual_seed(0)


KEPT_VARIABLES = {
    "PATH",
    "LANG",
    "PYTHONHASHSEED",
    "PYTHONDONTWRITEBYTECODE",
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
}


def settle_hypothesis() -> None:
    """Equal runs draw equal examples: no clock, no memory of earlier runs."""
    equal = hypothesis.settings(derandomize=True, deadline=None, database=None)
    hypothesis.settings.register_profile("autograder", equal)
    # Making a failure small takes a hundred times as long as finding it, and only its message is the better for it.
    brief = hypothesis.settings(equal, phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate))
    hypothesis.settings.register_profile("autograder-brief", brief)
    hypothesis.settings.load_profile("autograder-brief")  # as most runs have it


def sources_of(header: Header, blobs: "Blobs") -> list[Source]:
    return [
        Source(name, filename, visible, blobs.take(size), is_code)
        for name, filename, visible, is_code, size in header["modules"]
    ]


class Blobs:
    """The parts of a body, taken in order."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._at = 0

    def view(self, size: int) -> memoryview:
        self._at += size
        return self._body[self._at - size : self._at]

    def take(self, size: int) -> bytes:
        return bytes(self.view(size))


def opened(package: bytes) -> tuple[Header, Blobs]:
    """Header and parts of what the host packed: it speaks for itself, so nothing is checked."""
    start = PREFIX.size + PREFIX.unpack_from(package)[0]
    return json.loads(package[PREFIX.size : start]), Blobs(memoryview(package)[start:])


def lay(directory: str, path: str, data: bytes | memoryview, made: set[str]) -> None:
    """Write a file of a run. `made`: the folders in `directory` that are there."""
    if path.startswith("/") or ".." in path.split("/") or not path.strip("./"):
        raise ValueError(f"not a path inside the run's directory: {path!r}")
    folder = path.rpartition("/")[0]
    if folder not in made:
        os.makedirs(f"{directory}/{folder}", exist_ok=True)
        made.add(folder)
    fd = os.open(f"{directory}/{path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
    try:
        write(fd, data)
    finally:
        os.close(fd)


def write_record(line: bytes) -> None:
    write(RECORD_FD, line)


def write(fd: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_package(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)


def read_all(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, PIPE_BYTES):
        parts.append(part)
    return b"".join(parts)


def flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # a test may have closed or replaced it
            continue
