"""Uniform numbers go in; normally distributed ones come out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

def normal(rng: Any, n: int) -> NDArray[np.float64]:
    """`n` standard normal numbers [n] by Box-Muller, in pairs: cosine first, then sine."""
