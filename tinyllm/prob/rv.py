"""A uniform stream arrives; standard normal numbers leave."""

import numpy as np
from numpy.typing import NDArray

from tinyllm.num.rng import Rng


def normal(rng: Rng, n: int) -> NDArray[np.float64]:
    """Draw float64 [n] from N(0, 1) by Box-Muller: each pair u1, u2 gives a cosine, then a sine.

    An odd `n` drops the last sine. 1 - u1 lies in (0, 1], so the logarithm is finite.
    """
    if n < 0:
        raise ValueError(f"cannot draw {n} numbers")
    pairs = np.reshape(rng.uniforms(2 * ((n + 1) // 2)), (-1, 2))
    radius = np.sqrt(-2.0 * np.log(1.0 - pairs[:, 0]))
    angle = 2.0 * np.pi * pairs[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[:n]
