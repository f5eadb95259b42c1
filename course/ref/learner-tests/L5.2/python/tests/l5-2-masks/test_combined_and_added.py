"""Masks together, and masks added to scores."""

import numpy as np
import pytest
from positions import causal, padding, same

from tinyllm.xfmr.masks import combine, to_additive

CAUSAL = causal(3, 3)
PADDING = padding([2, 3, 0], 3)


def test_a_decoder_sees_what_is_neither_future_nor_padding():
    expected = np.array([[[CAUSAL[i, j] and PADDING[b, j] for j in range(3)] for i in range(3)] for b in range(3)])
    same(combine(CAUSAL, PADDING[:, None, :]), expected)
    same(combine(PADDING[:, None, :], CAUSAL), expected)


def test_axes_are_aligned_at_the_last():
    expected = np.array([[CAUSAL[i, j] and PADDING[0, j] for j in range(3)] for i in range(3)])
    same(combine(CAUSAL, PADDING[0]), expected)


def test_every_mask_counts():
    last = np.array([[True], [False], [True]])
    same(combine(CAUSAL, PADDING[:1], last), np.array([[True, False, False], [False] * 3, [True, True, False]]))


def test_hidden_twice_is_hidden():
    same(combine(~CAUSAL, ~CAUSAL), ~CAUSAL)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_additive_masks_are_zero_or_minus_infinity(dtype):
    added = to_additive(CAUSAL, dtype)
    assert added.dtype == dtype
    assert (added[CAUSAL] == 0).all()
    assert (added[~CAUSAL] == -np.inf).all()


def test_additive_masks_are_float32_by_default():
    assert to_additive(CAUSAL).dtype == np.float32


def test_hidden_keys_weigh_nothing():
    scores = np.array([[1.0, 7.0, 3.0], [2.0, 0.0, 9.0], [1.0, 1.0, 1.0]])
    powers = np.exp(scores + to_additive(CAUSAL, np.float64))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    assert (weights[~CAUSAL] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    np.testing.assert_allclose(weights[2], [1 / 3] * 3)
