"""Attention between queries and keys that carry half of the scale each; the weights are shared with the graph."""

import math

import numpy as np

from tinyllm.autograd.tensor import from_op
from tinyllm.autograd.vjp import matmul_vjp, softmax_vjp
from tinyllm.num.stable import softmax


def _root(q, scale):
    """The square root of the scale."""
    if scale is None:
        return q.shape[-1] ** -0.25
    if scale <= 0 or math.isnan(scale) or math.isinf(scale):
        raise ValueError("scale")
    return math.sqrt(scale)


def sdpa_forward(q, k, v, mask=None, scale=None):
    ranks = q.ndim, k.ndim, v.ndim
    if len(set(ranks)) != 1 or ranks[0] < 2:
        raise ValueError("ranks")
    if q.shape[:-2] != k.shape[:-2] or k.shape[:-2] != v.shape[:-2]:
        raise ValueError("batches")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2] or not q.shape[-1]:
        raise ValueError("widths or lengths")
    root = _root(q, scale)
    scores = (q * root) @ (k * root).swapaxes(-1, -2)
    if mask is not None:
        mask = np.array(mask)
        if mask.dtype != bool:
            raise ValueError("mask")
        scores[~np.broadcast_to(mask, scores.shape)] = -np.inf
    p = softmax(scores, axis=-1)
    return p @ v, p


def sdpa_backward(q, k, v, p, dout, scale=None, dropout_mult=None):
    root = _root(q, scale)
    dp, dv = matmul_vjp(dout, p if dropout_mult is None else p * dropout_mult, v)
    ds = softmax_vjp(dp if dropout_mult is None else dp * dropout_mult, p)
    dq, dk = matmul_vjp(ds, q * root, (k * root).swapaxes(-1, -2))
    return dq * root, dk.swapaxes(-1, -2) * root, dv


def scaled_dot_product_attention(q, k, v, mask=None, dropout_p=0.0, scale=None, rng=None):
    if dropout_p != 0 and (not 0 < dropout_p <= 1 or rng is None):
        raise ValueError("dropout")
    out, p = sdpa_forward(q.data, k.data, v.data, mask, scale)
    mult = None
    if dropout_p != 0:
        kept = rng.uniforms(p.size).reshape(p.shape) >= dropout_p
        mult = kept.astype(p.dtype) / (1 - dropout_p if dropout_p < 1 else 1)
        out = (p * mult) @ v.data

    def vjp(g):
        return sdpa_backward(q.data, k.data, v.data, p, g, scale, mult)

    return from_op(out, (q, k, v), vjp), from_op(p, (), lambda g: ())
