"""Named arrays come in; their description in JSON and one run of raw bytes leave, and back, strictly.

    description = [[name, dtype, shape], ...]        body = the arrays' bytes one after the other, in this order

Bytes are little-endian and in C order. Both sides of the border use this module, so it needs nothing but the standard
library: an `Array` is bytes that say what they are, and becomes numpy's only where it is computed with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from sandbox.wire import WireError

ITEM_BYTES = {"bool": 1, "int64": 8, "float16": 2, "float32": 4, "float64": 8}
"""the dtypes there are, by numpy's names"""
MOST_ARRAYS = 256
MOST_AXES = 8
MOST_BYTES = 64 << 20
NAME_CHARACTERS = 100


@dataclass(frozen=True)
class Array:
    """An array as bytes. Raises ValueError unless dtype, shape and number of bytes agree."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def __post_init__(self) -> None:
        if len(self.data) != size_of(self.dtype, self.shape):
            raise ValueError(f"{len(self.data)} bytes for {self.dtype} {list(self.shape)}")
        if self.dtype == "bool" and self.data.translate(None, b"\0\1"):
            raise ValueError("truth values other than 0 and 1")


Arrays = Mapping[str, Array]


@lru_cache(maxsize=4096)  # results of one case have the shapes of those of another
def size_of(dtype: str, shape: tuple[int, ...]) -> int:
    """Bytes of such an array; ValueError if there can be none. Python's integers do not wrap."""
    if dtype not in ITEM_BYTES or len(shape) > MOST_AXES or any(n < 0 for n in shape):
        raise ValueError(f"no array is {dtype[:40]} of {len(shape)} axes {list(shape[:MOST_AXES])}")
    if prod(max(n, 1) for n in shape) * ITEM_BYTES[dtype] > MOST_BYTES:  # an empty one has large axes all the same
        raise ValueError("an array too large")
    return prod(shape) * ITEM_BYTES[dtype]


def described(arrays: Arrays) -> tuple[list[list[object]], bytes]:
    """Description and body of named arrays."""
    description: list[list[object]] = [[name, array.dtype, list(array.shape)] for name, array in arrays.items()]
    return description, b"".join(array.data for array in arrays.values())


def arrays_of(description: object, body: bytes) -> dict[str, Array]:
    """The arrays, if description and body are exactly that; WireError otherwise."""
    if not isinstance(description, list) or len(description) > MOST_ARRAYS:
        raise WireError("no description of arrays")
    found: dict[str, Array] = {}
    at = 0
    for entry in description:
        name, dtype, shape = _entry(entry)
        if name in found:
            raise WireError("two arrays of one name")
        try:
            size = size_of(dtype, shape)
            found[name] = Array(dtype, shape, body[at : at + size])
        except ValueError as error:
            raise WireError(str(error)) from error
        at += size
    if at != len(body):
        raise WireError("bytes that belong to no array")
    return found


def _entry(entry: object) -> tuple[str, str, tuple[int, ...]]:
    if not isinstance(entry, list) or len(entry) != 3:
        raise WireError("no description of an array")
    name, dtype, shape = entry
    if not isinstance(name, str) or len(name) > NAME_CHARACTERS or not isinstance(dtype, str):
        raise WireError("an array's name or dtype that is none")
    if not isinstance(shape, list) or len(shape) > MOST_AXES or any(type(n) is not int for n in shape):
        raise WireError("an array's shape that is none")
    return name, dtype, tuple(shape)
