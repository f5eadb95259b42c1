"""Attention with loops over the batch and the queries; the node is written on its own."""

import itertools
import math

import numpy as np

from tinyllm.autograd.tensor import Tensor, from_op
from tinyllm.num.stable import softmax


def rows(x):
    return itertools.product(*(range(n) for n in x.shape[:-2]))


def factor(q, scale):
    if scale is None:
        return 1 / math.sqrt(q.shape[-1])
    if scale <= 0 or not math.isfinite(scale):
        raise ValueError(f"scale is {scale}")
    return float(scale)


def sdpa_forward(q, k, v, mask=None, scale=None):
    if not (q.ndim == k.ndim == v.ndim >= 2):
        raise ValueError("number of axes")
    if not (q.shape[:-2] == k.shape[:-2] == v.shape[:-2] and q.shape[-1] == k.shape[-1] and k.shape[-2] == v.shape[-2]):
        raise ValueError("shapes do not fit")
    f = factor(q, scale)
    p = np.zeros((*q.shape[:-1], k.shape[-2]), dtype=q.dtype)
    if mask is not None and np.asarray(mask).dtype != bool:
        raise ValueError("mask is not bool")
    allowed = np.broadcast_to(True if mask is None else mask, p.shape)
    out = np.zeros((*q.shape[:-1], v.shape[-1]), dtype=q.dtype)
    for b in rows(q):
        for i in range(q.shape[-2]):
            seen = allowed[b][i]
            if seen.any():
                p[b][i][seen] = softmax(f * (k[b][seen] @ q[b][i]))
        out[b] = p[b] @ v[b]
    return out, p


def sdpa_backward(q, k, v, p, dout, scale=None, dropout_mult=None):
    f = factor(q, scale)
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for b in rows(q):
        m = np.ones_like(p[b]) if dropout_mult is None else dropout_mult[b]
        dv[b] = (p[b] * m).T @ dout[b]
        dp = (dout[b] @ v[b].T) * m
        ds = f * p[b] * (dp - (p[b] * dp).sum(axis=1)[:, None])
        dq[b], dk[b] = ds @ k[b], ds.T @ q[b]
    return dq, dk, dv


def scaled_dot_product_attention(q, k, v, mask=None, dropout_p=0.0, scale=None, rng=None):
    if dropout_p < 0 or dropout_p > 1 or (dropout_p > 0 and rng is None):
        raise ValueError("dropout")
    out, p = sdpa_forward(q.data, k.data, v.data, mask, scale)
    m = np.ones_like(p)
    if dropout_p > 0:
        m[rng.uniforms(p.size).reshape(p.shape) < dropout_p] = 0
        m = m / p.dtype.type(1 - dropout_p if dropout_p < 1 else 1)
        out = (p * m) @ v.data
    node = from_op(out, (q, k, v), lambda g: sdpa_backward(q.data, k.data, v.data, p, g, scale, m))
    return node, Tensor(p, dtype=p.dtype)
