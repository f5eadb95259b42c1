"""Softmax and its relatives on numpy arrays, safe for large inputs and for slices that are -inf throughout."""

from typing import Any

from numpy.typing import NDArray

def softmax(x: NDArray[Any], axis: int = -1) -> NDArray[Any]:
    """Shape and dtype of `x`; a slice that is -inf throughout gives zeros."""

def log_softmax(x: NDArray[Any], axis: int = -1) -> NDArray[Any]: ...
def logsumexp(x: NDArray[Any], axis: int = -1, keepdims: bool = False) -> NDArray[Any]:
    """`axis` is gone from the result, or has size 1 with `keepdims`; a slice that is -inf throughout gives -inf."""
