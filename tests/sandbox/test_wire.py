"""Frames and the JSON in them: what is not exactly as agreed is refused."""

import json

import pytest

from sandbox.wire import BODY_BYTES, PREFIX, Frames, WireError, decode, encode, expect, parse


def test_a_frame_survives_the_way_in_any_pieces() -> None:
    data = encode({"frame": "run", "seq": 1}, b"body\0\xff") + encode({"frame": "end"})
    for size in (1, 3, len(data)):
        frames = Frames()
        found = [frame for at in range(0, len(data), size) for frame in frames.feed(data[at : at + size])]
        assert found == [({"frame": "run", "seq": 1}, b"body\0\xff"), ({"frame": "end"}, b"")]


def test_a_frame_that_says_it_is_huge_is_refused_before_it_comes() -> None:
    with pytest.raises(WireError, match="too large"):
        Frames().feed(PREFIX.pack(10, BODY_BYTES + 1))
    with pytest.raises(WireError, match="too large"):
        Frames().feed(PREFIX.pack(2**32 - 1, 0))


def test_a_frame_with_bytes_to_spare_is_refused() -> None:
    with pytest.raises(WireError):
        decode(encode({}) + b"x")


@pytest.mark.parametrize(
    "text",
    [
        b"NaN",
        b"[Infinity]",
        b"1e999",
        b'{"a": 1, "a": 2}',
        b'"\\ud800"',
        b'{"a": [{"\\uDFff": 1}]}',
        b"\xff",
        b"",
        b"9" * 5000,
        b"[" * 100_000,
        b"[" * 9 + b"]" * 9,
        b'["]]]]", ' + b'{"a":[' * 4 + b"]}" * 4 + b"]",
        b"{} {}",
    ],
)
def test_what_is_not_our_json_is_refused(text: bytes) -> None:
    with pytest.raises(WireError):
        parse(text)


@pytest.mark.parametrize("value", [[[[[[[[["[[[["]]]]]]]], [{"a": [i]} for i in range(20)], {"\U0001f600": "é"}])
def test_what_nests_as_deep_as_it_may_and_any_text_is_our_json(value: object) -> None:
    assert parse(json.dumps(value).encode()) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode()) == value


def test_fields_must_be_these_and_of_these_types() -> None:
    assert expect({"a": 1, "b": 2}, a=int, b=float) == {"a": 1, "b": 2}
    for header in ({"a": True}, {"a": 1.0}, {"a": 1, "b": 2}, {}, {"a": None}):
        with pytest.raises(WireError):
            expect(header, a=int)
