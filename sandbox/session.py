"""One submission's runs: `Run`s come in, each is made by a supervisor somewhere, one `RunResult` each leaves.

Whatever goes wrong with the place instead of with a run is dealt with here and not seen by the caller: a container
that ran out of memory as a whole, or was lost, costs only time. Runs that were beside it are made again, alone.
"""

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

from sandbox.answers import decode_answers
from sandbox.decode import GOES_ON, decode_record
from sandbox.ending import Evidence, ending_of, whole_record
from sandbox.errors import EngineFailed, SandboxError
from sandbox.package import package_of, package_of_other_version
from sandbox.records import (
    Drive,
    Ending,
    EndingKind,
    Environment,
    Module,
    Run,
    RunResult,
    Stream,
    Suite,
    SuiteFolder,
    Usage,
)
from sandbox.station import Loss, Lost, Station
from sandbox.wire import Header, WireError, expect

LOG = logging.getLogger(__name__)
GRACE_SECONDS = 20.0
EVENT_SECONDS = 0.1  # by which an engine's event may come after the result it concerns
LOSSES_ALONE = 2
AHEAD = 2  # runs that wait in the sandbox for a place, so that it need not wait for them
PARTS = 6  # head and tail of record, stdout and stderr


@dataclass
class Flight:
    """A run that was handed over: which. From when it has a place: when silence about it means that the sandbox is
    lost, and how often the engine had said before it that memory ran out."""

    index: int
    until: float | None = None
    memory_events: int = 0

    @property
    def has_place(self) -> bool:
        return self.until is not None


class StationSession:
    """A `Session` over stations, which `open_station` makes: one, and another if that is lost."""

    def __init__(
        self,
        open_station: Callable[[], Station],
        environment: Callable[[Station], Environment],
        preload: Sequence[Module],
        jobs: int,
        deadline_seconds: float,
    ) -> None:
        self._open_station = open_station
        self._preload = tuple(preload)
        self.jobs = jobs
        self._deadline = time.monotonic() + deadline_seconds
        self.narrow = False  # one run at a time
        self._cancelled = False
        self._seq = count(1)
        self._station: Station | None = None
        self._suites: tuple[SuiteFolder, ...] = ()
        self.environment = environment(self._ready_station())

    def run(
        self,
        runs: Iterable[Run | None],
        on_result: Callable[[RunResult], None] = lambda result: None,
    ) -> tuple[RunResult, ...]:
        return Batch(self, runs, on_result).make()

    def prepare(self, suites: Sequence[SuiteFolder]) -> None:
        self._suites = tuple(suites)
        try:
            self._ready_station().prepare(self._suites)
        except Lost as error:  # the next one is told as it is opened
            LOG.warning("lost a sandbox between runs: %s; %s", error, self.lose_station().text)

    def cancel(self) -> None:
        self._cancelled = True
        if station := self._station:
            station.line.kill()

    def close(self) -> None:
        self.lose_station()

    # For the batch.

    def left_seconds(self) -> float:
        return self._deadline - time.monotonic()

    def hand_over(self, run: Run) -> int:
        """Returns the run's number on the wire."""
        seq, station = next(self._seq), self._ready_station()
        left = max(0.0, self.left_seconds())
        limits, suite = vars(run.limits), number_in(station.suites, run)
        package = package_of(run, self.environment.python, files_are_there=suite >= 0)
        other = package_of_other_version(run, self.environment.python)
        fields = {"seq": seq, "suite": suite, "limits": limits, "deadline_seconds": left, "package_bytes": len(package)}
        station.send("run", package + other, **fields)
        return seq

    def begins(self, flight: Flight, run: Run) -> None:
        """Note that a run has a place from now on."""
        flight.memory_events = self._ready_station().line.memory_events()
        wall_seconds = min(run.limits.wall_seconds, max(0.0, self.left_seconds()))
        flight.until = time.monotonic() + wall_seconds + GRACE_SECONDS

    def memory_ran_out(self, flight: Flight) -> bool:
        """Whether the engine says so of the time since this run began."""
        time.sleep(EVENT_SECONDS)
        return self._ready_station().line.memory_events() > flight.memory_events

    def receive(self, until: float) -> tuple[Header, bytes]:
        return self._ready_station().receive("result", until)

    def _ready_station(self) -> Station:
        if self._station is None:
            for attempt in (1, 2):
                self._refuse_if_cancelled()
                self._station = self._open_station()
                try:
                    self._station.preload(self._preload)
                    self._station.prepare(self._suites)
                    break
                except Lost as error:
                    loss = self.lose_station()
                    if attempt == 2:
                        raise EngineFailed(
                            f"the sandbox was lost while it was prepared: {error}; {loss.text}"
                        ) from error
                except BaseException:
                    self.lose_station()
                    raise
        self._refuse_if_cancelled()
        assert self._station is not None
        return self._station

    def _refuse_if_cancelled(self) -> None:
        if self._cancelled:
            raise SandboxError("the session was cancelled")

    def lose_station(self) -> Loss:
        """Give the station up, if there is one."""
        station, self._station = self._station, None
        return Loss(False, "") if station is None else station.line.close()


