"""An array and the array it should be go in; silence, or one sentence about the first difference, comes out."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from _lib.piece import piece

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
    wrong = _wrong(actual, want)
    return _where(wrong, actual, want) if bool(np.any(wrong)) else None


def _wrong(actual: NDArray[Any], want: NDArray[Any]) -> NDArray[Any]:
    """Where two arrays of one shape and dtype differ; where one is not finite, if there is such a place."""
    if want.dtype.name not in TOLERANCES:
        return np.asarray(actual != want)
    if not np.all(np.isfinite(actual)):
        return ~np.isfinite(actual)
    rtol, atol = TOLERANCES[want.dtype.name]
    # Compared in float64: in float16 the difference itself would be rounded.
    a, e = actual.astype(np.float64), want.astype(np.float64)
    return np.asarray(~(np.abs(a - e) <= atol + rtol * np.abs(e)))


def assert_close(actual: Any, expected: ArrayLike, message: str, axes: str = "") -> None:
    """Fail with `message` and the difference when `actual` is not `expected`. `axes` names the axes for the report:
    "batch head query key"."""
    found = difference(actual, expected)
    if found is not None:
        raise AssertionError("\n".join(filter(None, (f"{message} Found: {found}.", _piece(actual, expected, axes)))))


def _piece(actual: Any, expected: ArrayLike, axes: str) -> str:
    """What a report draws of two arrays that differ in their values."""
    want = np.asarray(expected)
    if type(actual) is not np.ndarray or actual.shape != want.shape or actual.dtype != want.dtype:
        return ""
    return piece(actual, want, _first(_wrong(actual, want)), axes)


def _where(wrong: NDArray[Any], actual: NDArray[Any], want: NDArray[Any]) -> str:
    first = _first(wrong)
    return (
        f"{int(np.count_nonzero(wrong))} of {want.size} values differ; at index {list(first)} "
        f"expected {float(want[first]):.9g}, got {float(actual[first]):.9g}"
    )


def _first(wrong: NDArray[Any]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(wrong)[0])
