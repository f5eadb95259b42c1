"""Records of drives as untrusted code may write them: read as far as they are answers."""

import random
import struct
from typing import Any

import pytest

from sandbox.answers import decode_answers
from sandbox.wire import encode


def frame(event: str, body: bytes = b"", **fields: Any) -> bytes:
    return encode({"event": event, **fields}, body)


def text(header: bytes, body: bytes = b"") -> bytes:
    """A frame with a header that no encoder of ours would write."""
    return struct.pack(">II", len(header), len(body)) + header + body


def start(case: int) -> bytes:
    return frame("start", case=case)


def answer(case: int) -> bytes:
    return frame("answer", b"\0" * 8, case=case, arrays=[["x", "float64", []]])


ZERO = start(0) + answer(0)
WHOLE = ZERO + start(1) + frame("error", case=1, message="ValueError: no") + frame("end", cases=2)


def test_a_whole_record_is_read() -> None:
    found = decode_answers(WHOLE, 2)
    assert (found.ended, found.problem, found.running, found.broken) == (True, "", None, "")
    assert [(each.case, list(each.arrays), each.error) for each in found.answers] == [
        (0, ["x"], ""),
        (1, [], "ValueError: no"),
    ]


@pytest.mark.parametrize("cut", range(len(ZERO + start(1)), len(WHOLE), 7))
def test_a_record_that_breaks_off_is_not_whole_and_not_wrong(cut: int) -> None:
    found = decode_answers(WHOLE[:cut], 2)
    assert (found.ended, found.problem) == (False, "")
    assert found.running == ("1" if len(found.answers) == 1 else None)


@pytest.mark.parametrize(
    "then",
    [
        answer(0),  # the same again
        answer(1),  # an answer without a start
        start(0),
        start(2),
        start(-1),
        start(1) + start(1),
        start(1) + answer(0),
        start(1) + frame("answer", b"", case=1, arrays=[["x", "float64", []]]),
        start(1) + frame("answer", b"\0" * 9, case=1, arrays=[["x", "float64", []]]),
        start(1) + frame("answer", b"\0" * 8, case=1, arrays=[["x", "object", []]]),
        start(1) + frame("answer", b"", case=1, arrays=[["x", "float64", [2**32, 2**32]]]),
        start(1) + frame("answer", b"", case=1, arrays={}),
        start(1) + frame("answer", b"", case=True, arrays=[]),
        start(1) + frame("answer", b"", case=1.0, arrays=[]),
        start(1) + frame("answer", b"", case=1, arrays=[], more=1),
        start(1) + frame("error", case=1, message=""),
        start(1) + frame("error", case=1, message="x" * 10**5),
        start(1) + frame("error", b"body", case=1, message="x"),
        start(1) + frame("end", cases=2),
        frame("end", cases=2),
        frame("end", cases=1),
        frame("broken", message="not so"),
        frame("hello"),
        text(b"[]"),
        text(b"\xff"),
        text(b'{"event": "start", "case": NaN}'),
        text(b'{"event": "start", "case": 1e999}'),
        text(b'{"event": "start", "case": 1, "case": 1}'),
        text(b'{"event": "start", "case": ' + b"1" * 5000 + b"}"),
        text(b'{"event": "\\ud800"}'),
        text(b'{"event": ' + b"[" * 100000 + b"}"),
        text(b'{"event": "start", "case": 1}' + b" " * 100000),
        struct.pack(">II", 2**31, 0) + b"{}",
        struct.pack(">II", 2, 2**31) + b"{}",
    ],
)
def test_a_frame_out_of_place_is_a_problem_and_what_came_before_it_stays(then: bytes) -> None:
    found = decode_answers(ZERO + then, 2)
    assert found.problem and not found.ended and not found.broken
    assert [each.case for each in found.answers] == [0]


@pytest.mark.parametrize("more", [b"x", start(1), frame("end", cases=2)])
def test_nothing_may_follow_the_end(more: bytes) -> None:
    assert decode_answers(WHOLE + more, 2).problem


def test_only_a_driver_that_has_not_begun_can_be_broken() -> None:
    assert decode_answers(frame("broken", message="SyntaxError"), 2).broken == "SyntaxError"
    found = decode_answers(start(0) + frame("broken", message="SyntaxError"), 2)
    assert found.problem and not found.broken


def test_damaged_records_never_raise() -> None:
    draw = random.Random(4)
    for _ in range(2000):
        data = bytearray(WHOLE)
        for _ in range(draw.randint(1, 6)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        found = decode_answers(bytes(data), 2)
        assert len(found.answers) <= 2