class Batch:
    """The runs of one call: which are waiting, which must be alone, which are being made."""

    def __init__(
        self, session: StationSession, runs: Iterable[Run | None], on_result: Callable[[RunResult], None]
    ) -> None:
        self._session = session
        self._coming = iter(runs)
        self._on_result = on_result
        self._runs: list[Run] = []  # that have come
        self._results: dict[int, RunResult] = {}
        self._waiting: deque[int] = deque()
        self._alone: deque[int] = deque()
        self._losses: Counter[int] = Counter()
        self._flying: dict[int, Flight] = {}

    def make(self) -> tuple[RunResult, ...]:
        try:
            while self._flying or self._alone or self._some_wait():
                self._step()
        except BaseException:
            # What was in flight must not be taken for a later batch's.
            self._session.lose_station()
            raise
        return tuple(self._results[index] for index in range(len(self._runs)))

    def _step(self) -> None:
        try:
            self._start_what_fits()
            if self._flying:
                until = min(flight.until for flight in self._flying.values() if flight.until is not None)
                self._land(*self._session.receive(until))
        except Lost as error:
            self._recover(error)

    def _some_wait(self) -> bool:
        """Whether runs wait; the next is asked for when all before it were handed over."""
        if not self._waiting:
            for run in islice(self._coming, 1):
                if run is None and len(self._results) == len(self._runs):
                    raise ValueError("None, and there is no result to wait for")
                if run is None:
                    break
                self._waiting.append(len(self._runs))
                self._runs.append(run)
        return bool(self._waiting)

    def _start_what_fits(self) -> None:
        if self._session.left_seconds() <= 0:
            while self._some_wait():
                self._keep(self._waiting[0], RunResult(self._runs[self._waiting[0]].id, Ending(EndingKind.DEADLINE)))
                self._waiting.popleft()
            for index in self._alone:
                self._keep(index, RunResult(self._runs[index].id, Ending(EndingKind.DEADLINE)))
            self._alone.clear()
        if self._alone:  # first, because what becomes of them says how the others are best made
            if not self._flying:
                self._start(self._alone)
            return
        while len(self._flying) < (1 if self._session.narrow else self._session.jobs + AHEAD) and self._some_wait():
            self._start(self._waiting)

    def _start(self, queue: deque[int]) -> None:
        flight = Flight(queue[0])
        self._give_places(flight)
        self._flying[self._session.hand_over(self._runs[queue[0]])] = flight
        queue.popleft()

    def _give_places(self, *coming: Flight) -> None:
        """The sandbox starts runs in the order they came in, as many as have a place."""
        for flight in islice((*self._flying.values(), *coming), self._session.jobs):
            if not flight.has_place:
                self._session.begins(flight, self._runs[flight.index])

    def _land(self, header: Header, body: bytes) -> None:
        try:
            seq, evidence, streams = evidence_of(header, body)
            flight = self._flying[seq]
        except (WireError, KeyError) as error:
            raise Lost(f"not a result: {error}") from error
        if not evidence.oom_known:
            evidence = replace(evidence, oom=self._session.memory_ran_out(flight))
        del self._flying[seq]
        self._give_places()
        if evidence.alone:
            self._session.narrow = evidence.oom  # the next would run out as well, and then be made again: one at a time
        if evidence.oom and not evidence.alone:
            self._alone.append(flight.index)  # memory ran out, and it cannot be told through whose doing
        else:
            self._keep(flight.index, result_of(self._runs[flight.index], evidence, *streams))

    def _recover(self, error: Lost) -> None:
        """The station is lost: runs that were being made are made again, alone, in another."""
        made = [flight.index for flight in self._flying.values() if flight.has_place]
        self._waiting.extendleft(reversed([f.index for f in self._flying.values() if not f.has_place]))
        loss = self._session.lose_station()
        LOG.warning("lost a sandbox with %d runs in it: %s; %s", len(made), error, loss.text)
        if not made:
            raise EngineFailed(f"the sandbox was lost between runs: {error}; {loss.text}") from error
        for index in made:
            self._losses[index] += len(made) == 1
            if self._losses[index] < LOSSES_ALONE:
                self._alone.append(index)
            elif loss.out_of_memory:
                run = self._runs[index]
                ending = Ending(EndingKind.MEMORY, limit=run.limits.memory_bytes, detail="the container ran out")
                self._keep(index, RunResult(run.id, ending))
            else:
                raise EngineFailed(f"the sandbox was lost twice with one run: {error}; {loss.text}") from error
        self._flying.clear()

    def _keep(self, index: int, result: RunResult) -> None:
        self._results[index] = result
        self._on_result(result)


