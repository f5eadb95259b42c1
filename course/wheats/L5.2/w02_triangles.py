"""Masks cut from triangles, and the logarithm of a mask as an additive one."""

from functools import reduce

import numpy as np


def lower(rows, columns, diagonal):
    """[rows, columns], True on the diagonal of that number and below."""
    return np.tri(rows, columns, diagonal, dtype=bool)


def refuse_unless(condition, message):
    if not condition:
        raise ValueError(message)


def causal_mask(Tq, Tk=None, q_offset=0):
    keys = Tk if Tk is not None else Tq
    refuse_unless(min(Tq, keys) > 0 <= q_offset, f"no mask of {Tq} queries at {q_offset} and {keys} keys")
    return lower(Tq, keys, q_offset)


def padding_mask(lengths, T):
    refuse_unless(T > 0, "a batch has positions")
    ends = np.asarray(lengths)
    refuse_unless(ends.ndim == 1, "one length for each sequence")
    refuse_unless(np.isin(ends, np.arange(T + 1)).all(), "a sequence ends between 0 and T")
    return lower(T + 1, T, -1)[ends.astype(np.int64)]


def sliding_window_mask(Tq, Tk, window, q_offset=0):
    refuse_unless(window > 0, "a window holds the own position at least")
    return causal_mask(Tq, Tk, q_offset) ^ lower(Tq, Tk, q_offset - window)


def combine(*masks):
    for mask in masks:
        refuse_unless(np.asarray(mask).dtype == np.bool_, "only masks can be combined")
    refuse_unless(masks, "only masks can be combined, and there are none")
    return np.array(reduce(np.logical_and, masks))


def to_additive(mask, dtype=np.float32):
    refuse_unless(np.asarray(mask).dtype == np.bool_, "a mask is bool")
    with np.errstate(divide="ignore"):
        return np.log(mask, dtype=np.float64).astype(dtype)
