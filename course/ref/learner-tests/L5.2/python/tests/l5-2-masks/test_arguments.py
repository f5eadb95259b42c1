"""What is refused, and what a call leaves behind."""

import numpy as np
import pytest
from positions import causal

from tinyllm.xfmr.masks import causal_mask, combine, padding_mask, sliding_window_mask, to_additive


@pytest.mark.parametrize("sizes", [(0,), (-1,), (2, 0), (2, -1), (2, 2, -1)])
def test_causal_masks_that_cannot_be(sizes):
    with pytest.raises(ValueError):
        causal_mask(*sizes)


@pytest.mark.parametrize("sizes", [(0, 2, 1), (2, 0, 1), (2, 2, 0), (2, 2, -1), (2, 2, 1, -1)])
def test_windows_that_cannot_be(sizes):
    with pytest.raises(ValueError):
        sliding_window_mask(*sizes)


@pytest.mark.parametrize(("lengths", "T"), [([1], 0), ([1, 3], 2), ([-1], 2), ([1.5], 2), ([[1]], 2), (1, 2)])
def test_lengths_that_cannot_be(lengths, T):
    with pytest.raises(ValueError):
        padding_mask(lengths, T)


@pytest.mark.parametrize("number", [np.ones((2, 2)), np.ones((2, 2), dtype=int)])
def test_numbers_are_no_masks(number):
    true = np.ones((2, 2), dtype=bool)
    for masks in ([number], [number, true], [true, number]):
        with pytest.raises(ValueError):
            combine(*masks)
    with pytest.raises(ValueError):
        to_additive(number)


def test_masks_that_do_not_go_together():
    with pytest.raises(ValueError):
        combine(causal(2, 2), causal(3, 3))


def test_arguments_stay_as_they_are():
    one, other = causal(3, 3), ~causal(3, 3)
    combine(one, other)
    to_additive(one)
    assert (one == causal(3, 3)).all()
    assert (other == ~causal(3, 3)).all()


def test_results_can_be_written_into():
    mask = causal(3, 3)
    combine(mask)[...] = False
    to_additive(mask)[...] = 1
    assert (mask == causal(3, 3)).all()
    for call in (lambda: causal_mask(3), lambda: sliding_window_mask(3, 3, 2), lambda: padding_mask([1, 3], 3)):
        before = call().copy()
        call()[...] = False
        assert (call() == before).all()
