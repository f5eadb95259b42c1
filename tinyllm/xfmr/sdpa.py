"""Queries, keys and values arrive; each query's weighted mean of the values leaves, and the weights.

softmax(q kᵀ scale + mask) v, with scale 1 / sqrt(d) unless given and True in the mask meaning "may attend"
(Vaswani et al., "Attention Is All You Need", 2017, section 3.2.1). A query that may attend nothing gets 0.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinyllm.autograd.functional import dropout_factor
from tinyllm.autograd.tensor import Tensor, from_op
from tinyllm.autograd.vjp import softmax_vjp
from tinyllm.num.rng import Rng
from tinyllm.num.stable import softmax


def sdpa_forward(
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    mask: NDArray[np.bool_] | None = None,
    scale: float | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """q [..., Tq, d], k [..., Tk, d], v [..., Tk, dv] -> output [..., Tq, dv], weights [..., Tq, Tk].

    ValueError for shapes that disagree, a mask that is not bool or does not broadcast to the weights, or a
    scale that is not finite and positive.
    """
    p = _weights(q, k, v, mask, scale)
    return p @ v, p  # [..., Tq, Tk] @ [..., Tk, dv] -> [..., Tq, dv]


def sdpa_backward(
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    p: NDArray[Any],
    dout: NDArray[Any],
    scale: float | None = None,
    dropout_mult: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Gradients (dq, dk, dv) for dout [..., Tq, dv], given the weights p [..., Tq, Tk] of the forward pass.

    dropout_mult [..., Tq, Tk] is what the weights were multiplied by before they met the values.
    """
    used = p if dropout_mult is None else p * dropout_mult
    dv = used.swapaxes(-1, -2) @ dout  # [..., Tk, Tq] @ [..., Tq, dv] -> [..., Tk, dv]
    dp = dout @ v.swapaxes(-1, -2)  # [..., Tq, dv] @ [..., dv, Tk] -> [..., Tq, Tk]
    if dropout_mult is not None:
        dp = dp * dropout_mult
    ds = softmax_vjp(dp, p) * _checked_scale(scale, q.shape[-1])
    dq = ds @ k  # [..., Tq, Tk] @ [..., Tk, d] -> [..., Tq, d]
    dk = ds.swapaxes(-1, -2) @ q  # [..., Tk, Tq] @ [..., Tq, d] -> [..., Tk, d]
    return dq, dk, dv


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: NDArray[np.bool_] | None = None,
    dropout_p: float = 0.0,
    scale: float | None = None,
    rng: Rng | None = None,
) -> tuple[Tensor, Tensor]:
    """sdpa_forward as one node of the graph: (output [..., Tq, dv], weights [..., Tq, Tk]).

    The weights are those before dropout, a constant. dropout_p > 0 zeroes weights with that probability and
    scales the rest by 1 / (1 - dropout_p), drawing rng.uniforms(weights.size) in C order; 0 draws nothing.
    ValueError as sdpa_forward, for dropout_p outside [0, 1], or for dropout without an rng.
    """
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"dropout_p must be in [0, 1], got {dropout_p}")
    if dropout_p > 0 and rng is None:
        raise ValueError("dropout_p > 0 needs an rng to draw from")
    qd, kd, vd = q.data, k.data, v.data
    p = _weights(qd, kd, vd, mask, scale)
    mult = dropout_factor(p.shape, dropout_p, rng, p.dtype) if dropout_p > 0 and rng is not None else None
    out = (p if mult is None else p * mult) @ vd  # [..., Tq, Tk] @ [..., Tk, dv] -> [..., Tq, dv]
    node = from_op(out, (q, k, v), lambda g: sdpa_backward(qd, kd, vd, p, g, scale, mult), "sdpa")
    return node, Tensor(p, dtype=p.dtype)  # a copy: writing into it must not change the gradients


def _weights(
    q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], mask: NDArray[np.bool_] | None, scale: float | None
) -> NDArray[Any]:
    _check_shapes(q.shape, k.shape, v.shape)
    scores = q @ k.swapaxes(-1, -2)  # [..., Tq, d] @ [..., d, Tk] -> [..., Tq, Tk]
    scores = scores * _checked_scale(scale, q.shape[-1])
    if mask is not None:
        scores = np.where(_checked_mask(mask, scores.shape), scores, -np.inf)
    return softmax(scores)


def _check_shapes(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> None:
    if len(q) < 2 or len(k) < 2 or len(v) < 2:
        raise ValueError(f"q, k and v need at least 2 dimensions, got shapes {q}, {k}, {v}")
    if not q[:-2] == k[:-2] == v[:-2]:
        raise ValueError(f"q, k and v need equal leading sizes, got shapes {q}, {k}, {v}")
    if q[-1] != k[-1] or q[-1] < 1:
        raise ValueError(f"q and k need one width of at least 1, got {q[-1]} and {k[-1]}")
    if k[-2] != v[-2]:
        raise ValueError(f"k and v need one length, got {k[-2]} and {v[-2]}")


def _checked_scale(scale: float | None, d: int) -> float:
    if scale is None:
        return 1.0 / math.sqrt(d)
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale must be finite and positive, got {scale}")
    return float(scale)  # a numpy float64 would turn float32 scores into float64


def _checked_mask(mask: NDArray[np.bool_], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = np.asarray(mask)
    if mask.dtype != np.bool_:
        raise ValueError(f"mask must be bool, got dtype {mask.dtype}")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"mask must broadcast to {shape}, got {mask.shape}") from None
