"""Tensors arrive, Tensors leave: every operation that is not an operator, each with its gradient beside it.

Import as `from tinyllm.autograd import functional as F`.
"""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tinyllm.autograd.tensor import Tensor, as_tensors, from_op
from tinyllm.autograd.vjp import softmax_vjp, unbroadcast
from tinyllm.num import stable
from tinyllm.num.rng import Rng

Axis: TypeAlias = int | tuple[int, ...] | None

_SQRT_2 = math.sqrt(2.0)
_SQRT_2_PI = math.sqrt(2.0 * math.pi)
_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)


def exp(x: Tensor) -> Tensor:
    y = np.exp(x.data)
    return from_op(y, (x,), lambda g: (g * y,), "exp")


def log(x: Tensor) -> Tensor:
    data = x.data
    return from_op(np.log(data), (x,), lambda g: (g / data,), "log")


def tanh(x: Tensor) -> Tensor:
    y = np.tanh(x.data)
    return from_op(y, (x,), lambda g: (g * (1 - y * y),), "tanh")


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), without overflow at either end."""
    small = np.exp(-np.abs(x.data))
    y = np.where(x.data >= 0, 1, small) / (1 + small)
    return from_op(y, (x,), lambda g: (g * y * (1 - y),), "sigmoid")


def relu(x: Tensor) -> Tensor:
    """max(x, 0); the gradient at 0 is 0."""
    positive = x.data > 0
    return from_op(np.maximum(x.data, 0), (x,), lambda g: (g * positive,), "relu")


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x Phi(x), with Phi the normal distribution function ("none") or its tanh approximation ("tanh")."""
    data = x.data
    if approximate == "none":
        cdf = 0.5 * (1 + _erf(data / _SQRT_2))
        pdf = np.exp(-0.5 * data * data) / _SQRT_2_PI
        return from_op(data * cdf, (x,), lambda g: (g * (cdf + data * pdf),), "gelu")
    if approximate == "tanh":
        t = np.tanh(_SQRT_2_OVER_PI * (data + 0.044715 * data**3))
        slope = _SQRT_2_OVER_PI * (1 + 3 * 0.044715 * data**2)
        return from_op(
            0.5 * data * (1 + t),
            (x,),
            lambda g: (g * 0.5 * ((1 + t) + data * (1 - t * t) * slope),),
            "gelu",
        )
    raise ValueError(f'approximate must be "none" or "tanh", got {approximate!r}')


