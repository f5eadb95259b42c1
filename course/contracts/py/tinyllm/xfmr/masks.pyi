"""Sizes go in; bool masks with True for "may attend" come out.

Every function returns a new array that its caller may write into, and leaves its arguments as they are. ValueError
for a size or window below 1, a negative q_offset, lengths that are not one axis of whole numbers in [0, T], masks that
are not bool, and masks that do not broadcast together.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

def causal_mask(Tq: int, Tk: int | None = None, q_offset: int = 0) -> NDArray[np.bool_]:
    """[Tq, Tk]: query i stands at position i + q_offset and sees the keys up to and including it. Tk None means Tq."""

def padding_mask(lengths: ArrayLike, T: int) -> NDArray[np.bool_]:
    """[B, T]: the first lengths[b] positions of sequence b."""

def sliding_window_mask(Tq: int, Tk: int, window: int, q_offset: int = 0) -> NDArray[np.bool_]:
    """[Tq, Tk]: causal, and at most `window` keys back, the query's own position included."""

def combine(*masks: NDArray[Any]) -> NDArray[np.bool_]:
    """Logical and of all masks, with broadcasting; ValueError for one that is not bool."""

def to_additive(mask: NDArray[Any], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """0 where the mask is True, -inf where it is False; ValueError for a mask that is not bool."""
