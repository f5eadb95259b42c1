import numpy as np
import pytest

from tinyllm.num.rng import PCG32
from tinyllm.xfmr.mha import MultiHeadAttention


@pytest.fixture
def draw():
    return np.random.default_rng(2024)


@pytest.fixture
def make(draw):
    """Builds float64 modules in which no parameter is zero."""

    def build(d_model, n_heads, **options):
        module = MultiHeadAttention(d_model, n_heads, rng=PCG32(17), **options)
        for _, p in module.named_parameters():
            p.data = draw.normal(size=p.shape) * 0.6
        return module

    return build
