import numpy as np
import pytest
import torch

from tests.tinyllm.closeness import assert_close
from tinyllm.num.stable import log_softmax, logsumexp, softmax

FUNCTIONS = [(softmax, torch.softmax), (log_softmax, torch.log_softmax), (logsumexp, torch.logsumexp)]
DTYPES = [np.float16, np.float32, np.float64]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("ours", "theirs"), FUNCTIONS)
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_values_match_torch_and_keep_their_dtype(ours, theirs, axis, scale):
    x = np.random.default_rng(0).normal(size=(3, 4, 5)) * scale
    for dtype in (np.float32, np.float64):
        cast = x.astype(dtype)
        assert_close(ours(cast, axis), theirs(torch.tensor(cast), axis).numpy())
    assert ours(x.astype(np.float16), axis).dtype == np.float16


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_that_is_all_minus_infinity_is_defined(dtype):
    x = np.array([[-np.inf, -np.inf], [0.0, -np.inf]], dtype=dtype)
    assert softmax(x).tolist() == [[0, 0], [1, 0]]
    assert log_softmax(x).tolist() == [[-np.inf, -np.inf], [0, -np.inf]]
    assert logsumexp(x).tolist() == [-np.inf, 0]
    assert logsumexp(x, keepdims=True).shape == (2, 1)


def test_an_axis_without_elements_counts_as_fully_masked():
    x = np.zeros((2, 0))
    assert softmax(x).shape == log_softmax(x).shape == (2, 0)
    assert logsumexp(x).tolist() == [-np.inf, -np.inf]


def test_the_input_is_left_alone_and_integers_become_float64():
    x = np.array([1, 2, 3])
    assert softmax(x).dtype == np.float64 and x.tolist() == [1, 2, 3]
    y = np.array([1.0, 2.0])
    for f, _ in FUNCTIONS:
        f(y)
    assert y.tolist() == [1.0, 2.0]
