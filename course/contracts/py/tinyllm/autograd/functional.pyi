"""Differentiable operations: Tensors in, Tensors out. Imported as F."""

from collections.abc import Sequence
from typing import Any, Literal

from numpy.typing import NDArray

from tinyllm.autograd.tensor import Tensor

def exp(x: Tensor) -> Tensor: ...
def log(x: Tensor) -> Tensor: ...
def tanh(x: Tensor) -> Tensor: ...
def sigmoid(x: Tensor) -> Tensor: ...
def relu(x: Tensor) -> Tensor: ...
def gelu(x: Tensor, approximate: Literal["none", "tanh"] = "none") -> Tensor: ...
def sum(x: Tensor, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor: ...
def mean(x: Tensor, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor: ...
def max(x: Tensor, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """The largest values; elements that tie share the gradient evenly."""

def var(x: Tensor, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, correction: int = 0) -> Tensor:
    """The variance; the sum of squares is divided by n - correction."""

def reshape(x: Tensor, shape: Sequence[int]) -> Tensor: ...
def transpose(x: Tensor, a: int, b: int) -> Tensor:
    """Swap the axes `a` and `b`."""

def permute(x: Tensor, dims: Sequence[int]) -> Tensor:
    """Axis i of the result is axis dims[i] of `x`."""

def concat(xs: Sequence[Tensor], axis: int = 0) -> Tensor: ...
def stack(xs: Sequence[Tensor], axis: int = 0) -> Tensor: ...
def where(cond: NDArray[Any], a: Tensor, b: Tensor) -> Tensor: ...
def gather(x: Tensor, idx: NDArray[Any], axis: int) -> Tensor:
    """numpy's take_along_axis."""

def embedding(weight: Tensor, ids: NDArray[Any]) -> Tensor:
    """Rows of `weight` [n, d] at `ids` [...], as [..., d]. Raises ValueError for an id outside [0, n)."""

def masked_fill(x: Tensor, mask: NDArray[Any], value: float) -> Tensor:
    """`x` with `value` wherever the bool `mask` is True; no gradient reaches those elements."""

def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) normalised along `axis`; a slice that is -inf throughout gives zeros and a zero gradient."""

def log_softmax(x: Tensor, axis: int = -1) -> Tensor: ...
def logsumexp(x: Tensor, axis: int = -1, keepdims: bool = False) -> Tensor: ...
def dropout(x: Tensor, p: float, training: bool, rng: Any) -> Tensor:
    """Zero each element with probability `p` and divide the others by 1 - p, while training.

    Draws rng.uniforms(x.size) in C order and keeps the elements where the draw is at least `p`; with training off
    or p = 0 returns `x` itself and draws nothing. Raises ValueError unless 0 <= p <= 1.
    """

def matmul(a: Tensor, b: Tensor) -> Tensor: ...
