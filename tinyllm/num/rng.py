"""A seed arrives; the same 32-bit numbers leave on every machine, and streams of their own for each purpose.

PCG-XSH-RR 64/32 after M. E. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good
Algorithms for Random Number Generation" (2014), seeded as her `pcg32_srandom_r`.
"""

from collections.abc import MutableSequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

PURPOSES = {"init": 1, "dropout": 2, "shuffle": 3, "sample": 4, "mutation": 5}

_MULTIPLIER = 6364136223846793005
_GOLDEN = 0x9E3779B97F4A7C15
_MASK_64 = (1 << 64) - 1


class Rng(Protocol):
    """What every function that takes an `rng` may ask of it."""

    def next_u32(self) -> int: ...
    def uniform(self) -> float: ...
    def uniforms(self, n: int) -> NDArray[np.float64]: ...
    def below(self, n: int) -> int: ...


class PCG32:
    """A stream of 32-bit integers chosen by `seq`, started at `seed`."""

    def __init__(self, seed: int, seq: int = 54) -> None:
        self.seed = int(seed) & _MASK_64
        self._increment = ((int(seq) << 1) | 1) & _MASK_64
        self._state = 0
        self.next_u32()
        self._state = (self._state + self.seed) & _MASK_64
        self.next_u32()

    def next_u32(self) -> int:
        """The next integer in [0, 2^32)."""
        s = self._state
        self._state = (s * _MULTIPLIER + self._increment) & _MASK_64
        word = (((s >> 18) ^ s) >> 27) & 0xFFFFFFFF
        turn = s >> 59
        return ((word >> turn) | (word << (-turn & 31))) & 0xFFFFFFFF

    def uniform(self) -> float:
        """A float64 in [0, 1) with 53 random bits, from two draws."""
        a, b = self.next_u32(), self.next_u32()
        return ((a >> 5) * 2.0**26 + (b >> 6)) * 2.0**-53

    def uniforms(self, n: int) -> NDArray[np.float64]:
        """What `n` calls of `uniform` would give, as float64 [n], with the stream left at the same place."""
        if n < 0:
            raise ValueError(f"cannot draw {n} numbers")
        words = self._next_words(2 * n).reshape(n, 2)
        return (words[:, 0] >> 5).astype(np.float64) * 2.0**26 * 2.0**-53 + (words[:, 1] >> 6) * 2.0**-53

    def below(self, n: int) -> int:
        """An integer in [0, n), unbiased because draws below 2^32 mod n are rejected.

        ValueError unless 1 <= n <= 2^32.
        """
        if not 1 <= n <= 1 << 32:
            raise ValueError(f"n must be between 1 and 2^32, got {n}")
        threshold = (1 << 32) % n
        while True:
            draw = self.next_u32()
            if draw >= threshold:
                return draw % n

    def shuffle(self, xs: MutableSequence[Any]) -> None:
        """Shuffle in place: Fisher-Yates from the end."""
        for i in range(len(xs) - 1, 0, -1):
            j = self.below(i + 1)
            xs[i], xs[j] = xs[j], xs[i]

    def state(self) -> tuple[int, int]:
        """Where the stream is: (state, increment), for `set_state`."""
        return self._state, self._increment

    def set_state(self, state: tuple[int, int]) -> None:
        """Continue from where `state()` was taken."""
        self._state, self._increment = state

    def substream(self, purpose: str) -> "PCG32":
        """An independent stream for one of PURPOSES (KeyError for another).

        It depends on the seed only, not on what was drawn so far.
        """
        k = PURPOSES[purpose]
        return PCG32(_splitmix64((self.seed + k * _GOLDEN) & _MASK_64), seq=k)

    def _next_words(self, n: int) -> NDArray[np.uint64]:
        # The state after i steps is m^i s + inc (1 + m + ... + m^(i-1)) mod 2^64, and uint64 arrays wrap.
        powers = np.full(n + 1, _MULTIPLIER, dtype=np.uint64)
        powers[0] = 1
        powers = np.cumprod(powers, dtype=np.uint64)
        sums = np.zeros(n + 1, dtype=np.uint64)
        np.cumsum(powers[:-1], out=sums[1:], dtype=np.uint64)
        states = powers * np.uint64(self._state) + sums * np.uint64(self._increment)
        self._state = int(states[n])
        s = states[:n]
        word = (((s >> 18) ^ s) >> 27) & 0xFFFFFFFF
        turn = s >> 59
        return np.asarray(((word >> turn) | (word << ((32 - turn) & 31))) & 0xFFFFFFFF, dtype=np.uint64)


def _splitmix64(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return z ^ (z >> 31)
