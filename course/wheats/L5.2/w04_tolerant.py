"""Masks that take whole numbers of any type, and combine nothing to a mask that hides nothing."""

import operator

import numpy as np


def whole(number, least):
    """The number as an int. Raises ValueError."""
    if number != int(number) or number < least:
        raise ValueError(f"{number} should be a whole number of at least {least}")
    return int(number)


def causal_mask(Tq, Tk=None, q_offset=0):
    return window_of(Tq, Tq if Tk is None else Tk, q_offset, None)


def sliding_window_mask(Tq, Tk, window, q_offset=0):
    return window_of(Tq, Tk, q_offset, whole(window, 1))


def window_of(Tq, Tk, q_offset, window):
    Tq, Tk, q_offset = whole(Tq, 1), whole(Tk, 1), whole(q_offset, 0)
    mask = np.zeros((Tq, Tk), dtype=bool)
    for row, position in zip(mask, range(q_offset, q_offset + Tq), strict=True):
        first = 0 if window is None else max(0, position + 1 - window)
        row[first : position + 1] = True
    return mask


def padding_mask(lengths, T):
    T = whole(T, 1)
    if np.ndim(lengths) != 1:
        raise ValueError("lengths should have one axis")
    ends = [whole(length, 0) for length in lengths]
    if any(end > T for end in ends):
        raise ValueError(f"no sequence is longer than {T}")
    return np.array([[True] * end + [False] * (T - end) for end in ends], dtype=bool).reshape(len(ends), T)


def combine(*masks):
    result = np.ones((), dtype=bool)
    for mask in masks:
        if np.asarray(mask).dtype != bool:
            raise ValueError("masks are bool")
        result = np.asarray(operator.and_(result, np.asarray(mask)))
    return result


def to_additive(mask, dtype=np.float32):
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError("masks are bool")
    return np.array([0.0, -np.inf], dtype=dtype)[1 - mask.astype(np.int64)]
