"""sdpa_backward against central differences of the oracle, and against its written-out Jacobian."""

import numpy as np
import pytest
from sdpa_oracle import attention, close, drawn, gradients

from tinyllm.num.gradcheck import gradcheck
from tinyllm.xfmr.sdpa import sdpa_backward

MASK = np.array([[True, True, False, True], [True, False, True, True], [False, False, False, False]])
MULT = np.array([[2.0, 0, 2, 2], [0, 0, 2, 0], [2, 2, 0, 0]])


@pytest.mark.parametrize("scale", [None, 0.4])
@pytest.mark.parametrize("mult", [None, MULT])
def test_central_differences(scale, mult):
    q, k, v, dout = drawn((3, 2), (4, 2), (4, 5), (3, 5))
    weights = attention(q, k, v, MASK, scale)[1]

    def f(*arrays):
        return float((attention(*arrays, MASK, scale, 1.0 if mult is None else mult)[0] * dout).sum())

    assert gradcheck(f, [q, k, v], list(sdpa_backward(q, k, v, weights, dout, scale, mult))).ok


@pytest.mark.parametrize("mult", [None, MULT])
def test_stacks(mult):
    q, k, v, dout = drawn((2, 3, 4), (2, 4, 4), (2, 4, 4), (2, 3, 4))
    weights = attention(q, k, v, MASK)[1]
    found = sdpa_backward(
        q, k, v, weights, dout, dropout_mult=None if mult is None else np.stack([mult, mult[:, ::-1]])
    )
    expected = gradients(q, k, v, weights, dout, mult=1.0 if mult is None else np.stack([mult, mult[:, ::-1]]))
    for gradient, right in zip(found, expected, strict=True):
        close(gradient, right)


def test_as_many_queries_as_keys():
    q, k, v, dout = drawn((3, 3), (3, 3), (3, 3), (3, 3))
    weights = attention(q, k, v)[1]
    for gradient, right in zip(sdpa_backward(q, k, v, weights, dout), gradients(q, k, v, weights, dout), strict=True):
        close(gradient, right)


def test_dtype():
    q, k, v, p, dout = (array.astype(np.float32) for array in drawn((3, 2), (4, 2), (4, 5), (3, 4), (3, 5)))
    for scale in (None, np.float64(0.5)):
        assert {gradient.dtype for gradient in sdpa_backward(q, k, v, p, dout, scale)} == {np.dtype(np.float32)}


def test_arguments_stay():
    given = [*drawn((3, 2), (4, 2), (4, 5), (3, 4), (3, 5)), 0.5, MULT.copy()]
    kept = [np.copy(array) for array in given]
    sdpa_backward(*given)
    for array, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(array, before)
