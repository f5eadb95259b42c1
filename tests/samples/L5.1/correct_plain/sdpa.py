"""Scaled dot-product attention, forward and backward."""

import numpy as np

from tinyllm.autograd.tensor import Tensor, from_op


def check_inputs(q, k, v, mask, scale):
    if q.ndim < 2 or k.ndim < 2 or v.ndim < 2:
        raise ValueError("q, k and v must have at least two dimensions")
    if q.shape[:-2] != k.shape[:-2] or q.shape[:-2] != v.shape[:-2]:
        raise ValueError("q, k and v must have the same leading dimensions")
    if q.shape[-1] != k.shape[-1]:
        raise ValueError("q and k must have the same width")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError("k and v must have the same length")
    if mask is not None:
        if mask.dtype != np.bool_:
            raise ValueError("the mask must be bool")
        np.broadcast_to(mask, (*q.shape[:-1], k.shape[-2]))
    if scale is not None and not (np.isfinite(scale) and scale > 0):
        raise ValueError("the scale must be finite and positive")


def get_scale(q, scale):
    return float(q.shape[-1] ** -0.5 if scale is None else scale)


def masked_softmax(scores, mask):
    if mask is not None:
        scores = np.where(mask, scores, -np.inf).astype(scores.dtype)
    largest = scores.max(axis=-1, keepdims=True)
    largest = np.where(np.isinf(largest), 0, largest)  # a row without keys
    e = np.exp(scores - largest)
    total = e.sum(axis=-1, keepdims=True)
    return (e / np.where(total == 0, 1, total)).astype(scores.dtype)


def sdpa_forward(q, k, v, mask=None, scale=None):
    check_inputs(q, k, v, mask, scale)
    scores = q @ np.swapaxes(k, -1, -2) * get_scale(q, scale)
    p = masked_softmax(scores, mask)
    return p @ v, p


def sdpa_backward(q, k, v, p, dout, scale=None, dropout_mult=None):
    if dropout_mult is None:
        dropout_mult = np.ones_like(p)
    dv = np.swapaxes(p * dropout_mult, -1, -2) @ dout
    dp = (dout @ np.swapaxes(v, -1, -2)) * dropout_mult
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    ds = ds * get_scale(q, scale)
    dq = ds @ k
    dk = np.swapaxes(ds, -1, -2) @ q
    return dq, dk, dv


def scaled_dot_product_attention(q, k, v, mask=None, dropout_p=0.0, scale=None, rng=None):
    if not 0 <= dropout_p <= 1:
        raise ValueError("dropout_p must be between 0 and 1")
    if dropout_p > 0 and rng is None:
        raise ValueError("dropout needs an rng")
    out, p = sdpa_forward(q.data, k.data, v.data, mask, scale)
    mult = None
    if dropout_p > 0:
        keep = rng.uniforms(p.size).reshape(p.shape) >= dropout_p
        mult = keep.astype(p.dtype)
        if dropout_p < 1:
            mult = mult / (1 - dropout_p)
        out = (p * mult) @ v.data

    def vjp(g):
        return sdpa_backward(q.data, k.data, v.data, p, g, scale, mult)

    return from_op(out, (q, k, v), vjp, "sdpa"), Tensor(p, dtype=p.dtype)
