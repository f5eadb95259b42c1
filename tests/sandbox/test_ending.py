"""How a run ended, by the order of evidence."""

import signal

import pytest

from sandbox.decode import Decoded, End
from sandbox.ending import Evidence, ending_of
from sandbox.records import EndingKind, ItemOutcome, Limits, Record, TestItem

LIMITS = Limits(cpu_seconds=5.0, processes=8)
WHOLE = Decoded(Record(), End(0, False, 0, 0))
CUT_OFF = Decoded(Record(), running="t.py::a")
FORGED = Decoded(Record(), problem="bytes after the end of the record")


@pytest.mark.parametrize(
    "evidence, decoded, kind",
    [
        (Evidence(0), WHOLE, EndingKind.COMPLETE),
        (Evidence(0), CUT_OFF, EndingKind.EARLY_EXIT),
        (Evidence(3), WHOLE, EndingKind.EARLY_EXIT),
        (Evidence(0), FORGED, EndingKind.PROTOCOL_ERROR),
        (Evidence(-9, reason="output"), FORGED, EndingKind.OUTPUT),
        (Evidence(-9, oom=True), CUT_OFF, EndingKind.MEMORY),
        (Evidence(-9, reason="memory", oom=True), CUT_OFF, EndingKind.MEMORY),
        (Evidence(0, reason="memory", oom=True), WHOLE, EndingKind.MEMORY),  # its children took it, and it was done
        (Evidence(-9, reason="cpu_time", oom=True), CUT_OFF, EndingKind.CPU_TIME),
        (Evidence(-9, reason="no_progress", seen=9.0, cpu_seconds=0.3), CUT_OFF, EndingKind.NO_PROGRESS),
        (Evidence(-9, reason="no_progress", seen=9.0, cpu_seconds=4.0), CUT_OFF, EndingKind.CPU_TIME),  # a busy machine
        (Evidence(-9), CUT_OFF, EndingKind.SIGNAL),
        (Evidence(137), CUT_OFF, EndingKind.EARLY_EXIT),
        (Evidence(-11), FORGED, EndingKind.PROTOCOL_ERROR),
        (Evidence(-int(signal.SIGXCPU), cpu_seconds=5.1), CUT_OFF, EndingKind.CPU_TIME),
        (Evidence(-int(signal.SIGXFSZ)), CUT_OFF, EndingKind.FILE_SIZE),
        (Evidence(1, peak_processes=8), CUT_OFF, EndingKind.PROCESSES),
        (Evidence(1, disk_full=True), CUT_OFF, EndingKind.DISK),
        (Evidence(0, reason="output"), WHOLE, EndingKind.COMPLETE),  # it had left before it was killed
    ],
)
def test_the_order_of_evidence(evidence: Evidence, decoded: Decoded, kind: EndingKind) -> None:
    assert ending_of(evidence, decoded, LIMITS).kind is kind


@pytest.mark.parametrize(
    "end",
    [End(2, False, 1, 1), End(3, False, 1, 1), End(0, True, 1, 1), End(1, False, 2, 1), End(0, False, 1, 2)],
)
def test_an_end_that_is_not_a_good_one_is_early_exit(end: End) -> None:
    assert ending_of(Evidence(0), Decoded(Record(), end), LIMITS).kind is EndingKind.EARLY_EXIT


def test_fewer_tests_than_selected_need_a_failure_and_leave_to_stop() -> None:
    failed = Record(items=(TestItem("t.py::a", ItemOutcome.FAILED, 0.0),))
    passed = Record(items=(TestItem("t.py::a", ItemOutcome.PASSED, 0.0),))
    end = End(1, False, 2, 1)
    assert ending_of(Evidence(0), Decoded(failed, end), LIMITS, True).kind is EndingKind.COMPLETE
    assert ending_of(Evidence(0), Decoded(failed, end), LIMITS, False).kind is EndingKind.EARLY_EXIT
    assert ending_of(Evidence(0), Decoded(passed, end), LIMITS, True).kind is EndingKind.EARLY_EXIT


def test_the_ending_says_limit_measure_and_test() -> None:
    ending = ending_of(Evidence(-9, reason="cpu_time", seen=5.2), CUT_OFF, LIMITS)
    assert (ending.item, ending.limit, ending.seen) == ("t.py::a", 5.0, 5.2)
    ending = ending_of(Evidence(-9, reason="memory", oom=True, peak_memory_bytes=3), CUT_OFF, LIMITS)
    assert (ending.item, ending.limit, ending.seen) == ("t.py::a", LIMITS.memory_bytes, 3)
