"""Masks built key by key and laid in memory that way, with errors of a class of its own."""

import numpy as np


class MaskError(ValueError):
    """Raised for everything the contract calls a ValueError."""


def check(**sizes):
    for name, (value, least) in sizes.items():
        if value < least:
            raise MaskError(f"{name} is {value}")


def truth(mask):
    mask = np.asarray(mask)
    if mask.dtype.kind != "b":
        raise MaskError("no truth values")
    return mask


def causal_mask(Tq, Tk=None, q_offset=0):
    Tk = Tq if Tk is None else Tk
    check(Tq=(Tq, 1), Tk=(Tk, 1), q_offset=(q_offset, 0))
    queries = np.arange(q_offset, q_offset + Tq)
    return np.stack([queries >= key for key in range(Tk)]).T


def padding_mask(lengths, T):
    check(T=(T, 1))
    lengths = np.asarray(lengths)
    if lengths.ndim != 1 or not set(lengths.tolist()) <= set(range(T + 1)):
        raise MaskError("bad lengths")
    return np.stack([lengths > position for position in range(T)]).T


def sliding_window_mask(Tq, Tk, window, q_offset=0):
    check(Tq=(Tq, 1), Tk=(Tk, 1), window=(window, 1), q_offset=(q_offset, 0))
    queries = np.arange(q_offset, q_offset + Tq)
    return np.stack([(queries >= key) & (queries < key + window) for key in range(Tk)]).T


def combine(*masks):
    if len(masks) == 0:
        raise MaskError("no masks")
    try:
        spread = np.broadcast_arrays(*map(truth, masks))
    except ValueError as error:
        raise MaskError("these masks do not go together") from error
    return np.asfortranarray(np.all(spread, axis=0))


def to_additive(mask, dtype=np.float32):
    mask = truth(mask)
    return np.asfortranarray(np.where(mask, np.array(0, dtype=dtype), np.array(-np.inf, dtype=dtype)))
