"""Attention masks: True means "may attend"."""

import numpy as np


def positive(name, size):
    if size < 1:
        raise ValueError(f"{name} has to be 1 or more, it is {size}")


def as_mask(mask):
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(f"a mask has to be bool, this one is {mask.dtype}")
    return mask


def positions(Tq, Tk, q_offset):
    """Where the queries stand [Tq, 1] and the keys [1, Tk]."""
    positive("Tq", Tq)
    positive("Tk", Tk)
    if q_offset < 0:
        raise ValueError(f"q_offset has to be 0 or more, it is {q_offset}")
    query = np.arange(Tq).reshape(Tq, 1) + q_offset
    key = np.arange(Tk).reshape(1, Tk)
    return query, key


def causal_mask(Tq, Tk=None, q_offset=0):
    if Tk is None:
        Tk = Tq
    query, key = positions(Tq, Tk, q_offset)
    return key <= query


def padding_mask(lengths, T):
    positive("T", T)
    lengths = np.asarray(lengths)
    if lengths.ndim != 1:
        raise ValueError("lengths has to have one axis")
    for length in lengths:
        if length != int(length) or length < 0 or length > T:
            raise ValueError(f"no sequence of {T} positions has the length {length}")
    return np.arange(T).reshape(1, T) < lengths.reshape(-1, 1)


def sliding_window_mask(Tq, Tk, window, q_offset=0):
    positive("window", window)
    query, key = positions(Tq, Tk, q_offset)
    return (key <= query) & (key >= query - window)


def combine(*masks):
    if len(masks) == 0:
        raise ValueError("there is nothing to combine")
    together = as_mask(masks[0]).copy()
    for mask in masks[1:]:
        together = together & as_mask(mask)
    return together


def to_additive(mask, dtype=np.float32):
    mask = as_mask(mask)
    added = np.zeros(mask.shape, dtype=dtype)
    added[~mask] = -np.inf
    return added
