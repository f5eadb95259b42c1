"""Gradients of the operations that need more than one line, as functions of numpy arrays."""

from typing import Any

from numpy.typing import NDArray

def unbroadcast(g: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Sum `g` over the axes along which an array of `shape` was broadcast; the result has `shape`."""

def matmul_vjp(g: NDArray[Any], A: NDArray[Any], B: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The gradients of A and of B for the gradient `g` of A @ B, in the shapes of A and B."""

def softmax_vjp(g: NDArray[Any], y: NDArray[Any], axis: int = -1) -> NDArray[Any]:
    """The gradient of the input of a softmax whose output was `y`."""
