"""A module's own state_dict and two inputs go in; attention written again in float64 numpy comes out."""

import numpy as np

from tinyllm.autograd.tensor import Tensor
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.mha import MultiHeadAttention


def make(d_model, n_heads, seed=1, **options):
    """A module in float64 whose biases are not zero."""
    mha = MultiHeadAttention(d_model, n_heads, rng=PCG32(seed), **options)
    draw = np.random.default_rng(seed)
    for name, parameter in mha.named_parameters():
        parameter.data = parameter.data.astype(np.float64)
        if name.endswith("bias"):
            parameter.data[...] = draw.standard_normal(parameter.shape)
    return mha


def inputs(*shapes, seed=2):
    draw = np.random.default_rng(seed)
    return [draw.standard_normal(shape) for shape in shapes]


def tensor(array, requires_grad=False):
    return Tensor(array, requires_grad=requires_grad, dtype=np.float64)


def split(x, n_heads):
    """[B, T, d] -> [B, H, T, dh]."""
    B, T, d = x.shape
    return x.reshape(B, T, n_heads, d // n_heads).transpose(0, 2, 1, 3)


def merge(x):
    """[B, H, T, dh] -> [B, T, d]."""
    B, H, T, dh = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, H * dh)


def softmax(scores, allowed):
    """Weights over the allowed keys; zeros for a query that has none."""
    scores = np.where(allowed, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    powers = np.where(allowed, np.exp(scores - np.where(np.isfinite(top), top, 0.0)), 0.0)
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total > 0, total, 1.0)


def attention(mha, x_q, x_kv, mask=None, multiplier=1.0):
    """The output and weights of `mha`; mask broadcasts to [B, H, Tq, Tk], `multiplier` is dropout's."""
    state = mha.state_dict()

    def project(name, x):
        return x @ state[f"{name}.weight"].T + state.get(f"{name}.bias", 0.0)

    q, k, v = (
        split(project(name, x), mha.n_heads) for name, x in (("q_proj", x_q), ("k_proj", x_kv), ("v_proj", x_kv))
    )
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(mha.d_model // mha.n_heads)
    weights = softmax(scores, np.broadcast_to(True if mask is None else mask, scores.shape))
    return project("out_proj", merge((weights * multiplier) @ v)), weights


def check(mha, x_q, x_kv, mask=None, oracle_mask=None):
    """attend and forward agree with the oracle; `oracle_mask` is `mask` with its head axis put in."""
    out, weights = mha.attend(tensor(x_q), tensor(x_kv), mask)
    expected, expected_weights = attention(mha, x_q, x_kv, mask if oracle_mask is None else oracle_mask)
    np.testing.assert_allclose(weights.data, expected_weights, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(out.data, expected, rtol=1e-9, atol=1e-11)
    again = mha.forward(tensor(x_q), tensor(x_kv), mask)
    np.testing.assert_allclose(again.data, expected, rtol=1e-9, atol=1e-11)
