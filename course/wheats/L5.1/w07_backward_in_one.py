"""Attention whose node keeps what its backward pass needs, and does not go through the two functions on arrays."""

import numpy as np

from tinyllm.autograd.tensor import Tensor, from_op
from tinyllm.autograd.vjp import softmax_vjp
from tinyllm.num.stable import softmax


class Attention:
    """One call: the arrays it read, its weights, and what they were multiplied by."""

    def __init__(self, q, k, v, mask=None, scale=None):
        shapes = [x.shape for x in (q, k, v)]
        if any(len(shape) < 2 for shape in shapes) or len({shape[:-2] for shape in shapes}) > 1:
            raise ValueError(f"leading sizes of {shapes}")
        if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2] or q.shape[-1] < 1:
            raise ValueError(f"last sizes of {shapes}")
        self.q, self.k, self.v, self.mult = q, k, v, None
        self.scale = q.dtype.type(_checked_scale(scale, q.shape[-1]))
        self.p = softmax(self.scores(mask))

    def scores(self, mask):
        scores = np.matmul(self.q, self.k.swapaxes(-1, -2))
        scores *= self.scale
        if mask is None:
            return scores
        if getattr(mask, "dtype", None) != np.bool_:
            raise ValueError("mask is no bool array")
        full = np.broadcast_to(mask, scores.shape)
        np.copyto(scores, -np.inf, where=~full)
        return scores

    def drop(self, rate, rng):
        draws = rng.uniforms(self.p.size).reshape(self.p.shape)
        with np.errstate(divide="ignore"):
            self.mult = np.where(draws < rate, 0, np.float64(1) / (1 - rate)).astype(self.p.dtype)

    @property
    def used(self):
        return self.p if self.mult is None else self.p * self.mult

    def back(self, g):
        dp = g @ self.v.swapaxes(-1, -2)
        ds = softmax_vjp(dp if self.mult is None else dp * self.mult, self.p) * self.scale
        return ds @ self.k, (self.q.swapaxes(-1, -2) @ ds).swapaxes(-1, -2), self.used.swapaxes(-1, -2) @ g


def _checked_scale(scale, d):
    if scale is None:
        return d**-0.5
    if not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"a scale of {scale}")
    return scale


def sdpa_forward(q, k, v, mask=None, scale=None):
    call = Attention(q, k, v, mask, scale)
    return call.p @ v, call.p


def sdpa_backward(q, k, v, p, dout, scale=None, dropout_mult=None):
    call = Attention.__new__(Attention)
    call.q, call.k, call.v, call.p, call.mult = q, k, v, p, dropout_mult
    call.scale = q.dtype.type(_checked_scale(scale, q.shape[-1]))
    return call.back(dout)


def scaled_dot_product_attention(q, k, v, mask=None, dropout_p=0.0, scale=None, rng=None):
    if dropout_p < 0 or dropout_p > 1:
        raise ValueError(f"a rate of {dropout_p}")
    call = Attention(q.data, k.data, v.data, mask, scale)
    if dropout_p > 0:
        if rng is None:
            raise ValueError("an rng is needed")
        call.drop(dropout_p, rng)
    return from_op(call.used @ call.v, (q, k, v), call.back, "attention"), Tensor(call.p, dtype=call.p.dtype)
