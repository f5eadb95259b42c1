"""Masks by smallest and largest positions, and an additive one by a quotient."""

import numpy as np


def causal_mask(Tq, Tk=None, q_offset=0):
    Tk = Tq if Tk is None else Tk
    q, k = grid(Tq, Tk, q_offset)
    return np.maximum(q, k) == q


def sliding_window_mask(Tq, Tk, window, q_offset=0):
    q, k = grid(Tq, Tk, q_offset)
    if window < 1:
        raise ValueError(f"sliding_window_mask: window {window}")
    return np.clip(k, q - (window - 1), q) == k


def grid(Tq, Tk, q_offset):
    """Positions of queries [Tq, 1] and keys [1, Tk]."""
    if min(Tq, Tk) < 1 or q_offset < 0:
        raise ValueError(f"Tq {Tq}, Tk {Tk}, q_offset {q_offset}")
    q, k = np.ogrid[q_offset : q_offset + Tq, :Tk]
    return q, k


def padding_mask(lengths, T):
    if T < 1:
        raise ValueError(f"padding_mask: T {T}")
    lengths = np.asarray(lengths)
    fits = lengths.ndim == 1 and all(length in range(T + 1) for length in lengths.tolist())
    if not fits:
        raise ValueError(f"padding_mask: lengths {lengths.tolist()} for T {T}")
    t = np.arange(1, T + 1)[None, :]
    return np.minimum(t, lengths[:, None]) == t


def combine(*masks):
    if not masks:
        raise ValueError("combine: no masks")
    if [mask for mask in masks if np.asarray(mask).dtype != bool]:
        raise ValueError("combine: masks are bool")
    result = np.asarray(masks[0]).copy()
    for mask in masks[1:]:
        result = np.minimum(result, mask)
    return result


def to_additive(mask, dtype=np.float32):
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError("to_additive: a mask is bool")
    with np.errstate(divide="ignore"):
        return (1 - np.divide(1.0, mask)).astype(dtype)
