"""Tests a student might write that pass on the reference of unit L5.1 and deny a freedom: each named after it."""

import numpy as np
import pytest

from tinyllm.autograd.tensor import Tensor
from tinyllm.num.stable import softmax
from tinyllm.xfmr import sdpa


def drawn(*shapes, dtype=np.float64):
    draw = np.random.default_rng(0)
    return [draw.standard_normal(shape).astype(dtype) for shape in shapes]


def counted(monkeypatch, name):
    calls = []
    original = getattr(sdpa, name)
    monkeypatch.setattr(sdpa, name, lambda *a, **k: (calls.append(1), original(*a, **k))[1])
    return calls


def test_inner_calls(monkeypatch):
    calls = counted(monkeypatch, "softmax")
    sdpa.sdpa_forward(*drawn((2, 3), (4, 3), (4, 5)))
    assert len(calls) == 1


def test_functions_apart(monkeypatch):
    calls = counted(monkeypatch, "sdpa_backward")
    q, k, v = (Tensor(array, requires_grad=True) for array in drawn((2, 3), (4, 3), (4, 5)))
    sdpa.scaled_dot_product_attention(q, k, v)[0].backward(np.ones((2, 5)))
    assert len(calls) == 1


def test_rounding():
    q, k, v = drawn((3, 7, 12), (3, 9, 12), (3, 9, 5), dtype=np.float32)
    p = softmax(q @ k.swapaxes(-1, -2) * np.float32(12**-0.5))
    out, weights = sdpa.sdpa_forward(q, k, v)
    assert np.array_equal(weights, p)
    assert np.array_equal(out, p @ v)


def test_weights_memory():
    q, k, v = (Tensor(array, requires_grad=True, dtype=np.float64) for array in drawn((2, 3), (4, 3), (4, 5)))
    out, weights = sdpa.scaled_dot_product_attention(q, k, v)
    kept = weights.data.copy()
    weights.data[...] = 0
    out.backward(np.ones((2, 5)))
    assert np.allclose(v.grad, kept.T @ np.ones((2, 5)))


def test_memory_layout():
    assert sdpa.sdpa_forward(*drawn((2, 3), (4, 3), (4, 5)))[0].flags["C_CONTIGUOUS"]


def test_backward_checks():
    with pytest.raises(ValueError):
        sdpa.sdpa_backward(*drawn((2, 3), (4, 3), (4, 5), (2, 4), (2, 5)), scale=-1.0)


def test_width_zero():
    with pytest.raises(ValueError):
        sdpa.sdpa_forward(*drawn((2, 0), (4, 0), (4, 5)))


def test_error_class():
    try:
        sdpa.sdpa_forward(*drawn((2, 3), (4, 3), (4, 5)), scale=-1.0)
    except Exception as error:
        assert type(error) is ValueError


def test_error_texts():
    with pytest.raises(ValueError, match="scale must be finite and positive"):
        sdpa.sdpa_forward(*drawn((2, 3), (4, 3), (4, 5)), scale=-1.0)


def test_private_names():
    assert sdpa._checked_scale(None, 4) == 0.5
