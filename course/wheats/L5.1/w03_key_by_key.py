"""Attention that reads the keys one after another and keeps a running maximum and sum (Milakov and Gimelshein, 2018;
Dao et al., "FlashAttention", 2022); the sum of the softmax's gradient is taken from the output."""

import numpy as np

from tinyllm.autograd.tensor import Tensor, from_op


def _factor(q, scale):
    return q.shape[-1] ** -0.5 if scale is None else float(scale)


def sdpa_forward(q, k, v, mask=None, scale=None):
    if q.ndim < 2 or k.ndim < 2 or v.ndim < 2 or q.shape[-1] < 1:
        raise ValueError("q, k and v are matrices, or stacks of them")
    if q.shape[:-2] != k.shape[:-2] or q.shape[:-2] != v.shape[:-2]:
        raise ValueError("stacks of different sizes")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError("q and k share a width, k and v a length")
    if scale is not None and not (scale > 0 and np.isfinite(scale)):
        raise ValueError("the scale has to be a positive number")
    shape = (*q.shape[:-1], k.shape[-2])
    if mask is not None and np.asarray(mask).dtype != np.bool_:
        raise ValueError("the mask has to be bool")
    allowed = np.broadcast_to(np.True_ if mask is None else mask, shape)
    scores = np.empty(shape, dtype=q.dtype)
    top = np.full(q.shape[:-1], -np.inf, dtype=q.dtype)
    total = np.zeros(q.shape[:-1], dtype=q.dtype)
    out = np.zeros((*q.shape[:-1], v.shape[-1]), dtype=v.dtype)
    for j in range(shape[-1]):
        score = (q * k[..., j : j + 1, :]).sum(axis=-1) * _factor(q, scale)
        score = np.where(allowed[..., j], score, -np.inf).astype(q.dtype)
        higher = np.maximum(top, score)
        base = np.where(np.isneginf(higher), 0, higher).astype(q.dtype)
        shrink, power = np.exp(top - base), np.exp(score - base)
        total = total * shrink + power
        out = out * shrink[..., None] + power[..., None] * v[..., j : j + 1, :]
        scores[..., j], top = score, higher
    total = np.where(total == 0, 1, total).astype(q.dtype)[..., None]
    base = np.where(np.isneginf(top), 0, top).astype(q.dtype)[..., None]
    return out / total, np.exp(scores - base) / total


def sdpa_backward(q, k, v, p, dout, scale=None, dropout_mult=None):
    used = p if dropout_mult is None else p * dropout_mult
    mean = (dout * (used @ v)).sum(axis=-1, keepdims=True)  # the same as the sum over keys of p dP
    ds = (used * (dout @ np.swapaxes(v, -2, -1)) - p * mean) * _factor(q, scale)
    return ds @ k, np.swapaxes(ds, -2, -1) @ q, np.swapaxes(used, -2, -1) @ dout


def scaled_dot_product_attention(q, k, v, mask=None, dropout_p=0.0, scale=None, rng=None):
    if dropout_p < 0 or dropout_p > 1 or (dropout_p > 0 and rng is None):
        raise ValueError("a rate from 0 to 1, and an rng to draw with")
    out, p = sdpa_forward(q.data, k.data, v.data, mask, scale)
    factor = None
    if dropout_p > 0:
        draws = np.asarray(rng.uniforms(p.size)).reshape(p.shape)
        factor = (draws >= dropout_p).astype(p.dtype)
        factor /= 1 if dropout_p == 1 else 1 - dropout_p
        out = (p * factor) @ v.data
    saved = (q.data, k.data, v.data, p)
    return from_op(out, (q, k, v), lambda g: sdpa_backward(*saved, g, scale, factor), "sdpa"), Tensor(p, dtype=p.dtype)
