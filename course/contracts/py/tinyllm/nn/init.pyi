"""A shape and a generator go in; initial weights come out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

def normal_init(shape: Sequence[int], std: float, rng: Any) -> NDArray[np.float32]:
    """Normal numbers with mean 0 and standard deviation `std`, float32, drawn in C order."""
