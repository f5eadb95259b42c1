import numpy as np
import pytest

from tinyllm.autograd.tensor import Tensor
from tinyllm.xfmr.mha import MultiHeadAttention


def test_init():
    mha = MultiHeadAttention(8, 2)
    assert mha.d_model == 8
    assert mha.n_heads == 2
    assert mha.d_head == 4


def test_bad_heads():
    with pytest.raises(ValueError):
        MultiHeadAttention(8, 3)


def test_split_shape():
    mha = MultiHeadAttention(8, 2)
    assert mha.split_heads(Tensor(np.ones((2, 5, 8)))).shape == (2, 2, 5, 4)


def test_merge_shape():
    mha = MultiHeadAttention(8, 2)
    assert mha.merge_heads(Tensor(np.ones((2, 2, 5, 4)))).shape == (2, 5, 8)


def test_attend_shapes():
    mha = MultiHeadAttention(8, 2)
    out, weights = mha.attend(Tensor(np.ones((2, 3, 8))), Tensor(np.ones((2, 5, 8))))
    assert out.shape == (2, 3, 8)
    assert weights.shape == (2, 2, 3, 5)


def test_weights_sum_to_one():
    mha = MultiHeadAttention(8, 2)
    x = Tensor(np.random.default_rng(0).standard_normal((2, 3, 8)))
    _, weights = mha.attend(x, x)
    assert np.allclose(weights.data.sum(-1), 1.0)
