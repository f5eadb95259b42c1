"""Arrays of scores arrive; softmax, log-softmax and log-sum-exp leave, without overflow or NaN.

A row whose scores are all -inf (nothing may be attended) is defined: softmax gives zeros, the other two -inf.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def softmax(x: NDArray[Any], axis: int = -1) -> NDArray[Any]:
    """exp(x) / sum(exp(x)) along `axis`; same shape and dtype."""
    x = _floating(x)
    exps = np.exp(x - _finite_peak(x, axis))
    return np.asarray(exps / _one_for_zero(exps.sum(axis=axis, keepdims=True)))


def log_softmax(x: NDArray[Any], axis: int = -1) -> NDArray[Any]:
    """log(softmax(x)) along `axis`; same shape and dtype."""
    x = _floating(x)
    shifted = x - _finite_peak(x, axis)
    return np.asarray(shifted - np.log(_one_for_zero(np.exp(shifted).sum(axis=axis, keepdims=True))))


def logsumexp(x: NDArray[Any], axis: int = -1, keepdims: bool = False) -> NDArray[Any]:
    """log(sum(exp(x))) over `axis`; same dtype."""
    x = _floating(x)
    peak = _finite_peak(x, axis)
    total = np.exp(x - peak).sum(axis=axis, keepdims=True)
    out = np.where(total == 0, -np.inf, peak + np.log(_one_for_zero(total)))
    return np.asarray(out if keepdims else out.squeeze(axis), dtype=x.dtype)


def _floating(x: NDArray[Any]) -> NDArray[Any]:
    x = np.asarray(x)
    return x if np.issubdtype(x.dtype, np.floating) else x.astype(np.float64)


def _finite_peak(x: NDArray[Any], axis: int) -> NDArray[Any]:
    peak = x.max(axis=axis, keepdims=True, initial=-np.inf)  # an axis of size 0 has the peak of an empty row
    return np.asarray(np.where(peak == -np.inf, 0, peak), dtype=x.dtype)  # -inf - -inf would be NaN


def _one_for_zero(total: NDArray[Any]) -> NDArray[Any]:
    # Where something may be attended, the peak alone contributes exp(0) = 1: a total of 0 is a masked row.
    return np.asarray(np.where(total == 0, 1, total), dtype=total.dtype)
