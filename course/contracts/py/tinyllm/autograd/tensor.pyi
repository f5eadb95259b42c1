"""Arrays go in; values that remember how they were made, and can send gradients back, come out."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

class Tensor:
    """A numpy array with an optional place in the autograd graph.

    `data` is copied and converted to `dtype`. Raises ValueError when `dtype` is not a floating type.
    """

    data: NDArray[Any]
    grad: NDArray[Any] | None  # leaves only; same shape and dtype as data
    requires_grad: bool

    def __init__(self, data: ArrayLike, requires_grad: bool = False, dtype: DTypeLike = np.float32) -> None: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def ndim(self) -> int: ...
    def __len__(self) -> int: ...
    def backward(self, grad: ArrayLike | None = None) -> None:
        """Add d(self)/d(leaf), contracted with `grad`, into `.grad` of every leaf that can be reached.

        `grad` has the shape of self, or is left out when self has one element. Raises RuntimeError when self needs
        no gradient, when `grad` is missing for more than one element, or when an op returned a gradient of the
        wrong shape; ValueError when `grad` has another shape than self.
        """

    def detach(self) -> Tensor:
        """The same data, shared, outside the graph."""

    def numpy(self) -> NDArray[Any]:
        """The array itself, not a copy."""

    def __add__(self, other: Any) -> Tensor: ...
    def __radd__(self, other: Any) -> Tensor: ...
    def __sub__(self, other: Any) -> Tensor: ...
    def __rsub__(self, other: Any) -> Tensor: ...
    def __mul__(self, other: Any) -> Tensor: ...
    def __rmul__(self, other: Any) -> Tensor: ...
    def __truediv__(self, other: Any) -> Tensor: ...
    def __rtruediv__(self, other: Any) -> Tensor: ...
    def __matmul__(self, other: Any) -> Tensor: ...
    def __rmatmul__(self, other: Any) -> Tensor: ...
    def __pow__(self, exponent: float) -> Tensor:
        """self ** exponent for a number; TypeError for a Tensor."""

    def __neg__(self) -> Tensor: ...
    def __getitem__(self, index: Any) -> Tensor:
        """Indexing as in numpy; an index that occurs twice receives both gradients."""

def from_op(
    data: ArrayLike,
    parents: Sequence[Tensor],
    vjp: Callable[[NDArray[Any]], Sequence[NDArray[Any] | None]],
    op: str = "",
) -> Tensor:
    """A Tensor holding `data`, computed from `parents`; every differentiable operation is made with this.

    `vjp(g)` takes the gradient of the result and returns one gradient, or None, per parent. The graph is recorded
    only while gradients are enabled and some parent requires one.
    """
