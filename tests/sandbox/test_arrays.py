"""Arrays as bytes: what is described comes back, and nothing else is read as arrays."""

import numpy as np
import pytest

from sandbox.arrays import ITEM_BYTES, Array, arrays_of, described
from sandbox.wire import WireError

PAIR = {"x": Array("float32", (2, 1), b"\0" * 8), "flag": Array("bool", (), b"\1")}


def test_what_was_described_comes_back() -> None:
    assert arrays_of(*described(PAIR)) == PAIR


def test_dtypes_have_numpy_s_names_and_sizes() -> None:
    assert {name: np.dtype(name).itemsize for name in ITEM_BYTES} == ITEM_BYTES


def test_empty_arrays_are_arrays() -> None:
    assert arrays_of([["x", "float64", [0, 3]]], b"")["x"].shape == (0, 3)


@pytest.mark.parametrize(
    "description",
    [
        None,
        {"x": ["bool", [1]]},
        ["x"],
        [["x", "bool"]],
        [["x", "bool", [1], 1]],
        [[1, "bool", [1]]],
        [["x" * 1000, "bool", [1]]],
        [["x", "object", [1]]],
        [["x", ">f8", [1]]],
        [["x", "bool", 1]],
        [["x", "bool", ["1"]]],
        [["x", "bool", [True]]],
        [["x", "bool", [1.0]]],
        [["x", "bool", [-1]]],
        [["x", "bool", [-1, -1]]],
        [["x", "bool", [1] * 9]],
        [["x", "bool", [2]]],
        [["x", "bool", []], ["x", "bool", []]],
        [["x", "bool", [2**32, 2**32]]],  # their product is 0 in 64 bits
        [["x", "float64", [2**61]]],
        [["x", "bool", [0, 2**62]]],
        [["x", "bool", [0, 2**20, 2**20, 2**20]]],  # empty, and yet more than numpy can count
        [[str(number), "bool", [0]] for number in range(1000)],
        [],
    ],
)
def test_what_describes_no_arrays_is_refused(description: object) -> None:
    with pytest.raises(WireError):
        arrays_of(description, b"\1")


def test_a_truth_value_is_0_or_1() -> None:
    with pytest.raises(WireError):
        arrays_of([["x", "bool", [1]]], b"\2")


def test_an_array_holds_as_many_bytes_as_it_says() -> None:
    with pytest.raises(ValueError):
        Array("float32", (3,), b"\0" * 8)
