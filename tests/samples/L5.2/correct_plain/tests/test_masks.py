import numpy as np
import pytest

from tinyllm.xfmr.masks import causal_mask, combine, padding_mask, sliding_window_mask, to_additive


def check(mask, expected):
    expected = np.array(expected)
    assert mask.dtype == bool
    assert mask.shape == expected.shape
    assert (mask == expected).all()


@pytest.mark.parametrize("Tq, Tk, offset", [(3, 3, 0), (2, 5, 0), (2, 5, 3), (5, 2, 0), (1, 4, 2)])
def test_causal(Tq, Tk, offset):
    check(causal_mask(Tq, Tk, offset), [[j <= i + offset for j in range(Tk)] for i in range(Tq)])


def test_causal_is_square_without_tk():
    check(causal_mask(2, q_offset=1), [[True, True], [True, True]])


@pytest.mark.parametrize("Tq, Tk, offset", [(4, 4, 0), (2, 6, 4), (3, 6, 1)])
@pytest.mark.parametrize("window", [1, 2, 3, 10])
def test_window(Tq, Tk, offset, window):
    expected = [[0 <= i + offset - j < window for j in range(Tk)] for i in range(Tq)]
    check(sliding_window_mask(Tq, Tk, window, offset), expected)


def test_padding():
    check(padding_mask([2, 0, 3, 1], 3), [[True, True, False], [False] * 3, [True] * 3, [True, False, False]])


def test_combine():
    causal = np.tril(np.ones((3, 3), dtype=bool))
    padding = np.array([[True, True, False], [False, True, True]])
    third = np.array([[True], [False], [True]])
    check(combine(causal, padding[:, None], third), causal[None] & padding[:, None] & third)
    check(combine(causal, padding[0]), causal & padding[0])
    check(combine(~causal, causal), np.zeros((3, 3), dtype=bool))
    check(combine(causal), causal)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_additive(dtype):
    mask = np.array([[True, False, False], [True, True, False]])
    added = to_additive(mask, dtype)
    assert added.dtype == dtype
    assert added.tolist() == [[0, -np.inf, -np.inf], [0, 0, -np.inf]]
    assert to_additive(mask).dtype == np.float32


def test_nothing_is_shared():
    causal, other = causal_mask(3), np.eye(3, dtype=bool)
    combine(causal, other)
    combine(causal)[...] = False
    to_additive(causal)
    assert causal.sum() == 6
    causal[...] = False
    assert causal_mask(3).sum() == 6


@pytest.mark.parametrize(
    "call",
    [
        lambda: causal_mask(0, 2),
        lambda: causal_mask(2, 0),
        lambda: causal_mask(2, 2, -1),
        lambda: sliding_window_mask(2, 2, 0),
        lambda: padding_mask([1, 3], 2),
        lambda: padding_mask([-1, 1], 2),
        lambda: combine(np.ones((2, 2), dtype=bool), np.ones((2, 2))),
        lambda: combine(np.ones((2, 2)), np.ones((2, 2), dtype=bool)),
        lambda: to_additive(np.ones((2, 2))),
    ],
)
def test_refused(call):
    with pytest.raises(ValueError):
        call()
