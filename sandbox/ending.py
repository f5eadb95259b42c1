"""Tells how a run ended: the supervisor's evidence and the decoded record come in, an `Ending` leaves.

The order of evidence: our own kill, the kernel's for memory, the record, the way the process left.
"""

import signal
from dataclasses import dataclass

from sandbox.answers import DecodedAnswers
from sandbox.decode import Decoded
from sandbox.records import Ending, EndingKind, ItemOutcome, Limits

BUSY_SHARE = 0.05  # of its wall time: a run that got this much CPU was not waiting, but kept waiting by others
GOOD_STATUS = frozenset({0, 1, 5})  # pytest: all passed, some failed, none collected


@dataclass(frozen=True)
class Evidence:
    """What the supervisor saw. `reason` is its own reason to end the run, or ""; `status` the exit code, or minus the
    number of a signal. `oom`: the container's memory ran out meanwhile; where the supervisor could not know
    (`oom_known`), the engine did. `alone`: no other run was beside it."""

    status: int
    reason: str = ""
    seen: float = 0.0
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory_bytes: int = 0
    peak_processes: int = 0
    disk_full: bool = False
    oom: bool = False
    oom_known: bool = True
    alone: bool = True


def ending_of(
    evidence: Evidence, decoded: Decoded | DecodedAnswers, limits: Limits, stop_at_first_failure: bool = False
) -> Ending:
    item = decoded.running
    whole = whole_record(decoded, stop_at_first_failure)
    if evidence.reason not in ("", EndingKind.MEMORY) and not (whole and evidence.status == 0):
        kind = EndingKind(evidence.reason)
        if kind is EndingKind.NO_PROGRESS and evidence.cpu_seconds >= BUSY_SHARE * evidence.seen:
            return Ending(EndingKind.CPU_TIME, item, limits.cpu_seconds, evidence.cpu_seconds)
        return Ending(kind, item, limit_of(kind, limits), evidence.seen)
    if evidence.oom and evidence.alone:
        return Ending(EndingKind.MEMORY, item, limits.memory_bytes, evidence.peak_memory_bytes)
    if decoded.problem:
        return Ending(EndingKind.PROTOCOL_ERROR, item, detail=decoded.problem)
    if whole and evidence.status == 0:
        return Ending(EndingKind.COMPLETE)
    return left_early(evidence, decoded, limits)


def whole_record(decoded: Decoded | DecodedAnswers, stop_at_first_failure: bool) -> bool:
    """Whether the record says that the task went to its end, and nothing in it speaks against that."""
    if isinstance(decoded, DecodedAnswers):
        return decoded.ended and not decoded.problem
    end = decoded.end
    if end is None or decoded.problem or decoded.running is not None:
        return False
    if end.interrupted or end.status not in GOOD_STATUS:
        return False
    failed = any(item.outcome in (ItemOutcome.FAILED, ItemOutcome.ERROR) for item in decoded.record.items)
    return end.ran == end.selected or (stop_at_first_failure and failed and end.ran < end.selected)


def left_early(evidence: Evidence, decoded: Decoded | DecodedAnswers, limits: Limits) -> Ending:
    """The process left before its record was whole, and not by our hand."""
    item, status = decoded.running, evidence.status
    if -status in (signal.SIGXCPU, signal.SIGKILL) and evidence.cpu_seconds >= limits.cpu_seconds:
        return Ending(EndingKind.CPU_TIME, item, limits.cpu_seconds, evidence.cpu_seconds)
    if -status == signal.SIGXFSZ:
        return Ending(EndingKind.FILE_SIZE, item, limits.file_bytes)
    if evidence.peak_processes >= limits.processes:
        return Ending(EndingKind.PROCESSES, item, limits.processes, evidence.peak_processes)
    if evidence.disk_full:
        return Ending(EndingKind.DISK, item, limits.disk_bytes, limits.disk_bytes)
    if status < 0:
        return Ending(EndingKind.SIGNAL, item, seen=-status, detail=signal_name(-status))
    return Ending(EndingKind.EARLY_EXIT, item, seen=status, detail=reason_of(decoded))


def limit_of(kind: EndingKind, limits: Limits) -> float | None:
    match kind:
        case EndingKind.CPU_TIME:
            return limits.cpu_seconds
        case EndingKind.NO_PROGRESS:
            return limits.wall_seconds
        case EndingKind.PROCESSES:
            return limits.processes
        case EndingKind.DISK:
            return limits.disk_bytes
        case EndingKind.OUTPUT:
            return limits.output_bytes
        case EndingKind.RECORD:
            return limits.record_bytes
    return None


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def reason_of(decoded: Decoded | DecodedAnswers) -> str:
    end = None if isinstance(decoded, DecodedAnswers) else decoded.end
    if end is None:
        return "the process left without the end of its record"
    if end.interrupted:
        return "the test session was interrupted"
    return f"the test session ended with status {end.status} after {end.ran} of {end.selected} tests"
