"""Two arrays of one shape and the first place where they differ go in; the piece of both around that place comes out,
as one line of text that reports read (grader/compared.py) and draw.
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

MARK = "Compared: "
MOST_ROWS, MOST_COLUMNS = 6, 8  # what a test says has to fit in 2,000 characters, sentence and all


def piece(actual: NDArray[Any], expected: NDArray[Any], at: tuple[int, ...], axes: str = "") -> str:
    """`axes` names the axes in their order, with blanks between: "batch head query key". The last two are rows and
    columns; of all others it is the slice that `at` lies in."""
    if not at:
        return ""
    row, column = (0, *at)[-2:]
    a, e = (np.atleast_2d(array[at[:-2]] if len(at) > 2 else array) for array in (actual, expected))  # [rows, columns]
    top, left = _start(row, a.shape[0], MOST_ROWS), _start(column, a.shape[1], MOST_COLUMNS)
    cut = slice(top, top + MOST_ROWS), slice(left, left + MOST_COLUMNS)
    said = {
        "axes": axes.split(),
        "shape": list(actual.shape),
        "at": list(at),
        "first": [top, left],
        "expected": [[_number(value) for value in line] for line in e[cut]],
        "actual": [[_number(value) for value in line] for line in a[cut]],
    }
    return MARK + json.dumps(said, separators=(",", ":"))


def _start(at: int, length: int, most: int) -> int:
    """Where a window of `most` begins that holds `at`, in the middle if it can."""
    return max(0, min(at - most // 2, length - most))


def _number(value: Any) -> float | str:
    """Five digits; as text what JSON has no number for."""
    return float(f"{float(value):.5g}") if np.isfinite(value) else str(float(value))
