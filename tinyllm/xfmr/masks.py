"""Sizes arrive; bool masks leave, True where a query may attend a key. ValueError for bad sizes or dtypes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


def causal_mask(Tq: int, Tk: int | None = None, q_offset: int = 0) -> NDArray[np.bool_]:
    """[Tq, Tk]: query i, at position i + q_offset, may attend keys 0 .. i + q_offset. Tk None means Tq."""
    keys_before = _keys_before(Tq, Tq if Tk is None else Tk, q_offset)
    return keys_before >= 0


def padding_mask(lengths: ArrayLike, T: int) -> NDArray[np.bool_]:
    """[B, T]: True at the first lengths[b] positions of sequence b; every length in [0, T]."""
    _check_size("T", T)
    counts = np.asarray(lengths)
    if counts.ndim != 1 or not (np.issubdtype(counts.dtype, np.integer) or counts.size == 0):
        raise ValueError(f"lengths must be integers [B], got shape {counts.shape} and dtype {counts.dtype}")
    if counts.size and not 0 <= counts.min() <= counts.max() <= T:
        raise ValueError(f"lengths must be in [0, {T}], got {counts.min()} to {counts.max()}")
    return np.arange(T) < counts[:, None]  # [T] < [B, 1] -> [B, T]


def sliding_window_mask(Tq: int, Tk: int, window: int, q_offset: int = 0) -> NDArray[np.bool_]:
    """[Tq, Tk]: the causal mask, but only the last `window` keys, the query's own position included."""
    _check_size("window", window)
    keys_before = _keys_before(Tq, Tk, q_offset)
    return (keys_before >= 0) & (keys_before < window)


def combine(*masks: ArrayLike) -> NDArray[np.bool_]:
    """Logical AND of one or more bool masks, broadcast together; a new array."""
    if not masks:
        raise ValueError("combine needs at least one mask")
    out: NDArray[Any] = np.asarray(True)
    for mask in masks:
        out = np.logical_and(out, _bool(mask))
    return np.asarray(out)


def to_additive(mask: ArrayLike, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """0 where the bool mask is True, -inf where it is False, to be added to scores."""
    return np.where(_bool(mask), 0.0, -np.inf).astype(dtype)


def _keys_before(Tq: int, Tk: int, q_offset: int) -> NDArray[Any]:
    """[Tq, Tk]: how many positions key j lies before query i; negative if after."""
    _check_size("Tq", Tq)
    _check_size("Tk", Tk)
    _check_size("q_offset", q_offset, least=0)
    return np.arange(Tq)[:, None] + q_offset - np.arange(Tk)  # [Tq, 1] - [Tk] -> [Tq, Tk]


def _check_size(name: str, size: int, least: int = 1) -> None:
    if not isinstance(size, (int, np.integer)) or size < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {size!r}")


def _bool(mask: ArrayLike) -> NDArray[np.bool_]:
    array = np.asarray(mask)
    if array.dtype != np.bool_:
        raise ValueError(f"a mask must be bool, got dtype {array.dtype}")
    return array
