"""Records as untrusted code may write them: read as far as they are records."""

import json
from typing import Any

import pytest

from sandbox.decode import decode_record
from sandbox.records import ItemOutcome


def line(event: str, **fields: Any) -> bytes:
    return json.dumps({"event": event, **fields}).encode() + b"\n"


def item(id: str, outcome: str = "passed", **changes: Any) -> bytes:
    fields = {"id": id, "outcome": outcome, "seconds": 0.1, "message": "", "where": "", "resource": None}
    return line("item", **(fields | changes))


COLLECTED = line("collected", ids=["t.py::a", "t.py::b"])
RAN_A = line("start", id="t.py::a") + item("t.py::a")
END = line("end", status=0, interrupted=False, selected=1, ran=1)


def test_a_whole_record_is_read() -> None:
    decoded = decode_record(COLLECTED + RAN_A + END)
    assert not decoded.problem and decoded.end is not None and decoded.end.ran == 1
    assert [(found.id, found.outcome) for found in decoded.record.items] == [("t.py::a", ItemOutcome.PASSED)]


def test_marks_are_read_as_bits_where_there_are_any() -> None:
    decoded = decode_record(COLLECTED + RAN_A + line("start", id="t.py::b") + item("t.py::b", marked="f" * 512))
    assert [found.marked for found in decoded.record.items] == [None, 2**2048 - 1]


def test_a_record_that_breaks_off_names_the_running_test() -> None:
    decoded = decode_record(COLLECTED + RAN_A + line("start", id="t.py::b") + b'{"event": "it')
    assert (decoded.running, decoded.end, decoded.problem) == ("t.py::b", None, "")
    assert len(decoded.record.items) == 1


@pytest.mark.parametrize(
    "then",
    [
        RAN_A,  # the same again
        END + END,
        END + b"x",
        END + line("start", id="t.py::b"),
        item("t.py::b"),  # an outcome without a start
        line("start", id="t.py::b") + item("t.py::a"),
        line("start", id="t.py::b") + line("start", id="t.py::b"),
        line("start", id="t.py::unknown"),
        COLLECTED,
        line("collected", ids=["t.py::late"]),
        line("start", id="t.py::b") + item("t.py::b", outcome="glorious"),
        line("start", id="t.py::b") + item("t.py::b", seconds="1"),
        line("start", id="t.py::b") + item("t.py::b", resource="luck"),
        line("start", id="t.py::b") + item("t.py::b", marked=3),
        line("start", id="t.py::b") + item("t.py::b", marked=""),
        line("start", id="t.py::b") + item("t.py::b", marked="-1"),
        line("start", id="t.py::b") + item("t.py::b", marked="f" * 513),
        line("start", id="t.py::b") + item("t.py::b", message="x" * 10**5),
        line("start", id="t.py::b") + item("t.py::b", extra=1),
        line("end", status=0, interrupted=False, selected=2, ran=2),
        line("end", status=True, interrupted=False, selected=1, ran=1),
        line("hello"),
        b"[]\n",
        b"\n",
        b"\0\n",
    ],
)
def test_what_cannot_follow_is_a_problem_and_what_came_before_is_kept(then: bytes) -> None:
    decoded = decode_record(COLLECTED + RAN_A + then)
    assert decoded.problem
    assert [found.id for found in decoded.record.items] == ["t.py::a"]


def test_collected_ids_and_errors_are_bounded() -> None:
    ids = line("collected", ids=[f"t.py::t{number}" for number in range(6000)])
    assert decode_record(ids).problem
    assert decode_record(line("error", path="t.py", message="", where="") * 501).problem
