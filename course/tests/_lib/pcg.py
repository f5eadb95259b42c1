"""A seed goes in; the course's random numbers come out, from a copy that no unit can change."""

import math

import numpy as np
from numpy.typing import NDArray

_MASK64 = 2**64 - 1
_MULTIPLIER = 6364136223846793005
_GOLDEN = 0x9E3779B97F4A7C15
PURPOSES = {"init": 1, "dropout": 2, "shuffle": 3, "sample": 4, "mutation": 5}


class PCG32:
    """PCG-XSH-RR with 64 bits of state (O'Neill 2014), seeded as pcg32_srandom_r does."""

    def __init__(self, seed: int, seq: int = 54) -> None:
        self._seed = seed
        self._increment = ((seq << 1) | 1) & _MASK64
        self._state = 0
        self.next_u32()
        self._state = (self._state + seed) & _MASK64
        self.next_u32()

    def next_u32(self) -> int:
        old = self._state
        self._state = (old * _MULTIPLIER + self._increment) & _MASK64
        word = (((old >> 18) ^ old) >> 27) & 0xFFFFFFFF
        turn = old >> 59
        return ((word >> turn) | (word << (-turn & 31))) & 0xFFFFFFFF

    def uniform(self) -> float:
        """A float in [0, 1) with 53 random bits."""
        a, b = self.next_u32() >> 5, self.next_u32() >> 6
        return (a * 2**26 + b) * 2.0**-53

    def uniforms(self, n: int) -> NDArray[np.float64]:
        return np.array([self.uniform() for _ in range(n)], dtype=np.float64)

    def below(self, n: int) -> int:
        """An integer in [0, n); draws that would favour small numbers are thrown away."""
        threshold = (2**32 - n) % n
        while True:
            r = self.next_u32()
            if r >= threshold:
                return r % n

    def substream(self, purpose: str) -> "PCG32":
        k = PURPOSES[purpose]
        return PCG32(_splitmix64((self._seed + k * _GOLDEN) & _MASK64), seq=k)


def normal(rng: PCG32, n: int) -> NDArray[np.float64]:
    """`n` standard normal numbers by Box-Muller in pairs, cosine first."""
    out: list[float] = []
    while len(out) < n:
        u1, u2 = rng.uniform(), rng.uniform()
        radius, angle = math.sqrt(-2 * math.log(1 - u1)), 2 * math.pi * u2
        out += [radius * math.cos(angle), radius * math.sin(angle)]
    return np.array(out[:n], dtype=np.float64)


def _splitmix64(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK64
    return z ^ (z >> 31)
