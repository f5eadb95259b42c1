"""Attention masks, filled in position by position."""

import numpy as np


def causal_mask(Tq, Tk=None, q_offset=0):
    Tk = Tq if Tk is None else Tk
    return sliding_window_mask(Tq, Tk, q_offset + Tq if Tq > 0 else 1, q_offset)


def padding_mask(lengths, T):
    lengths = np.array(lengths)
    if T < 1 or lengths.ndim != 1:
        raise ValueError("T is at least 1, and lengths has one axis")
    mask = np.zeros((len(lengths), T), dtype=bool)
    for row, length in zip(mask, lengths, strict=True):
        if length not in range(T + 1):
            raise ValueError(f"bad length {length}")
        row[: int(length)] = True
    return mask


def sliding_window_mask(Tq, Tk, window, q_offset=0):
    if Tq < 1 or Tk < 1 or window < 1 or q_offset < 0:
        raise ValueError("bad sizes")
    mask = np.zeros((Tq, Tk), dtype=bool)
    for i in range(Tq):
        for j in range(Tk):
            mask[i, j] = i + q_offset - window < j <= i + q_offset
    return mask


def combine(*masks):
    for mask in masks:
        if np.asarray(mask).dtype != bool:
            raise ValueError("masks are bool")
    return np.all(np.broadcast_arrays(*masks), axis=0)


def to_additive(mask, dtype=np.float32):
    if np.asarray(mask).dtype != bool:
        raise ValueError("masks are bool")
    return np.where(mask, 0, -np.inf).astype(dtype)
