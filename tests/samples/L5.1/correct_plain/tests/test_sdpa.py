"""My tests: a float64 oracle for outputs and gradients, dropout by hand, and everything that must be refused."""

import numpy as np
import pytest

from tinyllm.autograd.tensor import Tensor
from tinyllm.num.gradcheck import gradcheck
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.sdpa import scaled_dot_product_attention, sdpa_backward, sdpa_forward

rng = np.random.default_rng(0)
Q, K, V = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 6))
G = rng.normal(size=(2, 3, 6))
MASK = np.array([[1, 1, 0, 1, 1], [0, 1, 1, 0, 1], [0, 0, 0, 0, 0]], dtype=bool)
MULT = np.round(rng.uniform(0, 2, size=(2, 3, 5)), 1)


def oracle(q, k, v, mask=None, scale=None, mult=1):
    s = np.einsum("bqd,bkd->bqk", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    allowed = np.broadcast_to(True if mask is None else mask, s.shape)
    e = np.where(allowed, np.exp(np.where(allowed, s - s.max(axis=-1, keepdims=True), 0)), 0)
    z = e.sum(axis=-1, keepdims=True)
    p = e / np.where(z == 0, 1, z)
    return np.einsum("bqk,bkd->bqd", p * mult, v), p


def tensors(*arrays):
    return [Tensor(a, requires_grad=True, dtype=a.dtype) for a in arrays]


CASES = [(None, None), (MASK, None), (None, 0.3), (np.stack([MASK, MASK[:, ::-1]]), 1.7)]


@pytest.mark.parametrize("mask, scale", CASES)
def test_forward(mask, scale):
    for found, expected in zip(sdpa_forward(Q, K, V, mask, scale), oracle(Q, K, V, mask, scale), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mask, scale", CASES)
@pytest.mark.parametrize("mult", [None, MULT])
def test_backward(mask, scale, mult):
    p = oracle(Q, K, V, mask, scale)[1]

    def f(q, k, v):
        return float((oracle(q, k, v, mask, scale, 1 if mult is None else mult)[0] * G).sum())

    kept = p.copy()
    assert gradcheck(f, [Q, K, V], list(sdpa_backward(Q, K, V, p, G, scale, mult))).ok
    assert (p == kept).all()


@pytest.mark.parametrize("rate", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("mask, scale", CASES[1:3])
def test_node(mask, scale, rate):
    stream, mine = PCG32(4), PCG32(4)
    q, k, v = tensors(Q, K, V)
    out, weights = scaled_dot_product_attention(q, k, v, mask, rate, scale, stream)
    mult = np.ones((2, 3, 5))
    if rate > 0:
        mult = np.where(mine.uniforms(30).reshape(2, 3, 5) >= rate, 1 / (1 - rate) if rate < 1 else 0, 0)
    assert stream.next_u32() == mine.next_u32()
    expected, p = oracle(Q, K, V, mask, scale, mult)
    np.testing.assert_allclose(out.data, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weights.data, p, rtol=1e-9, atol=1e-12)
    assert out.requires_grad and not weights.requires_grad
    out.backward(G)

    def f(q, k, v):
        return float((oracle(q, k, v, mask, scale, mult)[0] * G).sum())

    assert gradcheck(f, [Q, K, V], [q.grad, k.grad, v.grad]).ok


def test_inputs_stay():
    given = [Q.copy(), K.copy(), V.copy()]
    sdpa_forward(*given, MASK)
    sdpa_backward(*given, MULT, G)
    assert all((a == b).all() for a, b in zip(given, (Q, K, V), strict=True))


def test_big_scores():
    out, p = sdpa_forward(Q * 1e5, K, V)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(p.sum(axis=-1), 1)


@pytest.mark.parametrize("scale", [None, np.float64(0.5)])
def test_float32(scale):
    q, k, v = (a.astype(np.float32) for a in (Q, K, V))
    assert {a.dtype for a in sdpa_forward(q, k, v, scale=scale)} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    "shapes",
    [
        ((4,), (5, 4), (5, 6)),
        ((3, 4), (5, 3), (5, 6)),
        ((3, 4), (5, 4), (4, 6)),
        ((2, 3, 4), (1, 5, 4), (2, 5, 6)),
        ((2, 3, 4), (2, 5, 4), (5, 6)),
    ],
)
def test_bad_shapes(shapes):
    with pytest.raises(ValueError):
        sdpa_forward(*(np.ones(shape) for shape in shapes))


@pytest.mark.parametrize(
    "options",
    [
        {"mask": MASK.astype(float)},
        {"mask": MASK.astype(int)},
        {"mask": MASK.T},
        {"mask": np.ones((4, 2, 3, 5), dtype=bool)},
        {"scale": 0.0},
        {"scale": -1.0},
        {"scale": np.inf},
        {"scale": np.nan},
        {"dropout_p": -0.1, "rng": PCG32(0)},
        {"dropout_p": 1.1, "rng": PCG32(0)},
        {"dropout_p": 0.5},
    ],
)
def test_bad_options(options):
    with pytest.raises(ValueError):
        scaled_dot_product_attention(*tensors(Q, K, V), **options)
