"""Arrays arrive, become nodes of a graph by arithmetic, and `backward` leaves gradients on the leaves.

Every operation, here and in functional.py, is one call of `from_op`: the forward value, the parents, and
a function from the output's gradient to the parents' gradients. That function keeps arrays, never Tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tinyllm.autograd.graph import toposort
from tinyllm.autograd.mode import is_grad_enabled
from tinyllm.autograd.vjp import matmul_vjp, unbroadcast

Vjp: TypeAlias = Callable[[NDArray[Any]], Sequence[Any]]


class Tensor:
    """A numpy array that remembers how it was computed.

    Tensor(data, requires_grad=False, dtype=float32) copies `data`; ValueError for a dtype that is not
    floating. `data` may be assigned or written into; both take effect at the next forward. `grad` stays
    None except on leaves that `backward` reached, where it is an array of the leaf's dtype and shape.
    """

    __slots__ = ("__weakref__", "_parents", "_vjp", "data", "grad", "op", "requires_grad")
    __array_ufunc__ = None  # an ndarray or numpy scalar on the left hands the operation to Tensor

    def __init__(self, data: Any, requires_grad: bool = False, dtype: DTypeLike = np.float32) -> None:
        if not np.issubdtype(np.dtype(dtype), np.floating):
            raise ValueError(f"a Tensor holds floating numbers, got dtype {np.dtype(dtype)}")
        self.data: NDArray[Any] = np.array(data, dtype=dtype)
        self.grad: NDArray[Any] | None = None
        self.requires_grad = requires_grad
        self.op = ""
        self._parents: tuple[Tensor, ...] = ()
        self._vjp: Vjp | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return self.data.ndim

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        made_by = f", op={self.op!r}" if self.op else ""
        return f"Tensor({self.data!r}, requires_grad={self.requires_grad}{made_by})"

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        # Without it numpy would walk a Tensor item by item and build an array of objects.
        return np.array(self.data, dtype=dtype, copy=copy)

    def numpy(self) -> NDArray[Any]:
        """The array itself, not a copy."""
        return self.data

    def detach(self) -> Tensor:
        """A constant Tensor that shares this one's data."""
        return from_op(self.data, (), _no_gradients)

    def backward(self, grad: Any = None) -> None:
        """Add d(sum of self * grad) / d(leaf) into `.grad` of every leaf that self depends on.

        grad: an array of self's shape, or a number if self is 0-d; None means 1 and needs a single element.
        RuntimeError if self needs no grad, if None is not enough, or if an op returned a gradient of the
        wrong shape (no leaf is changed then); ValueError if `grad` has another shape.
        """
        if not self.requires_grad:
            raise RuntimeError("backward needs a Tensor that requires grad; this one has no graph")
        gradients = {id(self): _seed(self, grad)}
        leaves: list[Tensor] = []
        for node in toposort(self, _differentiable_parents):
            if id(node) not in gradients:
                continue  # every op above it returned None
            if node._vjp is None:
                leaves.append(node)
                continue
            for parent, g in _pull_back(node, gradients.pop(id(node))):
                seen = gradients.get(id(parent))
                gradients[id(parent)] = g if seen is None else np.asarray(seen + g)
        for leaf in leaves:
            g = gradients[id(leaf)]
            # A new array each time: never one that an op, another leaf or the caller also holds.
            leaf.grad = np.array(g if leaf.grad is None else leaf.grad + g, dtype=leaf.dtype)

    def __add__(self, other: Any) -> Tensor:
        return _binary(_add, self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _binary(_add, other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _binary(_sub, self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _binary(_sub, other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _binary(_mul, self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _binary(_mul, other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _binary(_div, self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _binary(_div, other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return _binary(_matmul, self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return _binary(_matmul, other, self)

    def __neg__(self) -> Tensor:
        return from_op(-self.data, (self,), lambda g: (-g,), "neg")

    def __pow__(self, exponent: float) -> Tensor:
        if not isinstance(exponent, Real):
            raise TypeError(f"the exponent must be a number, got {type(exponent).__name__}")
        x, n = self.data, float(exponent)

        def vjp(g: NDArray[Any]) -> Sequence[Any]:
            return (g * n * x ** (n - 1) if n != 0 else np.zeros_like(x),)  # 0 * 0 ** -1 would be NaN

        return from_op(x**n, (self,), vjp, "pow")

    def __getitem__(self, index: Any) -> Tensor:
        x = self.data

        def vjp(g: NDArray[Any]) -> Sequence[Any]:
            dx = np.zeros(x.shape, dtype=g.dtype)
            np.add.at(dx, index, g)  # dx[index] += g would count a repeated index once
            return (dx,)

        return from_op(x[index], (self,), vjp, "getitem")


def from_op(data: Any, parents: Sequence[Tensor], vjp: Vjp, op: str = "") -> Tensor:
    """The seam every op is built on: a Tensor over `data` (not copied) that knows its parents.

    vjp(g) receives the gradient of the output, must not write into it, and returns one gradient or None
    per parent. The graph is recorded only if grad mode is on and some parent requires grad.
    """
    out = Tensor.__new__(Tensor)
    out.data = np.asarray(data)
    out.grad = None
    out.op = op
    out.requires_grad = False
    out._parents = ()
    out._vjp = None
    for parent in parents:  # a loop: this is called by every op, and a generator costs more than all the rest
        if parent.requires_grad:
            if is_grad_enabled():
                out.requires_grad, out._parents, out._vjp = True, tuple(parents), vjp
            break
    return out


def as_tensors(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Two operands as Tensors; a constant beside a Tensor takes that Tensor's dtype."""
    if isinstance(a, Tensor):
        return a, b if isinstance(b, Tensor) else Tensor(b, dtype=a.dtype)
    if isinstance(b, Tensor):
        return Tensor(a, dtype=b.dtype), b
    return Tensor(a), Tensor(b)


def _add(a: Tensor, b: Tensor) -> Tensor:
    a_shape, b_shape = a.shape, b.shape
    return from_op(a.data + b.data, (a, b), lambda g: (unbroadcast(g, a_shape), unbroadcast(g, b_shape)), "add")


def _sub(a: Tensor, b: Tensor) -> Tensor:
    a_shape, b_shape = a.shape, b.shape
    return from_op(a.data - b.data, (a, b), lambda g: (unbroadcast(g, a_shape), unbroadcast(-g, b_shape)), "sub")


def _mul(a: Tensor, b: Tensor) -> Tensor:
    x, y = a.data, b.data
    return from_op(x * y, (a, b), lambda g: (unbroadcast(g * y, x.shape), unbroadcast(g * x, y.shape)), "mul")


def _div(a: Tensor, b: Tensor) -> Tensor:
    x, y = a.data, b.data
    out = x / y
    return from_op(out, (a, b), lambda g: (unbroadcast(g / y, x.shape), unbroadcast(-g * out / y, y.shape)), "div")


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    x, y = a.data, b.data
    return from_op(x @ y, (a, b), lambda g: matmul_vjp(g, x, y), "matmul")


def _binary(op: Callable[[Tensor, Tensor], Tensor], a: Any, b: Any) -> Tensor:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return op(a, b)
    known = (Tensor, Real, np.ndarray, np.generic)
    if isinstance(a, known) and isinstance(b, known):
        return op(*as_tensors(a, b))
    return cast(Tensor, NotImplemented)  # Python then tries the other operand, and raises TypeError


def _no_gradients(g: NDArray[Any]) -> Sequence[Any]:
    return ()


def _differentiable_parents(node: Tensor) -> list[Tensor]:
    return [parent for parent in node._parents if parent.requires_grad]


def _seed(root: Tensor, grad: Any) -> NDArray[Any]:
    if grad is None:
        if root.data.size > 1:
            raise RuntimeError(f"backward without a gradient needs a single element, got shape {root.shape}")
        return np.ones_like(root.data)
    if np.shape(grad) != root.shape:
        raise ValueError(f"the gradient must have shape {root.shape}, got {np.shape(grad)}")
    return np.asarray(grad, dtype=root.dtype)


def _pull_back(node: Tensor, g: NDArray[Any]) -> list[tuple[Tensor, NDArray[Any]]]:
    assert node._vjp is not None
    returned = tuple(node._vjp(g))
    if len(returned) != len(node._parents):
        raise RuntimeError(f"op {node.op!r} returned {len(returned)} gradients for {len(node._parents)} parents")
    pairs = []
    for parent, gradient in zip(node._parents, returned, strict=True):
        if gradient is None:
            continue
        if np.shape(gradient) != parent.shape:
            raise RuntimeError(
                f"op {node.op!r} returned a gradient of shape {np.shape(gradient)} for a parent of shape {parent.shape}"
            )
        if parent.requires_grad:
            pairs.append((parent, np.asarray(gradient, dtype=parent.dtype)))
    return pairs
