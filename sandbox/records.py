"""The values that cross the sandbox's border: what is to run goes in, what happened comes out.

A `Sandbox` opens a `Session` for one submission. A session makes `Run`s: each is one task (a pytest suite, or a drive)
in a fresh process with its own files and its own version of the modules under test, and ends in one `RunResult`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

from sandbox.arrays import Array
from sandbox.errors import SandboxError
from sandbox.runtimes import PLAIN


@dataclass(frozen=True)
class Module:
    """A Python module given as source: it is compiled from `source` and never lies on disk.

    `name` is dotted ("tinyllm.xfmr.mha"). `filename` is what tracebacks show. `source_visible` lets tracebacks quote
    the source: right for a student's own file, wrong for a variant.
    """

    name: str
    source: bytes
    filename: str
    source_visible: bool = False


@dataclass(frozen=True)
class File:
    """A file to lay into the run's private directory; `path` is relative, with forward slashes, without '..'."""

    path: str
    data: bytes


@dataclass(frozen=True)
class Limits:
    """What one run may use. Time counts the processes of the run together, memory each process by itself."""

    cpu_seconds: float = 20.0
    wall_seconds: float = 60.0
    memory_bytes: int = 768 * 2**20
    processes: int = 32
    file_bytes: int = 16 * 2**20
    disk_bytes: int = 64 * 2**20
    disk_files: int = 4096
    open_files: int = 256
    output_bytes: int = 8 * 2**20
    """stdout and stderr together, before the run is ended; far less is kept (`Stream`)"""
    record_bytes: int = 4 * 2**20
    """the test record, before the run is ended"""


@dataclass(frozen=True)
class Suite:
    """One pytest run: the tests in `root` (a directory of `files`), seen with fixed settings of ours.

    `only` names the test functions to run (path::[Class::]function, as in `TestItem.function`); empty means all.
    `first` names those that are run before the others, in that order.
    `skip` names single items (node ids) not to run: those an earlier, interrupted run has answered already.
    `marks` names a module of the run that has a bytearray of that name: which of its bytes the code under test set is
    reported with each test, and set back.
    `path_dirs` are appended to sys.path; `environment` is set, with "{dir}" standing for the private directory.
    """

    files: tuple[File, ...]
    root: str = "suite"
    only: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    marks: str = ""
    path_dirs: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    stop_at_first_failure: bool = False
    messages: bool = True
    """record what failing tests said; off is faster"""

    @property
    def folder(self) -> "SuiteFolder":
        return SuiteFolder(self.files, self.root, self.path_dirs)


@dataclass(frozen=True)
class SuiteFolder:
    """What all runs of a suite begin with: its files, and where modules are looked for."""

    files: tuple[File, ...]
    root: str
    path_dirs: tuple[str, ...]


@dataclass(frozen=True)
class Drive:
    """Calls of ours into a module under test, whose answers are compared outside.

    `driver` is source with a function `drive(unit, case)` that returns arrays by name; it is executed in the run,
    beside `unit`, the module of that name. Each of `cases` is a frame (`sandbox.wire`): header {"case": object,
    "arrays": description}, body the arrays (`sandbox.arrays`). Whatever is in driver and cases, the unit can read.
    """

    driver: bytes
    unit: str
    cases: tuple[bytes, ...]


Task = Suite | Drive


@dataclass(frozen=True)
class Run:
    """One task on one version of the modules under test. `id` is ours; code inside the run never sees it.

    `other_version` are the same modules once more, for a suite whose tests share nothing. Where tests fail, their
    process may run these on that version too before it leaves, until one of them fails again. It saves only time.
    """

    id: str
    task: Task
    modules: tuple[Module, ...]
    limits: Limits = Limits()
    other_version: tuple[Module, ...] = ()

    @property
    def suite(self) -> Suite:
        """The task of a run that is known to be a suite; TypeError for a drive."""
        if not isinstance(self.task, Suite):
            raise TypeError("this run is no suite")
        return self.task


