"""sdpa_forward against the oracle, numbers by hand, and what it refuses."""

import numpy as np
import pytest
from sdpa_oracle import attention, close, drawn

from tinyllm.xfmr.sdpa import sdpa_forward


def check(q, k, v, mask=None, scale=None):
    out, weights = sdpa_forward(q, k, v, mask, scale)
    expected, expected_weights = attention(q, k, v, mask, scale)
    close(weights, expected_weights)
    close(out, expected)


def test_two_keys_by_hand():
    out, weights = sdpa_forward(np.array([[2.0, 0, 0, 0]]), np.array([[1.0, 5, 0, 0], [0, 0, 1, 0]]), np.eye(2))
    close(weights, np.array([[np.e, 1]]) / (np.e + 1))
    close(out, weights)


@pytest.mark.parametrize("leading", [(), (3,), (2, 3)])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_formula(leading, scale):
    check(*drawn((*leading, 2, 3), (*leading, 5, 3), (*leading, 5, 4)), scale=scale)


def test_masks():
    q, k, v = drawn((2, 3, 4, 2), (2, 3, 4, 2), (2, 3, 4, 5))
    per_query = np.arange(2 * 3 * 4 * 4).reshape(2, 3, 4, 4) % 3 != 1
    for mask in (np.tril(np.ones((4, 4), dtype=bool)), per_query, per_query[:, :1, :1], per_query[0, 0, 0]):
        check(q, k, v, mask)


def test_query_without_keys():
    mask = np.array([[True, False, True], [False, False, False]])
    check(*drawn((2, 4), (3, 4), (3, 2)), mask)


def test_large_scores():
    out, weights = sdpa_forward(np.array([[1.0]]), np.array([[1000.0], [999.0]]), np.array([[1.0], [0.0]]))
    close(weights, np.array([[np.e, 1]]) / (np.e + 1))
    close(out, weights[:, :1])


@pytest.mark.parametrize("scale", [None, 0.5, np.float64(0.5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype(dtype, scale):
    q, k, v = (array.astype(dtype) for array in drawn((2, 3), (4, 3), (4, 2)))
    assert [array.dtype for array in sdpa_forward(q, k, v, scale=scale)] == [dtype, dtype]


def test_arguments_stay():
    given = [*drawn((2, 4), (3, 4), (3, 2)), np.array([[True, False, True], [False, False, False]])]
    kept = [array.copy() for array in given]
    sdpa_forward(*given)
    for array, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(array, before)


SHAPES = [
    ((4,), (5, 4), (5, 6)),
    ((3, 4), (4,), (5, 6)),
    ((3, 4), (5, 4), (5,)),
    ((3, 4), (5, 3), (5, 6)),
    ((3, 4), (5, 4), (4, 6)),
    ((2, 3, 4), (1, 5, 4), (2, 5, 6)),
    ((1, 3, 4), (2, 5, 4), (2, 5, 6)),
    ((2, 3, 4), (2, 5, 4), (5, 6)),
    ((2, 3, 4), (2, 5, 4), (1, 5, 6)),
]


@pytest.mark.parametrize("shapes", SHAPES)
def test_shapes_are_checked(shapes):
    with pytest.raises(ValueError):
        sdpa_forward(*(np.ones(shape) for shape in shapes))


@pytest.mark.parametrize("shape", [(5, 3), (3, 3, 5), (7, 2, 3, 5)])
def test_shapes_of_masks_are_checked(shape):
    with pytest.raises(ValueError):
        sdpa_forward(np.ones((2, 3, 4)), np.ones((2, 5, 4)), np.ones((2, 5, 6)), np.ones(shape, dtype=bool))


@pytest.mark.parametrize("dtype", [float, int])
def test_masks_have_to_be_bool(dtype):
    with pytest.raises(ValueError):
        sdpa_forward(np.ones((3, 4)), np.ones((5, 4)), np.ones((5, 6)), np.ones((3, 5), dtype=dtype))


@pytest.mark.parametrize("scale", [0, -1, np.inf, np.nan])
def test_scales_are_checked(scale):
    with pytest.raises(ValueError):
        sdpa_forward(np.ones((3, 4)), np.ones((5, 4)), np.ones((5, 6)), scale=scale)
