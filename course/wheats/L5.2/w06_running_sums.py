"""Masks by counting: how many keys have begun, how many have left the window."""

import numpy as np


class _Sizes:
    """Sizes that have been looked at."""

    def __init__(self, Tq, Tk, q_offset, window):
        for size in (Tq, Tk, window):
            if size < 1:
                raise ValueError("too small")
        if q_offset < 0:
            raise ValueError("too early")
        self.Tq, self.Tk, self.q_offset, self.window = Tq, Tk, q_offset, window

    def count(self, late):
        """[Tq, Tk]: 1 from the query on that stands `late` positions behind the key."""
        T = self.q_offset + self.Tq + self.Tk + late
        steps = np.zeros((T, self.Tk), dtype=np.int64)
        keys = np.arange(self.Tk)
        steps[keys + late, keys] = 1
        return np.cumsum(steps, axis=0)[self.q_offset : self.q_offset + self.Tq]


def causal_mask(Tq, Tk=None, q_offset=0):
    sizes = _Sizes(Tq, Tq if Tk is None else Tk, q_offset, 1)
    return sizes.count(0).astype(bool)


def sliding_window_mask(Tq, Tk, window, q_offset=0):
    sizes = _Sizes(Tq, Tk, q_offset, window)
    return (sizes.count(0) - sizes.count(min(window, Tq + q_offset))).astype(bool)


def padding_mask(lengths, T):
    if T < 1:
        raise ValueError("too short")
    ends = np.array(lengths)
    if ends.ndim != 1 or np.any(ends != np.clip(ends, 0, T)) or np.any(ends != np.floor(ends)):
        raise ValueError("no lengths")
    ended = np.zeros((len(ends), T + 1), dtype=np.int64)
    ended[np.arange(len(ends)), ends.astype(np.int64)] = 1
    return np.cumsum(ended, axis=1)[:, :T] == 0


def combine(*masks):
    arrays = [np.asarray(mask) for mask in masks]
    if not arrays or {array.dtype for array in arrays} != {np.dtype(bool)}:
        raise ValueError("masks, and nothing else")
    return np.array(sum(array.astype(np.int64) for array in arrays) == len(arrays))


def to_additive(mask, dtype=np.float32):
    mask = np.asarray(mask)
    if mask.dtype != np.bool_:
        raise ValueError("a mask, and nothing else")
    result = np.full(mask.shape, -np.inf, dtype=dtype)
    np.copyto(result, 0, where=mask)
    return result
