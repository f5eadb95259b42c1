"""A function of float64 arrays and its claimed gradients go in; what disagrees with central differences comes out."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

EPS, RTOL, ATOL = 1e-6, 1e-5, 1e-7

Arrays = Mapping[str, NDArray[Any]]


def numerical_grad(f: Callable[[Arrays], float], inputs: Arrays, name: str) -> NDArray[np.float64]:
    """Central differences of f(inputs) with respect to inputs[name], in its shape; `inputs` stays as it was."""
    moved = {key: np.array(value, dtype=np.float64) for key, value in inputs.items()}
    x = moved[name]
    grad = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        here = x[index]
        x[index] = here + EPS
        above = f(moved)
        x[index] = here - EPS
        below = f(moved)
        x[index] = here
        grad[index] = (above - below) / (2 * EPS)
    return grad


def gradient_difference(f: Callable[[Arrays], float], inputs: Arrays, name: str, analytic: Any) -> str | None:
    """Why `analytic` is not the gradient of f at inputs[name], or None. NaN never agrees."""
    want = numerical_grad(f, inputs, name)
    if type(analytic) is not np.ndarray or analytic.shape != want.shape:
        shape = list(analytic.shape) if isinstance(analytic, np.ndarray) else type(analytic).__name__
        return f"expected a gradient array of shape {list(want.shape)}, got {shape}"
    wrong = ~(np.abs(analytic - want) <= ATOL + RTOL * np.abs(want))
    if not np.any(wrong):
        return None
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    # Six digits: the last ones of a central difference are noise.
    return (
        f"{int(np.count_nonzero(wrong))} of {want.size} entries differ; at index {list(first)} "
        f"central differences give {want[first]:.6g}, backward gave {float(analytic[first]):.6g}"
    )
