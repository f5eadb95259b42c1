"""A pytest plugin: what a run's tests do comes in through pytest's hooks, lines of JSON leave through a descriptor.

    {"event": "collected", "ids": [...]}            before `only` and `skip`; more than one when there are many
    {"event": "error", "path", "message", "where"}  a file that could not be collected
    {"event": "start", "id"}                        a test begins: if no outcome follows, the run ended in it
    {"event": "item", "id", "outcome", "seconds", "message", "where", "resource"}    and "marked", if it is asked for
    {"event": "end", "status", "interrupted", "selected", "ran"}    the last line of a record that was not cut short
    {"event": "goes on"}                            the process goes on with another version: a second record follows

Reports are built here, not by pytest, because its tracebacks cost more than most tests.
"""

import errno
import hashlib
import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

import pytest
from _pytest.config import ConftestImportFailure
from _pytest.reports import CollectReport, TestReport

ID_CHARACTERS = 400
MESSAGE_CHARACTERS = 2000
IDS_PER_LINE = 200
NUMPY_SHORT_WRITE = re.compile(r"\d+ requested and \d+ written")  # an OSError without an errno

RESOURCE_OF_ERRNO = {
    errno.EAGAIN: "processes",
    errno.ENOMEM: "memory",
    errno.ENOSPC: "disk",
    errno.EFBIG: "file_size",
    errno.EMFILE: "open_files",
}


@dataclass(frozen=True)
class Place:
    """What turns a run's own paths into paths that are equal in equal runs."""

    directory: str
    root: str
    visible: frozenset[str] = frozenset()

    def scrub(self, text: str) -> str:
        text = text.replace(self.root + "/", "").replace(self.directory + "/", "").replace(self.directory, ".")
        return re.sub(r"\b0x[0-9a-fA-F]{4,}\b", "0x…", text)

    def relative(self, filename: str) -> str | None:
        """The file as its author knows it; None for one that is not theirs, helpers laid beside the suite included."""
        if filename in self.visible:
            return filename
        return filename[len(self.root) + 1 :] if filename.startswith(self.root + "/") else None


@dataclass(frozen=True)
class Task:
    """What to record of a run, and where to: what is known only when it begins."""

    write: Callable[[bytes], None]
    place: Place
    only: frozenset[str] = frozenset()
    first: tuple[str, ...] = ()
    skip: frozenset[str] = frozenset()
    marks: str = ""
    stop_at_first_failure: bool = False
    messages: bool = True


