"""Attention with the mask added to the scores, a softmax of its own, and errors of a class of its own."""

import math

import numpy as np

from tinyllm.autograd.tensor import Tensor, from_op
from tinyllm.xfmr.masks import to_additive


class AttentionError(ValueError):
    """Raised for everything the contract calls a ValueError."""


def require(condition, what):
    if not condition:
        raise AttentionError(what)


def softmax_rows(scores):
    """Along the last axis; a row of -inf alone becomes zeros."""
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
    powers[np.isnan(powers)] = 0
    sums = powers.sum(axis=-1, keepdims=True)
    return np.divide(powers, sums, out=np.zeros_like(powers), where=sums > 0)


def scale_of(q, scale):
    require(scale is None or (math.isfinite(scale) and scale > 0), f"bad scale {scale}")
    return 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)


def sdpa_forward(q, k, v, mask=None, scale=None):
    require(q.ndim >= 2 and k.ndim >= 2 and v.ndim >= 2, "at least two axes each")
    require(q.shape[:-2] == k.shape[:-2] == v.shape[:-2], "leading sizes differ")
    require(q.shape[-1] == k.shape[-1] > 0, "widths differ")
    require(k.shape[-2] == v.shape[-2], "lengths differ")
    scores = np.matmul(q, np.moveaxis(k, -1, -2)) * scale_of(q, scale)
    if mask is not None:
        mask = np.asarray(mask)
        require(mask.dtype == np.bool_, f"mask of {mask.dtype}")
        fits = mask.ndim <= scores.ndim and all(
            have in (1, want) for have, want in zip(mask.shape[::-1], scores.shape[::-1], strict=False)
        )
        require(fits, f"mask of {mask.shape} for weights of {scores.shape}")
        scores = scores + to_additive(mask, dtype=scores.dtype)
    p = softmax_rows(scores)
    return np.matmul(p, v), p


def sdpa_backward(q, k, v, p, dout, scale=None, dropout_mult=None):
    kept = np.ones_like(p) if dropout_mult is None else dropout_mult
    dv = np.matmul(np.moveaxis(p * kept, -1, -2), dout)
    dp = np.matmul(dout, np.moveaxis(v, -1, -2)) * kept
    ds = scale_of(q, scale) * p * (dp - np.sum(p * dp, axis=-1, keepdims=True))
    return np.matmul(ds, k), np.matmul(np.moveaxis(ds, -1, -2), q), dv


def scaled_dot_product_attention(q, k, v, mask=None, dropout_p=0.0, scale=None, rng=None):
    require(0 <= dropout_p <= 1, f"bad rate {dropout_p}")
    require(dropout_p == 0 or rng is not None, "dropout without an rng")
    out, p = sdpa_forward(q.data, k.data, v.data, mask, scale)
    kept = np.ones_like(p)
    if dropout_p:
        kept *= rng.uniforms(p.size).reshape(p.shape) >= dropout_p
        kept *= 1 / (1 - dropout_p) if dropout_p < 1 else 0
        out = np.matmul(p * kept, v.data)
    arrays = q.data, k.data, v.data
    return from_op(out, (q, k, v), lambda g: sdpa_backward(*arrays, p, g, scale, kept)), Tensor(p, dtype=p.dtype)
