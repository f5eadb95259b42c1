"""Causal, window and padding masks against loops, for sizes that all differ."""

import numpy as np
import pytest
from positions import causal, padding, same, window

from tinyllm.xfmr.masks import causal_mask, padding_mask, sliding_window_mask

SIZES = [(1, 1, 0), (3, 5, 0), (5, 3, 0), (2, 6, 4), (2, 6, 1), (4, 4, 2)]


@pytest.mark.parametrize(("Tq", "Tk", "q_offset"), SIZES)
def test_causal(Tq, Tk, q_offset):
    same(causal_mask(Tq, Tk, q_offset), causal(Tq, Tk, q_offset))


@pytest.mark.parametrize("q_offset", [0, 2])
def test_as_many_keys_as_queries_by_default(q_offset):
    same(causal_mask(4, q_offset=q_offset), causal(4, 4, q_offset))


@pytest.mark.parametrize(("Tq", "Tk", "q_offset"), SIZES)
@pytest.mark.parametrize("width", [1, 2, 3, 9])
def test_window(Tq, Tk, q_offset, width):
    same(sliding_window_mask(Tq, Tk, width, q_offset), window(Tq, Tk, width, q_offset))


@pytest.mark.parametrize(("lengths", "T"), [([2, 4, 0], 5), ([1], 1), ([3, 3], 3), (np.array([0, 1, 2, 3]), 3)])
def test_padding(lengths, T):
    same(padding_mask(lengths, T), padding(lengths, T))