class Recorder:
    """Registered with pytest before the fork; `begin` is called after it."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []
        """as collected, in that order"""
        self._ids: dict[str, str] = {}
        self._looked_at: tuple[tuple[pytest.Item, str, str], ...] = ()
        self._collected_lines = b""
        self._marked_before: int | None = None

    def begin(self, task: Task) -> None:
        self._reports: list[TestReport] = []
        self._selected = 0
        self._ran = 0
        self._interrupted = False
        self.seconds_of_failed: dict[str, float] = defaultdict(float)
        """by function, of its tests that failed"""
        self._task = task
        self._place = task.place
        self._messages = task.messages
        self._pid = os.getpid()
        self._held = b""

    def has_failed(self, item: pytest.Item) -> bool:
        """Whether tests of its function have."""
        return function_of(self._id(item.nodeid)) in self.seconds_of_failed

    def emit(self, event: str, **fields: object) -> None:
        self._hold(event, **fields)
        self.flush()

    def _hold(self, event: str, **fields: object) -> None:
        self._held += line(event, **fields)

    def flush(self) -> None:
        if self._held:
            self._task.write(self._held)
            self._held = b""

    def end(self, status: int) -> None:
        self.emit("end", status=status, interrupted=self._interrupted, selected=self._selected, ran=self._ran)

    # What pytest calls, in this order.

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        # The streams are the tests' own: pytest's progress and summary stay out of them.
        if reporter := config.pluginmanager.get_plugin("terminalreporter"):
            config.pluginmanager.unregister(reporter)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, CollectReport, CollectReport]:
        report = yield
        call = getattr(report, "call", None)
        if report.failed and call is not None and call.excinfo is not None:
            error = call.excinfo.value
            if isinstance(error, collector.CollectError) and error.__cause__ is not None:
                error = error.__cause__
            self._not_collected(clean_id(collector.nodeid, self._place), error)
        return report

    def not_begun(self, error: Exception) -> None:
        """Of a conftest.py without which pytest could not begin: of those it reads only that of the root so early."""
        self._not_collected("conftest.py", error)

    def _not_collected(self, path: str, error: BaseException) -> None:
        if isinstance(error, ConftestImportFailure):  # pytest blames the folder for its conftest.py
            path = self._place.relative(str(error.path)) or path
            error = error.cause
        message, where = message_of(error, self._place), where_of(error, error.__traceback__, self._place)
        self.emit("error", path=path, message=message, where=where)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.items = list(items)
        self._look_at(items)
        items[:] = self.select_looked_at()
        self.flush()

    def _look_at(self, items: Sequence[pytest.Item]) -> None:
        """Take in what was collected: of an inert suite before the fork, once for all runs."""
        ids = [self._id(item.nodeid) for item in items]
        self._looked_at = tuple((item, id, function_of(id)) for item, id in zip(items, ids, strict=True))
        starts = range(0, len(ids), IDS_PER_LINE)
        self._collected_lines = b"".join(line("collected", ids=ids[start : start + IDS_PER_LINE]) for start in starts)

    def select_looked_at(self) -> list[pytest.Item]:
        """Say what was collected, not before something begins; returns what of it is to run, in order."""
        self._held += self._collected_lines
        only, skip = self._task.only, self._task.skip
        chosen = [
            (function, item)
            for item, id, function in self._looked_at
            if (not only or function in only) and id not in skip
        ]
        if self._task.first:
            places = {function: place for place, function in enumerate(self._task.first)}
            chosen.sort(key=lambda one: places.get(one[0], len(places)))
        return [item for _, item in chosen]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._selected = len(session.items)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._reports = []
        if self._task.marks and self._marked_before is None:
            self._marked_before = self._take_marks()
        self.emit("start", id=self._id(nodeid))

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> TestReport:
        self.leave_if_forked()
        return self._report_of(item, call, item.location, {name: 1 for name in item.keywords})

    def leave_if_forked(self) -> None:
        """End a fork that a test made and that fell out of the test: it has nothing to report."""
        if os.getpid() != self._pid:
            os._exit(1)

    def note_failure(self, item: pytest.Item, call: pytest.CallInfo[object]) -> None:
        """Take an ordinary failure, of which no plugin makes anything else: what is for them alone is left out."""
        self.pytest_runtest_logreport(self._report_of(item, call, ("", None, ""), {}))
        item.session.testsfailed += 1

    def _report_of(
        self,
        item: pytest.Item,
        call: pytest.CallInfo[Any],
        location: tuple[str, int | None, str],
        keywords: Mapping[str, Literal[1]],
    ) -> TestReport:
        outcome: Literal["passed", "failed", "skipped"] = "passed"
        longrepr: str | tuple[str, int, str] | None = None
        message, where, resource_met = "", "", None
        if call.excinfo is not None:
            error = call.excinfo.value
            outcome = "failed"
            if isinstance(error, pytest.skip.Exception):
                outcome, message = "skipped", self._place.scrub(cap(str(error.msg)))
                longrepr = (location[0], location[1] or 0, f"Skipped: {error.msg}")
            else:
                longrepr = type(error).__name__
                if self._messages:
                    message = message_of(error, self._place)
                    where = where_of(error, call.excinfo.tb, self._place)
                resource_met = resource_of(error, self._place.directory)
        report = TestReport(
            item.nodeid,
            location,
            keywords,
            outcome,
            longrepr,
            call.when,  # type: ignore[arg-type]
            duration=call.duration,
            start=call.start,
            stop=call.stop,
        )
        report.autograder = (message, where, resource_met)  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: TestReport) -> None:
        # Subtests report too, as a subclass: the test they belong to fails with them.
        if type(report) is TestReport or report.failed:
            self._reports.append(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._finish(nodeid, *outcome_of(self._reports), sum(report.duration for report in self._reports))
        self.flush()

    def finish_plain(self, item: pytest.Item, steps: Sequence[pytest.CallInfo[object]]) -> None:
        """Take what a test came to that ran without hooks; of steps that did not pass there is a report already. The
        line is held until the next test starts or the run ends: nothing of the suite is executed between."""
        passed = all(step.excinfo is None for step in steps)
        outcome = ("passed", None) if passed else outcome_of(self._reports)
        self._finish(item.nodeid, *outcome, sum(step.duration for step in steps))
        self._stop_after_failure(item.session)

    def _finish(self, nodeid: str, outcome: str, telling: TestReport | None, seconds: float) -> None:
        message, where, resource_met = getattr(telling, "autograder", ("", "", None))
        reason = getattr(telling, "wasxfail", "")
        if outcome in ("xfailed", "xpassed"):
            message, where, resource_met = str(reason), "", None
        elif telling is not None and telling.failed and not message and self._messages:
            message = str(telling.longrepr)  # what pytest itself decided: a strict xfail that passed, failed subtests
        self._ran += 1
        marked = {"marked": f"{(self._marked_before or 0) | self._take_marks():x}"} if self._task.marks else {}
        self._hold(
            "item",
            id=self._id(nodeid),
            outcome=outcome,
            seconds=round(seconds, 6),
            message=self._place.scrub(cap(message)),
            where=where,
            resource=resource_met,
            **marked,
        )
        if outcome in ("failed", "error"):
            self.seconds_of_failed[function_of(self._id(nodeid))] += seconds

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        done = yield
        self._stop_after_failure(item.session)
        return done

    def _stop_after_failure(self, session: pytest.Session) -> None:
        if self._task.stop_at_first_failure and self.seconds_of_failed:
            session.shouldfail = "first failure"

    def pytest_keyboard_interrupt(self) -> None:
        self._interrupted = True  # pytest.exit comes here too

    def _take_marks(self) -> int:
        """Which marks are set, as bits; afterwards none is."""
        marks = getattr(sys.modules.get(self._task.marks), self._task.marks, bytearray())
        bits = sum(1 << number for number, mark in enumerate(marks) if mark)
        marks[:] = bytes(len(marks))
        return bits

    def _id(self, nodeid: str) -> str:
        """The clean id, which is the same in every run in this place."""
        if nodeid not in self._ids:
            self._ids[nodeid] = clean_id(nodeid, self._place)
        return self._ids[nodeid]


def line(event: str, **fields: object) -> bytes:
    return json.dumps({"event": event, **fields}, ensure_ascii=True).encode() + b"\n"


def function_of(id: str) -> str:
    """An id without its parameters."""
    path, separator, rest = id.partition("::")
    return path + separator + rest.partition("[")[0]


def clean_id(nodeid: str, place: Place) -> str:
    """The node id without this run's paths, and short: of a longer one the end is replaced by a digest of it all."""
    text = place.scrub(printable(nodeid))
    if len(text) <= ID_CHARACTERS:
        return text
    return text[: ID_CHARACTERS - 17] + "~" + hashlib.sha256(text.encode()).hexdigest()[:16]


