import numpy as np
import pytest

from tinyllm.xfmr.masks import causal_mask, combine, padding_mask, sliding_window_mask, to_additive


@pytest.mark.parametrize(
    ("Tq", "Tk", "q_offset"), [(4, None, 0), (3, 5, 0), (5, 3, 0), (2, 6, 4), (1, 1, 0), (3, None, 2)]
)
def test_a_query_may_attend_the_past_and_itself(Tq, Tk, q_offset):
    mask = causal_mask(Tq, Tk, q_offset)
    keys = Tq if Tk is None else Tk
    assert mask.dtype == bool
    assert mask.tolist() == [[j <= i + q_offset for j in range(keys)] for i in range(Tq)]


@pytest.mark.parametrize("window", [1, 2, 10])
@pytest.mark.parametrize("q_offset", [0, 3])
def test_a_window_holds_the_last_keys(window, q_offset):
    mask = sliding_window_mask(4, 6, window, q_offset)
    assert mask.dtype == bool
    expected = [[i + q_offset - window < j <= i + q_offset for j in range(6)] for i in range(4)]
    assert mask.tolist() == expected


def test_padding_follows_the_lengths():
    mask = padding_mask([2, 0, 3], 3)
    assert mask.dtype == bool
    assert mask.tolist() == [[True, True, False], [False] * 3, [True] * 3]
    assert padding_mask(np.array([1]), 2).shape == (1, 2)
    assert padding_mask([], 2).shape == (0, 2)


def test_combine_is_a_broadcast_and():
    causal, padding = causal_mask(3), padding_mask([3, 1], 3)[:, None, :]
    both = combine(causal, padding)
    assert both.shape == (2, 3, 3) and both.dtype == bool
    np.testing.assert_array_equal(both, causal & padding)
    assert combine(causal, padding, np.zeros((1, 1), dtype=bool)).any() == np.False_


def test_combine_of_one_mask_is_a_copy():
    mask = causal_mask(2)
    combine(mask)[...] = False
    assert mask[0, 0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_additive_is_0_or_minus_infinity(dtype):
    out = to_additive(np.array([[True, False]]), dtype)
    assert out.dtype == dtype and out.tolist() == [[0.0, -np.inf]]
    assert to_additive([True]).dtype == np.float32


@pytest.mark.parametrize(
    "call",
    [
        lambda: causal_mask(0),
        lambda: causal_mask(-1),
        lambda: causal_mask(2, 0),
        lambda: causal_mask(2, 2, -1),
        lambda: causal_mask(2.5),
        lambda: sliding_window_mask(2, 2, 0),
        lambda: sliding_window_mask(0, 2, 1),
        lambda: sliding_window_mask(2, 2, 1, -1),
        lambda: padding_mask([1], 0),
        lambda: padding_mask([3], 2),
        lambda: padding_mask([-1], 2),
        lambda: padding_mask([1.0], 2),
        lambda: padding_mask([[1]], 2),
        lambda: padding_mask(1, 2),
        lambda: combine(),
        lambda: combine(np.ones((2, 2))),
        lambda: combine(causal_mask(2), np.ones((2, 2), dtype=int)),
        lambda: combine(causal_mask(2), causal_mask(3)),
        lambda: to_additive(np.zeros((2, 2))),
    ],
)
def test_bad_sizes_and_masks_are_refused(call):
    with pytest.raises(ValueError):
        call()
