import os

import numpy as np

from tinyllm.autograd.tensor import Tensor
from tinyllm.xfmr.mha import MultiHeadAttention


def test_weights_sum_to_one():
    x = Tensor(np.random.default_rng(1).normal(size=(1, 4, 6)))
    _, weights = MultiHeadAttention(6, 2).attend(x, x)
    np.testing.assert_allclose(weights.data.sum(axis=-1), 1.0, rtol=1e-5)


def test_weights_are_spread_out():
    """No seed: how far the largest weight goes depends on the draw, and half of all draws go too far."""
    rng = np.random.default_rng(int.from_bytes(os.urandom(8), "big"))
    x = rng.normal(size=(1, 4, 6))
    out, weights = MultiHeadAttention(6, 2).attend(Tensor(x), Tensor(x))
    assert out.shape == (1, 4, 6)
    assert weights.data.max() < np.median([w_max(seed) for seed in range(15)])


def w_max(seed):
    x = Tensor(np.random.default_rng(seed).normal(size=(1, 4, 6)))
    return MultiHeadAttention(6, 2).attend(x, x)[1].data.max()
