import math

import numpy as np
import pytest

from tinyllm.num.rng import PCG32
from tinyllm.prob.rv import normal


def test_the_first_pair_of_seed_0():
    np.testing.assert_allclose(normal(PCG32(0), 2), [-0.809237, 0.054875], atol=5e-7)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
def test_each_pair_of_uniforms_gives_a_cosine_then_a_sine(n):
    rng, expected = PCG32(4), []
    for _ in range((n + 1) // 2):
        u1, u2 = rng.uniform(), rng.uniform()
        r = math.sqrt(-2 * math.log(1 - u1))
        expected += [r * math.cos(2 * math.pi * u2), r * math.sin(2 * math.pi * u2)]
    used = PCG32(4)
    drawn = normal(used, n)
    assert drawn.dtype == np.float64 and drawn.shape == (n,)
    np.testing.assert_allclose(drawn, expected[:n], rtol=1e-13)
    assert used.state() == rng.state()  # an odd n drops the last sine, not its draws


def test_moments_are_those_of_the_standard_normal():
    x = normal(PCG32(1), 40_000)
    assert abs(x.mean()) < 0.02 and abs(x.var() - 1) < 0.03 and abs((x**3).mean()) < 0.06


def test_a_draw_of_exactly_zero_is_finite():
    class Zeros:
        def uniforms(self, n):
            return np.zeros(n)

    assert normal(Zeros(), 3).tolist() == [0.0, 0.0, 0.0]


def test_a_negative_count_is_refused():
    with pytest.raises(ValueError):
        normal(PCG32(0), -1)
