"""Masks filled in entry by entry, with messages of its own."""

import itertools

import numpy as np


def fill(rows, columns, allowed):
    """[rows, columns], True where allowed(i, j)."""
    mask = np.zeros((rows, columns), dtype=bool)
    for i, j in itertools.product(range(rows), range(columns)):
        mask[i, j] = allowed(i, j)
    return mask


def positive(size, what):
    if size < 1:
        raise ValueError(f"there is no {what} of {size}")


def causal_mask(Tq, Tk=None, q_offset=0):
    if Tk is None:
        Tk = Tq
    positive(Tq, "number of queries")
    positive(Tk, "number of keys")
    if q_offset < 0:
        raise ValueError("queries before the first key")
    return fill(Tq, Tk, lambda i, j: j - i <= q_offset)


def padding_mask(lengths, T):
    positive(T, "number of positions")
    lengths = np.array(lengths)
    if lengths.ndim != 1 or any(length < 0 or length > T or length != int(length) for length in lengths):
        raise ValueError(f"these are no lengths of sequences of {T}: {lengths}")
    return fill(len(lengths), T, lambda b, t: t < lengths[b])


def sliding_window_mask(Tq, Tk, window, q_offset=0):
    positive(window, "window")
    mask = causal_mask(Tq, Tk, q_offset)
    for i in range(Tq):
        mask[i, : max(0, i + q_offset - window + 1)] = False
    return mask


def combine(*masks):
    if not masks:
        raise ValueError("nothing to combine")
    if any(np.asarray(mask).dtype != bool for mask in masks):
        raise ValueError("True or False, please")
    shape = np.broadcast_shapes(*(np.shape(mask) for mask in masks))
    result = np.ones(shape, dtype=bool)
    for mask in masks:
        result &= mask
    return result


def to_additive(mask, dtype=np.float32):
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError("True or False, please")
    added = np.zeros(mask.shape, dtype=dtype)
    added[~mask] = -np.inf
    return added