class EndingKind(StrEnum):
    """How a run ended, by evidence in this order: our own kill, the engine's OOM event, the protocol, the exit code."""

    COMPLETE = "complete"  # wrote its end-of-run record and left by itself
    CPU_TIME = "cpu_time"  # used its CPU seconds up
    NO_PROGRESS = "no_progress"  # its wall seconds passed without the CPU seconds being used: sleep or deadlock
    MEMORY = "memory"  # the kernel ended it for memory
    PROCESSES = "processes"  # ended while at its limit of processes
    DISK = "disk"  # filled its private disk
    FILE_SIZE = "file_size"  # wrote a file over the limit (SIGXFSZ)
    OUTPUT = "output"  # wrote too much to stdout and stderr
    RECORD = "record"  # its test record grew over the limit
    SIGNAL = "signal"  # crashed by a signal that was not ours
    EARLY_EXIT = "early_exit"  # the process left before the run was over (os._exit, pytest.exit)
    PROTOCOL_ERROR = "protocol_error"  # what it sent is no test record
    DEADLINE = "deadline"  # the submission's time was over before or while it ran


@dataclass(frozen=True)
class Ending:
    """How a run ended. `limit` is the limit it met and `seen` what was measured (bytes, seconds, count, signal or exit
    code, by kind); `item` is the node id of the test that was running, or of a drive the number of the case."""

    kind: EndingKind
    item: str | None = None
    limit: float | None = None
    seen: float | None = None
    detail: str = ""


class ItemOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"  # the test's own call failed
    ERROR = "error"  # set-up or tear-down failed
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"


class Resource(StrEnum):
    """A limit that a test met and reported itself, as an exception."""

    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"
    FILE_SIZE = "file_size"
    OPEN_FILES = "open_files"


@dataclass(frozen=True)
class TestItem:
    """One collected test that ran to an outcome. `id` is pytest's node id relative to the suite's root."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    id: str
    outcome: ItemOutcome
    seconds: float
    message: str = ""
    """exception type and text, capped; for a skip, its reason"""
    where: str = ""
    """path:line of the innermost frame that lies in a file of the suite or in a visible module"""
    resource: Resource | None = None
    marked: int | None = None
    """the marks set since the test before, and those set before the first: bit n for byte n; None if none were asked"""

    @property
    def function(self) -> str:
        """The id without its parameters: path::[Class::]function."""
        return function_of(self.id)


@lru_cache(maxsize=4096)  # every run of a suite has the same ids
def function_of(item_id: str) -> str:
    """Strip a node id's parameters: "test_a.py::test_b[x-1]" -> "test_a.py::test_b"."""
    path, separator, rest = item_id.partition("::")
    return path + separator + rest.partition("[")[0]


@dataclass(frozen=True)
class CollectionError:
    """A file that could not be collected; `path` is relative to the suite's root."""

    path: str
    message: str
    where: str = ""


