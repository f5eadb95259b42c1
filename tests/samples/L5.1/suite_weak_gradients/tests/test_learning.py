"""Gradients arrive, and they have shapes."""

import numpy as np
import pytest

from tinyllm.autograd.tensor import Tensor
from tinyllm.xfmr.sdpa import scaled_dot_product_attention


@pytest.mark.parametrize("length", [1, 4])
def test_everything_learns(length):
    draw = np.random.default_rng(8)
    q, k, v = (Tensor(draw.normal(size=(2, length, 3)), requires_grad=True) for _ in range(3))
    out, weights = scaled_dot_product_attention(q, k, v)
    assert np.allclose(weights.data.sum(axis=-1), 1, atol=1e-5)
    out.backward(np.ones((2, length, 3)))
    for leaf in (q, k, v):
        assert leaf.grad.shape == (2, length, 3)
    assert np.allclose(v.grad.sum(axis=1), length, atol=1e-4)
