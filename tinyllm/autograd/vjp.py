"""The gradient of an output arrives as a numpy array; the gradients of the inputs leave. No graph here."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def unbroadcast(g: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Sum `g` over the axes that broadcasting added or stretched, so that the result has `shape`.

    ValueError if an array of `shape` does not broadcast to `g.shape`.
    """
    if g.shape == tuple(shape):
        return g
    added = g.ndim - len(shape)
    if added < 0 or any(n not in (1, m) for n, m in zip(shape, g.shape[added:], strict=True)):
        raise ValueError(f"shape {tuple(shape)} does not broadcast to the gradient's shape {g.shape}")
    stretched = tuple(added + i for i, n in enumerate(shape) if n == 1)
    return np.asarray(g.sum(axis=(*range(added), *stretched))).reshape(shape)


def matmul_vjp(g: NDArray[Any], A: NDArray[Any], B: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Gradients of `A @ B` for `g` of its shape: dA = g Bᵀ and dB = Aᵀ g, summed over broadcast batch axes.

    A is [..., m, k] or [k], B is [..., k, n] or [k], as in numpy.
    """
    rows = A[None, :] if A.ndim == 1 else A  # [..., m, k]
    columns = B[:, None] if B.ndim == 1 else B  # [..., k, n]
    if B.ndim == 1:
        g = np.expand_dims(g, -1)  # [..., m] -> [..., m, 1]
    if A.ndim == 1:
        g = np.expand_dims(g, -2)  # [..., n] -> [..., 1, n]
    dA = unbroadcast(g @ columns.swapaxes(-1, -2), rows.shape)
    dB = unbroadcast(rows.swapaxes(-1, -2) @ g, columns.shape)
    return dA.reshape(A.shape), dB.reshape(B.shape)


def softmax_vjp(g: NDArray[Any], y: NDArray[Any], axis: int = -1) -> NDArray[Any]:
    """Gradient of y = softmax(x) along `axis`: y (g - sum(g y)). A row of zeros in `y` gets zeros."""
    return np.asarray(y * (g - (g * y).sum(axis=axis, keepdims=True)))
