"""Masks position by position, in plain Python: what every mask of the unit is compared with."""

import numpy as np


def causal(Tq, Tk, q_offset=0):
    return np.array([[key <= query + q_offset for key in range(Tk)] for query in range(Tq)])


def window(Tq, Tk, width, q_offset=0):
    seen = [range(query + q_offset - width + 1, query + q_offset + 1) for query in range(Tq)]
    return np.array([[key in keys for key in range(Tk)] for keys in seen])


def padding(lengths, T):
    return np.array([[position < length for position in range(T)] for length in lengths])


def same(found, expected):
    assert isinstance(found, np.ndarray)
    assert found.dtype == bool
    assert found.shape == expected.shape
    assert (found == expected).all()
