"""Frames between the host and the supervisor inside the sandbox: values go in, bytes come out, and back, strictly.

The protocol, over the supervisor's stdin and stdout:

    frame      = header length (4 bytes, big-endian), body length (4 bytes), header (JSON object), body (raw bytes)

    host -> supervisor                                  supervisor -> host
    open    {nonce, uid_index}                          ready     {nonce, sources, python, numpy, pytest, hypothesis}
    preload {nonce}            body: a package          preloaded {nonce, error}
    prepare {nonce}            body: suites             (nothing)
    run     {nonce, seq, suite, limits,                 result    {nonce, seq, ...}  body: record, stdout, stderr
             deadline_seconds,
             package_bytes}    body: a package, and another version

`suite` is the number of the prepared suite that a run is of, or -1.
Another version is a package too, of the same modules, or nothing; the supervisor keeps it until the run asks for it.
A package is a frame again, which the supervisor passes on unread: what a child is to run, for the child alone.
A run's record (lines of JSON, or of a drive frames) the supervisor does not read either; `decode.py` and `answers.py`
do, on the host.
End of file on stdin ends the supervisor and everything in its container.

Both sides use this module, so it needs nothing but the standard library. Whatever is unexpected raises WireError.
"""

import hashlib
import json
import math
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HEADER_BYTES = 1 << 20
BODY_BYTES = 64 << 20
INTEGER_DIGITS = 18
DEPTH = 8
PREFIX = struct.Struct(">II")

Header = dict[str, Any]


class WireError(Exception):
    """Bytes that are no frame, or a header that is not what this point of the protocol expects."""


def encode(header: Mapping[str, object], body: bytes = b"") -> bytes:
    """The frame of a header and a body; raises WireError if either is over its cap."""
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > HEADER_BYTES or len(body) > BODY_BYTES:
        raise WireError(f"frame too large: header {len(text)} bytes, body {len(body)} bytes")
    return PREFIX.pack(len(text), len(body)) + text + body


def frame_length(data: bytes | bytearray) -> int | None:
    """Length of the frame that starts `data`; None while its prefix is incomplete."""
    if len(data) < PREFIX.size:
        return None
    header_bytes, body_bytes = PREFIX.unpack_from(data)
    if header_bytes > HEADER_BYTES or body_bytes > BODY_BYTES:
        raise WireError(f"frame too large: header {header_bytes} bytes, body {body_bytes} bytes")
    return int(PREFIX.size + header_bytes + body_bytes)


def decode(frame: bytes) -> tuple[Header, bytes]:
    """Header and body of exactly one frame."""
    if frame_length(frame) != len(frame):
        raise WireError("frame has another length than it says")
    header_bytes, _ = PREFIX.unpack_from(frame)
    header = parse(frame[PREFIX.size : PREFIX.size + header_bytes])
    if not isinstance(header, dict):
        raise WireError("header is not an object")
    return header, frame[PREFIX.size + header_bytes :]


class Frames:
    """Collects received bytes and gives back whole frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[Header, bytes]]:
        self._buffer += data
        frames = []
        while (length := frame_length(self._buffer)) is not None and length <= len(self._buffer):
            frames.append(decode(bytes(self._buffer[:length])))
            del self._buffer[:length]
        return frames


def parse(text: bytes) -> Any:
    """JSON without what JSON leaves open: no NaN, no infinities, no duplicate keys, no lone surrogates, no integer
    of more than INTEGER_DIGITS digits, nothing nested deeper than DEPTH."""
    try:
        value = _DECODER.decode(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise WireError(f"not the JSON we speak: {type(error).__name__}") from error
    if text.count(b"{") + text.count(b"[") > DEPTH:
        _refuse_depth(value)
    if _SURROGATE.search(text):  # UTF-8 itself holds none
        _refuse_lone_surrogates(value)
    return value


def expect(header: Header, **types: type) -> Header:
    """The header, if it has exactly these keys with values of exactly these types (an int passes for a float)."""
    if header.keys() != types.keys():
        raise WireError(f"expected fields {sorted(types)}, got {sorted(header)[:20]}")
    for key, kind in types.items():
        value = header[key]
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise WireError(f"field {key} is {type(value).__name__}, not {kind.__name__}")
    return header


def source_digest(package: Path) -> str:
    """Digest of the code that both sides must share: this module, `arrays.py` and `inside/`."""
    digest = hashlib.sha256()
    for path in sorted([package / "arrays.py", package / "wire.py", *(package / "inside").rglob("*.py")]):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(data)}\n".encode() + data)
    return digest.hexdigest()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("duplicate key")
    return result


def _integer(digits: str) -> int:
    if len(digits) > INTEGER_DIGITS:
        raise ValueError("integer too long")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("number out of range")
    return value


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise WireError("lone surrogate") from error


def _refuse_depth(value: Any) -> None:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEPTH):
        parts = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
        level = [part for part in parts if isinstance(part, dict | list)]
    if level:
        raise WireError("nested too deeply")
