"""A function, its inputs and its claimed gradients arrive; a report against central differences leaves."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class GradcheckReport:
    """ok if every element has |analytic - numeric| <= atol + rtol |numeric|.

    worst_input and worst_index name the element furthest beyond (or nearest to) its tolerance; None if there
    are no elements. max_rel_err divides by the larger of the two magnitudes.
    """

    ok: bool
    max_abs_err: float
    max_rel_err: float
    worst_input: int | None
    worst_index: tuple[int, ...] | None


def numerical_grad(f: Callable[..., Any], inputs: Sequence[Any], eps: float = 1e-6) -> list[NDArray[np.float64]]:
    """(f(x + eps) - f(x - eps)) / (2 eps) for each element of each input; float64, shaped as the inputs.

    f(*inputs) takes float64 arrays and returns one number. It is given copies, so neither it nor this
    function can change the caller's arrays. ValueError if eps is not finite and positive.
    """
    if not (math.isfinite(eps) and eps > 0):
        raise ValueError(f"eps must be finite and positive, got {eps}")
    points = [np.array(x, dtype=np.float64) for x in inputs]
    gradients = [np.zeros_like(x) for x in points]

    def value() -> float:
        result = np.asarray(f(*(x.copy() for x in points)))
        if result.size != 1:
            raise ValueError(f"f must return one number, got shape {result.shape}")
        return float(result.reshape(()))

    for point, gradient in zip(points, gradients, strict=True):
        for index in np.ndindex(point.shape):
            centre = point[index]
            point[index] = centre + eps
            above = value()
            point[index] = centre - eps
            below = value()
            point[index] = centre
            gradient[index] = (above - below) / (2 * eps)
    return gradients


def gradcheck(
    f: Callable[..., Any],
    inputs: Sequence[Any],
    analytic: Sequence[Any],
    eps: float = 1e-6,
    rtol: float = 1e-5,
    atol: float = 1e-7,
) -> GradcheckReport:
    """Compare `analytic` (one array per input) with `numerical_grad`; NaN or infinity on either side fails.

    ValueError for another number of gradients than inputs, for a gradient of another shape than its input,
    for a bad eps, or for a negative or NaN tolerance.
    """
    if len(inputs) != len(analytic):
        raise ValueError(f"expected {len(inputs)} gradients, one per input, got {len(analytic)}")
    for i, (x, a) in enumerate(zip(inputs, analytic, strict=True)):
        if np.shape(x) != np.shape(a):
            raise ValueError(f"gradient {i} must have shape {np.shape(x)}, got {np.shape(a)}")
    if not (rtol >= 0 and atol >= 0):
        raise ValueError(f"tolerances must not be negative, got rtol={rtol}, atol={atol}")

    worst: tuple[float, int, tuple[int, ...]] | None = None
    max_abs_err = max_rel_err = 0.0
    ok = True
    for i, (a, n) in enumerate(zip(analytic, numerical_grad(f, inputs, eps), strict=True)):
        for index in np.ndindex(n.shape):
            claimed, measured = float(np.asarray(a)[index]), float(n[index])
            finite = math.isfinite(claimed) and math.isfinite(measured)
            abs_err = abs(claimed - measured)
            rel_err = abs_err / max(abs(claimed), abs(measured)) if finite and abs_err else abs_err
            excess = abs_err - (atol + rtol * abs(measured)) if finite else math.inf
            ok = ok and excess <= 0
            max_abs_err, max_rel_err = _larger(max_abs_err, abs_err), _larger(max_rel_err, rel_err)
            if worst is None or excess > worst[0]:
                worst = (excess, i, index)
    return GradcheckReport(
        ok=ok,
        max_abs_err=max_abs_err,
        max_rel_err=max_rel_err,
        worst_input=None if worst is None else worst[1],
        worst_index=None if worst is None else worst[2],
    )


def _larger(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b)