def number_in(suites: Sequence[SuiteFolder], run: Run) -> int:
    """Of the prepared suite that a run is of, or -1."""
    folder = run.task.folder if isinstance(run.task, Suite) else None
    return next((number for number, suite in enumerate(suites) if suite == folder), -1)


def evidence_of(header: Header, body: bytes) -> tuple[int, Evidence, tuple[bytes, Stream, Stream]]:
    """Number, evidence and captures of a result frame; raises WireError if it is none."""
    expect(
        header,
        seq=int,
        reason=str,
        seen=float,
        status=int,
        cpu_seconds=float,
        wall_seconds=float,
        peak_memory_bytes=int,
        peak_processes=int,
        disk_full=bool,
        oom=bool,
        oom_known=bool,
        alone=bool,
        totals=list,
        parts=list,
    )
    totals, parts, seq = header.pop("totals"), header.pop("parts"), header.pop("seq")
    sizes_are_sound = (
        len(parts) == PARTS
        and len(totals) * 2 == PARTS
        and all(type(size) is int and size >= 0 for size in (*parts, *totals))
        and sum(parts) == len(body)
    )
    if not sizes_are_sound or (header["reason"] and header["reason"] not in set(EndingKind)):
        raise WireError("sizes or reason that cannot be")
    pieces, at = [], 0
    for size in parts:
        pieces.append(body[at : at + size])
        at += size
    record = pieces[0] + pieces[1]
    stdout, stderr = stream_of(totals[1], *pieces[2:4]), stream_of(totals[2], *pieces[4:6])
    return seq, Evidence(**header), (record, stdout, stderr)


def stream_of(total: int, head: bytes, tail: bytes) -> Stream:
    """A stream of `total` bytes from those that were kept, with a line that says how many were not."""
    truncated = total > len(head) + len(tail)
    gap = b"\n... [%d bytes left out] ...\n" % (total - len(head) - len(tail)) if truncated else b""
    return Stream((head + gap + tail).decode("utf-8", "replace"), total, truncated)


def result_of(run: Run, evidence: Evidence, record: bytes, stdout: Stream, stderr: Stream) -> RunResult:
    """The result of a run, from what was seen and captured. Raises EngineFailed where it was ours that failed."""
    usage = Usage(evidence.cpu_seconds, evidence.wall_seconds, evidence.peak_memory_bytes)
    if isinstance(run.task, Drive):
        answered = decode_answers(record, len(run.task.cases))
        if answered.broken:
            raise EngineFailed(f"a driver cannot be loaded in the sandbox: {answered.broken}")
        ending = ending_of(evidence, answered, run.limits)
        return RunResult(run.id, ending, stdout=stdout, stderr=stderr, usage=usage, answers=answered.answers)
    first, goes_on, rest = record.partition(GOES_ON) if run.other_version else (record, b"", b"")
    decoded = decode_record(first)
    if not goes_on or not whole_record(decoded, run.task.stop_at_first_failure):
        ending = ending_of(evidence, decoded, run.limits, run.task.stop_at_first_failure)
        return RunResult(run.id, ending, decoded.record, stdout, stderr, usage)
    second = decode_record(rest)
    second_ending = ending_of(evidence, second, run.limits, stop_at_first_failure=True)
    on_other = RunResult(run.id, second_ending, second.record) if rest else None
    ending = Ending(EndingKind.COMPLETE)  # however what came after it has ended
    return RunResult(run.id, ending, decoded.record, stdout, stderr, usage, on_other_version=on_other)
