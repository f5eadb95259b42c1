"""A shape and a stream arrive; starting values leave."""

import math

import numpy as np
from numpy.typing import NDArray

from tinyllm.num.rng import Rng
from tinyllm.prob.rv import normal


def normal_init(shape: tuple[int, ...], std: float, rng: Rng) -> NDArray[np.float32]:
    """float32 [*shape] from N(0, std²), drawn in C order."""
    return (normal(rng, math.prod(shape)) * std).astype(np.float32).reshape(shape)
