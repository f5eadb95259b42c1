"""Whatever bytes a container sends: frames, records and answers are read as far as they are some, or refused."""

import json
import struct

from hypothesis import example, given
from hypothesis import strategies as st

from sandbox.answers import decode_answers
from sandbox.arrays import Array, arrays_of, described
from sandbox.decode import decode_record
from sandbox.records import ItemOutcome
from sandbox.wire import DEPTH, Frames, WireError, decode, encode, frame_length, parse
from tests.fuzzing import damaged, fuzzed

ARRAYS = {
    "out": Array("float32", (2, 3), bytes(24)),
    "flag": Array("bool", (), b"\1"),
    "none": Array("float64", (0, 5), b""),
}
DESCRIPTION, BODY = described(ARRAYS)
FRAMES = [
    encode({"frame": "ready", "nonce": "0" * 32, "python": "3.11"}),
    encode({"frame": "result", "seq": 1, "oom": False, "parts": [1, 2], "seen": 0.5}, b"abc"),
    encode({}),
]
CASE = b"".join(
    encode(header, body)
    for header, body in (
        ({"event": "start", "case": 0}, b""),
        ({"event": "answer", "case": 0, "arrays": DESCRIPTION}, BODY),
        ({"event": "start", "case": 1}, b""),
        ({"event": "error", "case": 1, "message": "ValueError: no"}, b""),
        ({"event": "end", "cases": 2}, b""),
    )
)
ITEM = {"event": "item", "seconds": 0.1, "message": "", "where": "", "resource": None}
RECORD = b"".join(
    json.dumps(line).encode() + b"\n"
    for line in (
        {"event": "collected", "ids": ["t.py::a", "t.py::b"]},
        {"event": "error", "path": "u.py", "message": "no", "where": "u.py:1"},
        {"event": "start", "id": "t.py::a"},
        ITEM | {"id": "t.py::a", "outcome": "passed"},
        {"event": "start", "id": "t.py::b"},
        ITEM
        | {"id": "t.py::b", "outcome": "failed", "seconds": 1, "where": "t.py:2", "resource": "memory", "marked": "a0"},
        {"event": "end", "status": 1, "interrupted": False, "selected": 2, "ran": 2},
    )
)


def frames_in(pieces: list[bytes]) -> tuple[list[tuple[dict[str, object], bytes]], bool]:
    """The frames that came before the first that is none, and whether there was one."""
    frames, found = Frames(), []
    for piece in pieces:
        for at in range(len(piece)):
            try:
                found += frames.feed(piece[at : at + 1])
            except WireError:
                return found, True
    return found, False


@fuzzed(300)
@given(damaged([*FRAMES, b"".join(FRAMES)]))
@example(struct.pack(">II", 2**32 - 1, 2**32 - 1))
@example(struct.pack(">II", 1, 0) + b"5")
@example(struct.pack(">II", 6, 0) + b'{"a":N')
def test_frames_are_whole_or_refused(data: bytes) -> None:
    found, refused = frames_in([data])
    at = 0
    for header, body in found:
        assert isinstance(header, dict)
        length = frame_length(data[at:])
        assert length is not None and decode(data[at : at + length]) == (header, body)
        at += length
    assert refused or at <= len(data)


def depth_of(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth_of, inner), default=0)


@fuzzed(500)
@given(
    damaged([b'{"a": [1, 2.5, "x", null, true], "b": {"c": -7e3}}', b'"\\u00e9\\ud83d\\ude00"', b"[[[]]]", b"-1e-9"])
)
@example(b"1" * 4301)
@example(b'"\\udc00"')
@example(b"[" * 2000 + b"]" * 2000)
@example(b"\xef\xbb\xbf{}")
@example(b"-Infinity")
def test_json_is_what_every_reader_reads_alike(data: bytes) -> None:
    try:
        value = parse(data)
    except WireError:
        return
    assert depth_of(value) <= DEPTH + 1
    again = json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")
    assert parse(again) == value


@fuzzed(500)
@given(damaged([RECORD]))
@example(RECORD + b'{"event": "item", "id": "t.py::b"}')
@example(RECORD.replace(b'"seconds": 0.1', b'"seconds": 1e308'))
@example(RECORD.replace(b'"passed"', b'["passed"]'))
@example(RECORD.replace(b'"collected", "ids": [', b'"collected", "ids": [[], '))
def test_a_record_holds_only_what_can_have_happened(data: bytes) -> None:
    decoded = decode_record(data)
    record = decoded.record
    assert {item.id for item in record.items} <= set(record.collected)
    assert len({item.id for item in record.items}) == len(record.items)
    assert all(item.outcome in ItemOutcome and 0 <= item.seconds <= 1e6 for item in record.items)
    if decoded.end is not None and not decoded.problem:
        assert decoded.end.interrupted or decoded.end.ran == len(record.items)


@fuzzed(500)
@given(damaged([CASE]), st.integers(0, 3))
@example(CASE[:-1], 2)
@example(CASE + b"\0", 2)
@example(encode({"event": "broken", "message": ""}) * 2, 2)
def test_answers_are_arrays_in_the_order_of_the_cases(data: bytes, cases: int) -> None:
    decoded = decode_answers(data, cases)
    assert [answer.case for answer in decoded.answers] == list(range(len(decoded.answers)))
    assert len(decoded.answers) <= cases
    assert not decoded.ended or decoded.problem or len(decoded.answers) == cases
    for answer in decoded.answers:
        assert not (answer.error and answer.arrays)


@fuzzed(500)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["out", "a", ""]),
            st.sampled_from(["float32", "bool", "object", "<f4", "int64", "float64"]),
            st.lists(st.sampled_from([0, 1, 2, 3, -1, 2**31, 2**32, 2**63, 2**64]), max_size=9),
        ).map(list),
        max_size=4,
    ),
    st.binary(max_size=64),
)
@example([["out", "float32", [2**32, 2**32]]], b"")
@example([["out", "float64", [2**63, 0]]], b"")
@example([["flag", "bool", [1]]], b"\2")
def test_arrays_are_exactly_their_bytes(description: list[list[object]], body: bytes) -> None:
    try:
        arrays = arrays_of(description, body)
    except WireError:
        return
    assert described(arrays) == (description, body)
