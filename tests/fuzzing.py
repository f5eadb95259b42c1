"""How much the fuzzers try: a fixed set of examples on every change, more and other ones by hand.

    AUTOGRADER_FUZZ_EXAMPLES=100000 python -m pytest tests/sandbox/test_fuzz_wire.py tests/grader/test_fuzz_intake.py

What such a run finds is kept as an @example beside the property it broke.
"""

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

BY_HAND = "AUTOGRADER_FUZZ_EXAMPLES" in os.environ


def fuzzed(examples: int) -> settings:
    """So many examples, the same ones every time, unless the environment asks for another number."""
    return settings(
        max_examples=int(os.environ.get("AUTOGRADER_FUZZ_EXAMPLES", examples)),
        derandomize=not BY_HAND,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


EXTREMES = [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff", b"\0", b"\xff", b"\n"]


@st.composite
def damaged(draw: st.DrawFn, sources: list[bytes]) -> bytes:
    """One of `sources` with up to eight places overwritten, cut out, doubled, or replaced by part of another one."""
    data = bytearray(draw(st.sampled_from(sources)))
    for _ in range(draw(st.integers(0, 8))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        end = min(len(data), at + draw(st.integers(0, 64)))
        how = draw(st.sampled_from(["bytes", "extreme", "cut", "double", "end", "splice"]))
        if how == "bytes":
            new = draw(st.binary(max_size=8))
            data[at : at + len(new)] = new
        elif how == "extreme":
            new = draw(st.sampled_from(EXTREMES))
            data[at : at + len(new)] = new
        elif how == "cut":
            del data[at:end]
        elif how == "double":
            data[end:end] = data[at:end]
        elif how == "end":
            del data[at:]
        else:
            other = draw(st.sampled_from(sources))
            data[at:end] = other[at : at + draw(st.integers(0, 128))]
    return bytes(data)
