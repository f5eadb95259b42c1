"""A tensor and the one it should be go in; silence, or one sentence about what sets them apart, comes out.

The unit's criterion: float64, |actual - expected| <= 1e-8 + 1e-6 |expected| at every place.
"""

from typing import Any

import torch
from _lib.piece import piece
from torch import Tensor

ATOL, RTOL = 1e-8, 1e-6
AXES = {3: "batch position feature"}  # by how many there are
SNAPSHOT_ATOL, SNAPSHOT_RTOL = 1e-6, 1e-4  # of the float32 snapshot


def difference(actual: Any, expected: Tensor, atol: float = ATOL, rtol: float = RTOL) -> str | None:
    """Why `actual` is not `expected`, or None: type, then shape, dtype, finiteness, values. Nothing is broadcast."""
    if not isinstance(actual, Tensor):
        return f"expected a torch.Tensor, got {type(actual).__name__}"
    if actual.shape != expected.shape:
        return f"expected shape {list(expected.shape)}, got {list(actual.shape)}"
    if actual.dtype != expected.dtype:
        return f"expected {expected.dtype}, got {actual.dtype}{_too_coarse(actual.dtype, expected.dtype)}"
    a, e = actual.detach(), expected.detach()
    if not bool(torch.isfinite(a).all()):
        return _where(~torch.isfinite(a), a, e)
    off = (a - e).abs()
    wrong = off > atol + rtol * e.abs()
    if not bool(wrong.any()):
        return None
    return _where(wrong, a, e) + _as_float32_rounds(off, e)


def assert_agrees(actual: Any, expected: Tensor, message: str, atol: float = ATOL, rtol: float = RTOL) -> None:
    """Fail with `message` and the difference when `actual` is not `expected`."""
    found = difference(actual, expected, atol, rtol)
    if found is not None:
        said = (f"{message} Found: {found}.", _piece(actual, expected, atol, rtol))
        raise AssertionError("\n".join(filter(None, said)))


def _piece(actual: Any, expected: Tensor, atol: float, rtol: float) -> str:
    """What a report draws of two tensors that differ in their values."""
    if not isinstance(actual, Tensor) or actual.shape != expected.shape or actual.dtype != expected.dtype:
        return ""
    a, e = actual.detach(), expected.detach()
    finite = torch.isfinite(a)
    wrong = (a - e).abs() > atol + rtol * e.abs() if bool(finite.all()) else ~finite
    return piece(a.numpy(), e.numpy(), _first(wrong), AXES.get(a.ndim, ""))


def _first(wrong: Tensor) -> tuple[int, ...]:
    return tuple(int(i) for i in torch.nonzero(wrong)[0])


def _too_coarse(actual: torch.dtype, expected: torch.dtype) -> str:
    if expected is not torch.float64:
        return ""
    return (
        f": the inputs are float64, and {str(actual).removeprefix('torch.')} cannot meet the criterion "
        f"(atol {ATOL:g}, rtol {RTOL:g}); compute in the dtype of in_features throughout"
    )


def _as_float32_rounds(off: Tensor, expected: Tensor) -> str:
    """A guess that helps: differences of this size come from a step in float32."""
    if expected.dtype is not torch.float64 or bool((off > 1e-5 * expected.abs().clamp(min=1.0)).any()):
        return ""
    return (
        f"; that is how float32 rounds, and it fails the float64 criterion (atol {ATOL:g}, rtol {RTOL:g}): look for a "
        "step that makes float32 of float64, such as .float(), a dtype argument, or a tensor created without one"
    )


def _where(wrong: Tensor, actual: Tensor, expected: Tensor) -> str:
    first = _first(wrong)
    return (
        f"{int(wrong.sum())} of {expected.numel()} values differ; at index {list(first)} "
        f"expected {float(expected[first]):.12g}, got {float(actual[first]):.12g}"
    )
