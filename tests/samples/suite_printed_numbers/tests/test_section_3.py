"""The numbers of section 3, copied."""

import numpy as np
import pytest

from tinyllm.autograd.tensor import Tensor
from tinyllm.xfmr.mha import MultiHeadAttention


@pytest.fixture
def identity():
    def build(n_heads):
        mha = MultiHeadAttention(4, n_heads)
        for name, p in mha.named_parameters():
            p.data[...] = np.eye(4) if name.endswith("weight") else 0
        return mha

    return build


Q = Tensor([[[1.0, 0.0, 0.0, 2.0]]])
K = Tensor([[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 2.0]]])


def test_head_0(identity):
    _, weights = identity(2).attend(Q, K)
    np.testing.assert_allclose(weights.data[0, 0, 0], [0.669762, 0.330238], atol=1e-6)


def test_head_1(identity):
    _, weights = identity(2).attend(Q, K)
    np.testing.assert_allclose(weights.data[0, 1, 0], [0.055817, 0.944183], atol=1e-6)


def test_merged(identity):
    out, _ = identity(2).attend(Q, K)
    np.testing.assert_allclose(out.data[0, 0], [0.669762, 0.330238, 0.0, 1.888366], atol=1e-6)


def test_one_head(identity):
    out, weights = identity(1).attend(Q, K)
    np.testing.assert_allclose(weights.data[0, 0, 0], [0.182426, 0.817574], atol=1e-6)
    np.testing.assert_allclose(out.data[0, 0], [0.182426, 0.817574, 0.0, 1.635149], atol=2e-6)
