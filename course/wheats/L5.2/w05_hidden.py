"""The same with the opposite question, what is hidden, and zeros that are negative."""

import numpy as np


def _positions(n, start=0):
    return np.linspace(start, start + n - 1, n)


def _sizes(Tq, Tk, q_offset, window=1):
    if Tq <= 0 or Tk <= 0 or window <= 0:
        raise ValueError(f"sizes begin at 1: {Tq}, {Tk}, {window}")
    if q_offset <= -1:
        raise ValueError(f"the first query stands at {q_offset}")


def causal_mask(Tq, Tk=None, q_offset=0):
    Tk = Tq if Tk is None else Tk
    _sizes(Tq, Tk, q_offset)
    return ~_future(Tq, Tk, q_offset)


def _future(Tq, Tk, q_offset):
    return np.less.outer(_positions(Tq, q_offset), _positions(Tk))


def padding_mask(lengths, T):
    if T <= 0:
        raise ValueError("no positions")
    lengths = np.asarray(lengths)
    if lengths.ndim != 1:
        raise ValueError("one length a sequence")
    if ((lengths < 0) | (lengths > T) | (lengths % 1 != 0)).any():
        raise ValueError(f"lengths from 0 to {T}")
    return ~np.less_equal.outer(lengths, _positions(T))


def sliding_window_mask(Tq, Tk, window, q_offset=0):
    _sizes(Tq, Tk, q_offset, window)
    forgotten = np.greater_equal.outer(_positions(Tq, q_offset), _positions(Tk, window))
    return ~(forgotten | _future(Tq, Tk, q_offset))


def combine(*masks):
    if not masks:
        raise ValueError("one mask at least")
    hidden = np.zeros((), dtype=bool)
    for mask in masks:
        hidden = hidden | ~_checked(mask)
    return np.asarray(~hidden)


def to_additive(mask, dtype=np.float32):
    return np.where(_checked(mask), -0.0, -np.inf).astype(dtype)


def _checked(mask):
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(f"{mask.dtype} is not bool")
    return mask
