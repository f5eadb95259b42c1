import numpy as np
import pytest

from tinyllm.xfmr.masks import causal_mask, combine, padding_mask, sliding_window_mask, to_additive


def test_causal_shape():
    assert causal_mask(3, 5).shape == (3, 5)
    assert causal_mask(4).shape == (4, 4)


def test_padding_shape():
    assert padding_mask([1, 2], 5).shape == (2, 5)


def test_window_shape():
    assert sliding_window_mask(3, 5, 2).shape == (3, 5)


def test_combine_shape():
    assert combine(causal_mask(3), padding_mask([1, 3], 3)[:, None, :]).shape == (2, 3, 3)


def test_additive_shape():
    assert to_additive(causal_mask(3)).shape == (3, 3)


def test_numbers_are_no_masks():
    with pytest.raises(ValueError):
        to_additive(np.zeros((2, 2)))
