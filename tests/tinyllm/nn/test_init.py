import numpy as np
import pytest

from tinyllm.nn.init import normal_init
from tinyllm.num.rng import PCG32
from tinyllm.prob.rv import normal


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 2)])
def test_values_are_scaled_normals_in_c_order(shape):
    w = normal_init(shape, 0.5, PCG32(1))
    assert w.dtype == np.float32 and w.shape == shape
    np.testing.assert_array_equal(w.ravel(), (normal(PCG32(1), w.size) * 0.5).astype(np.float32))
