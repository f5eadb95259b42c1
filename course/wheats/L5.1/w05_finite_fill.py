"""Attention that fills hidden scores with a very small number and clears them afterwards."""

import numpy as np

from tinyllm.autograd.functional import dropout
from tinyllm.autograd.tensor import Tensor, from_op


def _shapes_agree(q, k, v):
    return (
        len(q) >= 2 and len(k) >= 2 and len(v) >= 2 and q[:-2] == k[:-2] == v[:-2] and (q[-1], k[-2]) == (k[-1], v[-2])
    )


def sdpa_forward(q, k, v, mask=None, scale=None):
    if not _shapes_agree(q.shape, k.shape, v.shape):
        raise ValueError(f"shapes {q.shape}, {k.shape}, {v.shape}")
    if scale is not None and not 0 < scale <= np.finfo(np.float64).max:
        raise ValueError(f"scale {scale}")
    scores = q @ k.swapaxes(-1, -2) * _scale(q, scale)
    keep = np.ones(scores.shape, dtype=bool)
    if mask is not None:
        if np.asarray(mask).dtype != np.bool_:
            raise ValueError("mask must be bool")
        keep &= mask  # ValueError for a mask that does not broadcast
    filled = np.where(keep, scores, np.finfo(scores.dtype).min)
    powers = np.exp(filled - filled.max(axis=-1, keepdims=True)) * keep
    p = powers / np.maximum(powers.sum(axis=-1, keepdims=True), np.finfo(scores.dtype).tiny)
    return p @ v, p


def sdpa_backward(q, k, v, p, dout, scale=None, dropout_mult=None):
    if dropout_mult is None:
        dropout_mult = np.ones((1,) * p.ndim, dtype=p.dtype)
    dv = (p * dropout_mult).swapaxes(-1, -2) @ dout
    dp = dout @ v.swapaxes(-1, -2) * dropout_mult
    ds = dp * p - p * np.einsum("...j,...j->...", dp, p)[..., None]
    ds *= _scale(q, scale)
    return ds @ k, ds.swapaxes(-1, -2) @ q, dv


def scaled_dot_product_attention(q, k, v, mask=None, dropout_p=0.0, scale=None, rng=None):
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"rate {dropout_p}")
    if dropout_p > 0 and rng is None:
        raise ValueError("dropout needs an rng")
    _, p = sdpa_forward(q.data, k.data, v.data, mask, scale)
    kept = dropout(Tensor(np.ones_like(p), dtype=p.dtype), dropout_p, True, rng).data  # ones, dropped and scaled
    node = from_op(
        (p * kept) @ v.data,
        (q, k, v),
        lambda g: sdpa_backward(q.data, k.data, v.data, p, g, scale, kept),
    )
    return node, Tensor(p, dtype=p.dtype)


def _scale(q, scale):
    return q.shape[-1] ** -0.5 if scale is None else float(scale)
