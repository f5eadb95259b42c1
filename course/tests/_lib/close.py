"""An array and the array it should be go in; silence, or one sentence about the first difference, comes out."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Course tolerances by dtype: |actual - expected| <= atol + rtol * |expected|.
TOLERANCES: dict[str, tuple[float, float]] = {
    "float64": (1e-10, 1e-12),
    "float32": (1e-5, 1e-6),
    "float16": (1e-3, 1e-4),
}


def difference(actual: Any, expected: ArrayLike) -> str | None:
    """Why `actual` is not `expected`, or None: shape, then dtype, then finiteness, then values.

    `actual` has to be a numpy array of exactly the expected shape and dtype; nothing is broadcast or converted.
    """
    want = np.asarray(expected)
    if type(actual) is not np.ndarray:
        return f"expected a numpy array, got {type(actual).__name__}"
    if actual.shape != want.shape:
        return f"expected shape {list(want.shape)}, got {list(actual.shape)}"
    if actual.dtype != want.dtype:
        return f"expected dtype {want.dtype}, got {actual.dtype}"
    if want.size == 0:
        return None
    if want.dtype.name not in TOLERANCES:
        return None if bool(np.all(actual == want)) else _where(actual != want, actual, want)
    if not np.all(np.isfinite(actual)):
        return _where(~np.isfinite(actual), actual, want)
    rtol, atol = TOLERANCES[want.dtype.name]
    # Compared in float64: in float16 the difference itself would be rounded.
    a, e = actual.astype(np.float64), want.astype(np.float64)
    wrong = ~(np.abs(a - e) <= atol + rtol * np.abs(e))
    return _where(wrong, actual, want) if bool(np.any(wrong)) else None


def assert_close(actual: Any, expected: ArrayLike, message: str) -> None:
    """Fail with `message` and the difference when `actual` is not `expected`."""
    found = difference(actual, expected)
    assert found is None, f"{message} Found: {found}."


def _where(wrong: NDArray[Any], actual: NDArray[Any], want: NDArray[Any]) -> str:
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(np.count_nonzero(wrong))} of {want.size} values differ; at index {list(first)} "
        f"expected {float(want[first]):.9g}, got {float(actual[first]):.9g}"
    )
