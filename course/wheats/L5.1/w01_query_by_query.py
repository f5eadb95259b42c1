"""Attention one query at a time, and its gradient through the whole Jacobian of each softmax."""

import math

import numpy as np

from tinyllm.autograd.tensor import Tensor, from_op


def sdpa_forward(q, k, v, mask=None, scale=None):
    factor = _demand(q, k, v, mask, scale)
    allowed = np.broadcast_to(True if mask is None else mask, (*q.shape[:-1], k.shape[-2]))
    p = np.zeros(allowed.shape, dtype=q.dtype)
    out = np.zeros((*q.shape[:-1], v.shape[-1]), dtype=v.dtype)
    for place in np.ndindex(q.shape[:-1]):
        keys = np.flatnonzero(allowed[place])
        if len(keys) == 0:
            continue  # nothing to read: both rows stay zeros
        scores = (k[place[:-1]][keys] @ q[place]) * factor
        powers = np.exp(scores - np.max(scores))
        p[place][keys] = powers / powers.sum()
        out[place] = p[place] @ v[place[:-1]]
    return out, p


def sdpa_backward(q, k, v, p, dout, scale=None, dropout_mult=None):
    factor = _width_factor(q) if scale is None else float(scale)
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for place in np.ndindex(q.shape[:-1]):
        row = place[:-1]
        kept = 1 if dropout_mult is None else dropout_mult[place]
        dv[row] += np.outer(p[place] * kept, dout[place])
        jacobian = np.diag(p[place]) - np.outer(p[place], p[place])
        slope = (jacobian @ ((v[row] @ dout[place]) * kept)) * factor
        dq[place] = slope @ k[row]
        dk[row] += np.outer(slope, q[place])
    return dq, dk, dv


def scaled_dot_product_attention(q, k, v, mask=None, dropout_p=0.0, scale=None, rng=None):
    if dropout_p < 0 or dropout_p > 1:
        raise ValueError("a rate lies between 0 and 1")
    out, p = sdpa_forward(q.data, k.data, v.data, mask, scale)
    kept = None
    if dropout_p:
        if rng is None:
            raise ValueError("dropout draws from an rng")
        kept = np.zeros(p.shape, dtype=p.dtype)
        kept[rng.uniforms(p.size).reshape(p.shape) >= dropout_p] = 1 / (1 - dropout_p) if dropout_p < 1 else 0
        out = (p * kept) @ v.data

    def back(g):
        return sdpa_backward(q.data, k.data, v.data, p, g, scale, kept)

    return from_op(out, [q, k, v], back, "attention"), Tensor(p, dtype=p.dtype)


def _width_factor(q):
    return 1 / math.sqrt(q.shape[-1])


def _demand(q, k, v, mask, scale):
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] == 0:
        raise ValueError("arrays of two axes or more, of a width")
    if q.shape[:-2] != k.shape[:-2] or k.shape[:-1] != v.shape[:-1] or q.shape[-1] != k.shape[-1]:
        raise ValueError("shapes disagree")
    if mask is not None:
        if np.asarray(mask).dtype != bool:
            raise ValueError("a mask is bool")
        np.broadcast_to(mask, (*q.shape[:-1], k.shape[-2]))
    if scale is None:
        return _width_factor(q)
    if not 0 < scale < math.inf:
        raise ValueError("a scale is positive and finite")
    return float(scale)
