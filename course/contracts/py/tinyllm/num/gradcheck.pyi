"""A function and its claimed gradients go in; how far they are from central differences comes out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

@dataclass
class GradcheckReport:
    """Whether the gradients agree, by how much they differ at most, and where."""

    ok: bool
    max_abs_err: float
    max_rel_err: float
    worst_input: int
    worst_index: tuple[int, ...]

def numerical_grad(f: Callable[..., float], inputs: Sequence[NDArray[Any]], eps: float = 1e-6) -> list[NDArray[Any]]:
    """Central differences of f(*inputs), one array per input in its shape; the inputs are left as they were."""

def gradcheck(
    f: Callable[..., float],
    inputs: Sequence[NDArray[Any]],
    analytic: Sequence[NDArray[Any]],
    eps: float = 1e-6,
    rtol: float = 1e-5,
    atol: float = 1e-7,
) -> GradcheckReport:
    """Compare `analytic` with central differences; NaN never agrees.

    Raises ValueError when lengths or shapes do not match or `eps` is unusable.
    """
