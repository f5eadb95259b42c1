"""Arrays of scores arrive; softmax, log-softmax and log-sum-exp leave, without overflow or NaN.

A row whose scores are all -inf (nothing may be attended) is defined: softmax gives zeros, the other two -inf.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def softmax(x: NDArray[Any], axis: int = -1) -> NDArray[Any]:
    """exp(x) / sum(exp(x)) along `axis`; same shape and dtype."""
    _, exps, total = _shifted(x, axis)
    return np.asarray(exps / np.where(total == 0, 1, total))


def log_softmax(x: NDArray[Any], axis: int = -1) -> NDArray[Any]:
    """log(softmax(x)) along `axis`; same shape and dtype."""
    shifted, _, total = _shifted(x, axis)
    return np.asarray(shifted - np.log(np.where(total == 0, 1, total)))


def logsumexp(
    x: NDArray[Any], axis: int | tuple[int, ...] | None = -1, keepdims: bool = False
) -> NDArray[Any]:
    """log(sum(exp(x))) over `axis`; same dtype."""
    _, _, total = _shifted(x, axis)
    peak = _finite_peak(np.asarray(x), axis)
    out = np.where(total == 0, -np.inf, peak + np.log(np.where(total == 0, 1, total)))
    return np.asarray(out if keepdims else np.squeeze(out, axis=axis)).astype(total.dtype, copy=False)


def _finite_peak(x: NDArray[Any], axis: int | tuple[int, ...] | None) -> NDArray[Any]:
    peak = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return np.asarray(np.where(peak == -np.inf, 0, peak), dtype=peak.dtype)  # -inf - -inf would be NaN


def _shifted(
    x: NDArray[Any], axis: int | tuple[int, ...] | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    x = np.asarray(x)
    if not np.issubdtype(x.dtype, np.floating):
        x = x.astype(np.float64)
    shifted = x - _finite_peak(x, axis)
    exps = np.exp(shifted)
    return shifted, exps, np.sum(exps, axis=axis, keepdims=True)
