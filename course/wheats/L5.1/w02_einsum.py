"""Attention in einsums, from the logarithm of the weights; the output is a view of its transpose."""

import math

import numpy as np

from tinyllm.autograd.tensor import Tensor, from_op
from tinyllm.num.stable import logsumexp


def _checked(q, k, v, mask, scale):
    """The scale as a number, and the mask as an array of the weights' shape or None."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim < 2:
            raise ValueError(f"{name} has {x.ndim} axes")
    *lead, Tq, d = q.shape
    *k_lead, Tk, k_width = k.shape
    *v_lead, v_length, _ = v.shape
    if not (lead == k_lead == v_lead and k_width == d and v_length == Tk and d > 0):
        raise ValueError(f"q {q.shape}, k {k.shape} and v {v.shape} do not fit together")
    if scale is not None and (not np.isfinite(scale) or scale <= 0):
        raise ValueError(f"scale {scale}")
    if mask is not None:
        mask = np.asarray(mask)
        if mask.dtype.kind != "b":
            raise ValueError(f"mask of {mask.dtype}")
        mask = np.broadcast_to(mask, (*lead, Tq, Tk))
    return (d**-0.5 if scale is None else float(scale)), mask


def sdpa_forward(q, k, v, mask=None, scale=None):
    factor, allowed = _checked(q, k, v, mask, scale)
    scores = np.einsum("...id,...jd->...ij", q, k) * factor
    if allowed is not None:
        scores = np.where(allowed, scores, np.asarray(-np.inf, dtype=scores.dtype))
    total = logsumexp(scores, keepdims=True)
    p = np.exp(scores - np.where(np.isneginf(total), 0, total).astype(scores.dtype))
    return np.array(np.einsum("...ij,...jv->...vi", p, v), order="C").swapaxes(-1, -2), p


def sdpa_backward(q, k, v, p, dout, scale=None, dropout_mult=None):
    factor = q.shape[-1] ** -0.5 if scale is None else float(scale)
    met = p if dropout_mult is None else p * dropout_mult
    dv = np.einsum("...ij,...iv->...jv", met, dout)
    weighted = met * np.einsum("...iv,...jv->...ij", dout, v)  # p dP, dropout included
    ds = (weighted - p * weighted.sum(axis=-1, keepdims=True)) * factor
    return np.einsum("...ij,...jd->...id", ds, k), np.einsum("...ij,...id->...jd", ds, q), dv


def scaled_dot_product_attention(q, k, v, mask=None, dropout_p=0.0, scale=None, rng=None):
    if not 0.0 <= dropout_p <= 1.0:
        raise ValueError(f"dropout_p {dropout_p}")
    if dropout_p and rng is None:
        raise ValueError("no rng")
    queries, keys, values = q.data, k.data, v.data
    out, p = sdpa_forward(queries, keys, values, mask, scale)
    mult = None
    if dropout_p:
        dropped = rng.uniforms(p.size).reshape(p.shape) < dropout_p
        mult = np.where(dropped, 0.0, 1 / max(1 - dropout_p, math.ulp(1.0))).astype(p.dtype)
        out = np.einsum("...ij,...ij,...jv->...iv", p, mult, values)
    node = from_op(out, (q, k, v), lambda g: sdpa_backward(queries, keys, values, p, g, scale, mult))
    return node, Tensor(p, dtype=p.dtype)