def sum(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    shape = x.shape
    return from_op(
        np.sum(x.data, axis=axis, keepdims=keepdims),
        (x,),
        lambda g: (np.broadcast_to(_keep(g, shape, axis), shape),),
        "sum",
    )


def mean(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    shape, n = x.shape, _count(x.shape, axis)
    return from_op(
        np.mean(x.data, axis=axis, keepdims=keepdims),
        (x,),
        lambda g: (np.broadcast_to(_keep(g, shape, axis) / n, shape),),
        "mean",
    )


def max(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element over `axis`; elements that tie share the gradient evenly."""
    data = x.data
    y = np.max(data, axis=axis, keepdims=keepdims)

    def vjp(g: NDArray[Any]) -> Sequence[Any]:
        ties = data == _keep(y, data.shape, axis)
        return (_keep(g, data.shape, axis) * ties / ties.sum(axis=axis, keepdims=True, dtype=data.dtype),)

    return from_op(y, (x,), vjp, "max")


def var(x: Tensor, axis: Axis = None, keepdims: bool = False, correction: float = 0) -> Tensor:
    """Sum of squared distances from the mean over (n - correction); ValueError unless n > correction."""
    shape, n = x.shape, _count(x.shape, axis) - correction
    if not n > 0:
        raise ValueError(f"var over {n + correction} elements needs a smaller correction than {correction}")
    centred = x.data - np.mean(x.data, axis=axis, keepdims=True)
    return from_op(
        np.sum(centred * centred, axis=axis, keepdims=keepdims) / n,
        (x,),
        lambda g: (_keep(g, shape, axis) * centred * (2 / n),),
        "var",
    )


def reshape(x: Tensor, shape: int | Sequence[int]) -> Tensor:
    """The same elements in C order under another shape; one size may be -1."""
    before = x.shape
    return from_op(x.data.reshape(shape), (x,), lambda g: (g.reshape(before),), "reshape")


def transpose(x: Tensor, a: int, b: int) -> Tensor:
    """Swap axes `a` and `b`."""
    return from_op(x.data.swapaxes(a, b), (x,), lambda g: (g.swapaxes(a, b),), "transpose")


def permute(x: Tensor, dims: Sequence[int]) -> Tensor:
    """Axis i of the result is axis dims[i] of x."""
    back = np.argsort([d % x.ndim for d in dims])
    return from_op(x.data.transpose(dims), (x,), lambda g: (g.transpose(back),), "permute")


def concat(xs: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join along an existing axis."""
    ends = np.cumsum([x.shape[axis] for x in xs])[:-1]
    return from_op(
        np.concatenate([x.data for x in xs], axis=axis),
        tuple(xs),
        lambda g: np.split(g, ends, axis=axis),
        "concat",
    )


def stack(xs: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join along a new axis."""
    return from_op(
        np.stack([x.data for x in xs], axis=axis),
        tuple(xs),
        lambda g: tuple(np.moveaxis(g, axis, 0)),
        "stack",
    )


def where(cond: ArrayLike, a: Any, b: Any) -> Tensor:
    """a where cond, else b, broadcast together; a and b are Tensors, arrays or numbers."""
    chosen = np.asarray(cond, dtype=bool)
    a, b = as_tensors(a, b)
    a_shape, b_shape = a.shape, b.shape

    def vjp(g: NDArray[Any]) -> Sequence[Any]:
        return unbroadcast(np.where(chosen, g, 0), a_shape), unbroadcast(np.where(chosen, 0, g), b_shape)

    return from_op(np.where(chosen, a.data, b.data), (a, b), vjp, "where")


def gather(x: Tensor, idx: ArrayLike, axis: int) -> Tensor:
    """numpy's take_along_axis; repeated indices accumulate in the gradient."""
    picked, shape = np.array(idx), x.shape

    def vjp(g: NDArray[Any]) -> Sequence[Any]:
        where_from = list(np.ogrid[tuple(slice(n) for n in shape)])
        where_from[axis] = picked
        dx = np.zeros(shape, dtype=g.dtype)
        np.add.at(dx, tuple(where_from), g)
        return (dx,)

    return from_op(np.take_along_axis(x.data, picked, axis), (x,), vjp, "gather")


def embedding(weight: Tensor, ids: ArrayLike) -> Tensor:
    """Rows of weight [n, d] for integer ids [...], as [..., d]; ValueError for an id outside [0, n)."""
    rows, shape = np.array(ids), weight.shape
    if rows.size == 0:
        rows = rows.astype(np.intp)  # an empty list has no integer dtype of its own
    if not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(f"ids must be integers, got dtype {rows.dtype}")
    outside = (rows < 0) | (rows >= shape[0])
    if outside.any():
        raise ValueError(f"ids must be in [0, {shape[0]}), got {rows[outside][0]}")

    def vjp(g: NDArray[Any]) -> Sequence[Any]:
        dw = np.zeros(shape, dtype=g.dtype)
        np.add.at(dw, rows, g)
        return (dw,)

    return from_op(weight.data[rows], (weight,), vjp, "embedding")


def masked_fill(x: Tensor, mask: ArrayLike, value: float) -> Tensor:
    """x with `value` where the bool `mask`, broadcast to x, is True; no gradient there."""
    filled = np.array(mask)
    if filled.dtype != np.bool_:
        raise ValueError(f"mask must be bool, got dtype {filled.dtype}")
    filled = np.broadcast_to(filled, x.shape)
    data = np.where(filled, np.asarray(value, dtype=x.dtype), x.data)
    return from_op(data, (x,), lambda g: (np.where(filled, 0, g),), "masked_fill")


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along `axis`; a row of -inf gives zeros and passes no gradient."""
    y = stable.softmax(x.data, axis)
    return from_op(y, (x,), lambda g: (softmax_vjp(g, y, axis),), "softmax")


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """log(softmax(x)) along `axis`; a row of -inf stays -inf and passes no gradient."""
    y = stable.log_softmax(x.data, axis)

    def vjp(g: NDArray[Any]) -> Sequence[Any]:
        dx = g - np.exp(y) * np.sum(g, axis=axis, keepdims=True)
        return (np.where(np.all(y == -np.inf, axis=axis, keepdims=True), 0, dx),)

    return from_op(y, (x,), vjp, "log_softmax")


def logsumexp(x: Tensor, axis: int = -1, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over `axis`; a row of -inf gives -inf and passes no gradient."""
    data = x.data
    return from_op(
        stable.logsumexp(data, axis, keepdims),
        (x,),
        lambda g: (_keep(g, data.shape, axis) * stable.softmax(data, axis),),
        "logsumexp",
    )


def dropout(x: Tensor, p: float, training: bool, rng: Rng) -> Tensor:
    """Zero each element with probability p and scale the rest by 1 / (1 - p), in training only.

    Draws rng.uniforms(x.size) in C order. Otherwise, or with p = 0, returns x itself and draws nothing.
    ValueError unless 0 <= p <= 1.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout needs 0 <= p <= 1, got {p}")
    if not training or p == 0:
        return x
    factor = dropout_factor(x.shape, p, rng, x.dtype)
    return from_op(x.data * factor, (x,), lambda g: (g * factor,), "dropout")


def dropout_factor(shape: tuple[int, ...], p: float, rng: Rng, dtype: DTypeLike) -> NDArray[Any]:
    """[*shape], drawn in C order: 0 where a uniform draw is below p, 1 / (1 - p) elsewhere."""
    kept = np.reshape(rng.uniforms(math.prod(shape)), shape) >= p
    keep_scale = 1 / (1 - p) if p < 1 else 0.0
    return np.asarray(kept * keep_scale, dtype=dtype)


def matmul(a: Any, b: Any) -> Tensor:
    """a @ b, with numpy's rules for batch axes and 1-D operands."""
    left, right = as_tensors(a, b)
    return left @ right


def _erf(x: NDArray[Any]) -> NDArray[Any]:
    # numpy has no erf; the standard library's is exact to the last bits of float64.
    flat = np.fromiter(map(math.erf, x.ravel().tolist()), dtype=np.float64, count=x.size)
    return flat.reshape(x.shape).astype(x.dtype)


def _axes(shape: tuple[int, ...], axis: Axis) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(len(shape)))
    return tuple(a % len(shape) for a in ((axis,) if isinstance(axis, int) else axis))


def _count(shape: tuple[int, ...], axis: Axis) -> int:
    return math.prod(shape[a] for a in _axes(shape, axis))


def _keep(g: NDArray[Any], shape: tuple[int, ...], axis: Axis) -> NDArray[Any]:
    """Give a reduced array its reduced axes back, with size 1."""
    reduced = _axes(shape, axis)
    return np.asarray(g).reshape([1 if i in reduced else n for i, n in enumerate(shape)])