def outcome_of(reports: Sequence[TestReport]) -> tuple[str, TestReport | None]:
    """A test's outcome, and which of its reports (set-up, call, tear-down) tells why."""
    for report in reports:
        if report.when == "call" and report.failed:
            return "failed", report
    for report in reports:
        if report.failed:
            return "error", report
    for report in reports:
        if report.skipped:
            return ("xfailed" if hasattr(report, "wasxfail") else "skipped"), report
    for report in reports:
        if report.when == "call" and hasattr(report, "wasxfail"):
            return "xpassed", report
    if any(report.when == "call" for report in reports):
        return "passed", None
    return "error", None


def message_of(error: BaseException, place: Place) -> str:
    """Exception type and text, with notes and the parts of a group, without addresses and private paths."""
    parts = [f"{type(error).__qualname__}: {text_of(error)}".removesuffix(": ")]
    parts += [str(note) for note in getattr(error, "__notes__", ())]
    if isinstance(error, BaseExceptionGroup):
        parts += [f"  {type(inner).__qualname__}: {text_of(inner)}" for inner in error.exceptions[:5]]
    return place.scrub(cap("\n".join(parts)))


def text_of(error: BaseException) -> str:
    try:
        text = str(error)
        if len(text) <= 2 * MESSAGE_CHARACTERS:
            return text
        return text[:MESSAGE_CHARACTERS] + text[-MESSAGE_CHARACTERS:]  # before it is copied: it may fill the memory
    except Exception as problem:
        return f"(its text cannot be made: {type(problem).__name__})"


def where_of(error: BaseException, trace: TracebackType | None, place: Place) -> str:
    """path:line of the innermost frame in a file that the author may see; "" if there is none. As in pytest's own
    tracebacks, a function with the local `__tracebackhide__ = True` is passed over, unless the error is all its own."""
    where = ""
    while trace is not None:
        is_hidden = "__tracebackhide__" in trace.tb_frame.f_code.co_varnames and bool(where)
        if not is_hidden and (path := place.relative(trace.tb_frame.f_code.co_filename)):
            where = f"{path}:{trace.tb_lineno}"
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename and (path := place.relative(error.filename)):
        where = f"{path}:{error.lineno or 1}"
    return printable(where)


def resource_of(error: BaseException, directory: str) -> str | None:
    """The limit of ours that an exception speaks of, itself or what it was raised from."""
    seen = 0
    current: BaseException | None = error
    while current is not None and seen < 20:
        if isinstance(current, MemoryError):
            return "memory"
        if isinstance(current, OSError) and current.errno in RESOURCE_OF_ERRNO:
            return RESOURCE_OF_ERRNO[current.errno]
        if isinstance(current, OSError) and NUMPY_SHORT_WRITE.fullmatch(str(current)):
            return "disk" if os.statvfs(directory).f_bfree == 0 else "file_size"
        if isinstance(current, RuntimeError) and "can't start new thread" in str(current):
            return "processes"
        current, seen = current.__cause__ or current.__context__, seen + 1
    return None


def cap(text: str) -> str:
    """Head and tail of a long text; as valid, encodable characters."""
    text = printable(text)
    if len(text) <= MESSAGE_CHARACTERS:
        return text
    half = (MESSAGE_CHARACTERS - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
