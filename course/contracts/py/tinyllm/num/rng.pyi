"""A seed goes in; the same random numbers on every machine come out."""

from collections.abc import MutableSequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

PURPOSES: dict[str, int]

class PCG32:
    """O'Neill's PCG-XSH-RR generator, 64 bits of state and 32 bits of output, seeded like pcg32_srandom_r."""

    def __init__(self, seed: int, seq: int = 54) -> None: ...
    def next_u32(self) -> int:
        """The next number in [0, 2**32)."""

    def uniform(self) -> float:
        """A float in [0, 1) with 53 random bits, made of two draws."""

    def uniforms(self, n: int) -> NDArray[np.float64]:
        """`n` such floats [n]."""

    def below(self, n: int) -> int:
        """An unbiased integer in [0, n)."""

    def shuffle(self, xs: MutableSequence[Any]) -> None:
        """Shuffle `xs` in place (Fisher-Yates from the end)."""

    def state(self) -> Any:
        """All that `set_state` needs to go on from here."""

    def set_state(self, state: Any) -> None: ...
    def substream(self, purpose: str) -> PCG32:
        """An independent generator for one of PURPOSES; KeyError for any other name."""