@dataclass(frozen=True)
class Record:
    """What the run itself reported: ids collected (before `only` and `skip`), outcomes in order, collection errors."""

    collected: tuple[str, ...] = ()
    items: tuple[TestItem, ...] = ()
    errors: tuple[CollectionError, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What the driver returned for the case of this number, or the exception (type and text, capped) that left it."""

    case: int
    arrays: Mapping[str, Array] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Stream:
    """A captured stream: head and tail of what was written, as text with replacement characters."""

    text: str = ""
    total_bytes: int = 0
    truncated: bool = False


@dataclass(frozen=True)
class Usage:
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory_bytes: int = 0


@dataclass(frozen=True)
class RunResult:
    """What became of one run. `record` holds every outcome reported before the end, however the run ended; `answers`
    those of a drive, for the first cases in order; `on_other_version` is what came of the tests that failed on that, if
    they were run on it."""

    run_id: str
    ending: Ending
    record: Record = field(default_factory=Record)
    stdout: Stream = field(default_factory=Stream)
    stderr: Stream = field(default_factory=Stream)
    usage: Usage = field(default_factory=Usage)
    answers: tuple[Answer, ...] = ()
    on_other_version: "RunResult | None" = None

    @property
    def complete(self) -> bool:
        return self.ending.kind is EndingKind.COMPLETE


@dataclass(frozen=True)
class Environment:
    """Where runs are made. `isolated` is False for processes of this machine without a container."""

    kind: str
    image_id: str
    python: str
    numpy: str
    pytest: str
    hypothesis: str
    libraries: Mapping[str, str] = field(default_factory=dict)  # of the runtime: name -> version
    isolated: bool = True


class Session(Protocol):
    """One submission's place in the sandbox. Batches follow each other: no process of one batch lives on in the next,
    and the modules of a batch enter the sandbox only when the batch before is dead."""

    @property
    def environment(self) -> Environment: ...

    def run(
        self,
        runs: Iterable[Run | None],
        on_result: Callable[[RunResult], None] = lambda result: None,
    ) -> tuple[RunResult, ...]:
        """Make the runs, at most the session's number of jobs at a time, started in the order given.

        Returns one result per run, in the order given; `on_result` sees each as it comes. A run is asked for shortly
        before it is made, so it may depend on results that came until then; None says to ask again after the next
        result. Raises SandboxError for failures of ours only. After the session's deadline every run left ends as
        DEADLINE.
        """
        ...

    def prepare(self, suites: Sequence[SuiteFolder]) -> None:
        """Have suites compiled that runs will be of, and collected if importing them only defines. Saves only time.

        Between batches only.
        """
        ...

    def cancel(self) -> None:
        """End the session from another thread: its container is killed and `run` raises SandboxError."""
        ...


class Sandbox(Protocol):
    def session(
        self,
        preload: Sequence[Module] = (),
        deadline_seconds: float = 600.0,
        runtime: str = PLAIN,
        likely: Sequence[SuiteFolder] = (),
    ) -> AbstractContextManager[Session]:
        """A session in which `preload` (trusted modules, in dependency order) is imported already in every run.

        `runtime` is one of `sandbox.runtimes`: the libraries that there are. `likely` are trusted suites that the next
        sessions with this preload will have runs of too: they may be prepared before these begin. On exit everything of
        the session is ended, and removed before the next one opens. Raises SandboxError if it cannot be opened.
        """
        ...


class FakeSandbox:
    """Answers runs from a function instead of making them: for tests of what builds on a sandbox."""

    def __init__(self, answer: Callable[[Run], RunResult]) -> None:
        self.answer = answer
        self.batches: list[list[Run]] = []

    @contextmanager
    def session(
        self,
        preload: Sequence[Module] = (),
        deadline_seconds: float = 600.0,
        runtime: str = PLAIN,
        likely: Sequence[SuiteFolder] = (),
    ) -> Iterator[Session]:
        yield FakeSession(self)


class FakeSession:
    def __init__(self, sandbox: FakeSandbox) -> None:
        self._sandbox = sandbox
        self._cancelled = False
        self.environment = Environment("fake", "", "", "", "", "", isolated=False)

    def run(
        self,
        runs: Iterable[Run | None],
        on_result: Callable[[RunResult], None] = lambda result: None,
    ) -> tuple[RunResult, ...]:
        batch: list[Run] = []
        self._sandbox.batches.append(batch)
        results = []
        for run in runs:
            if run is None:
                raise ValueError("None, and there is no result to wait for")
            batch.append(run)
            if self._cancelled:
                raise SandboxError("the session was cancelled")
            results.append(self._sandbox.answer(run))
            on_result(results[-1])
        return tuple(results)

    def prepare(self, suites: Sequence[SuiteFolder]) -> None:
        pass

    def cancel(self) -> None:
        self._cancelled = True
