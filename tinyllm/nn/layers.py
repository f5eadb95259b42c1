"""Tensors arrive, transformed Tensors leave: the layers, with torch's names and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from tinyllm.autograd import functional as F
from tinyllm.autograd.tensor import Tensor
from tinyllm.nn.init import normal_init
from tinyllm.nn.module import Module
from tinyllm.num.rng import PCG32, Rng


class Linear(Module):
    """y = x Wᵀ + b, from [..., in_f] to [..., out_f].

    weight [out_f, in_f] starts normal with std = in_f ** -0.5, bias [out_f] at zero or None. rng None means
    PCG32(0).substream("init"). ValueError for a size below 1 or an input of another width.
    """

    def __init__(self, in_f: int, out_f: int, bias: bool = True, rng: Rng | None = None) -> None:
        super().__init__()
        _at_least_one(in_f=in_f, out_f=out_f)
        rng = PCG32(0).substream("init") if rng is None else rng
        self.in_f = in_f
        self.out_f = out_f
        self.weight = Tensor(normal_init((out_f, in_f), in_f**-0.5, rng), requires_grad=True)
        self.bias = Tensor(np.zeros(out_f), requires_grad=True) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 1 or x.shape[-1] != self.in_f:
            raise ValueError(f"Linear expects [..., {self.in_f}], got {x.shape}")
        out = F.matmul(x, F.transpose(self.weight, 0, 1))  # [..., in_f] @ [in_f, out_f] -> [..., out_f]
        return out if self.bias is None else out + self.bias


class Embedding(Module):
    """Integer ids [...] to rows [..., embedding_dim] of weight [num_embeddings, embedding_dim].

    The weight starts from N(0, 1); rng None means PCG32(0).substream("init"). ValueError for a size below 1.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, rng: Rng | None = None) -> None:
        super().__init__()
        _at_least_one(num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        rng = PCG32(0).substream("init") if rng is None else rng
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.weight = Tensor(normal_init((num_embeddings, embedding_dim), 1.0, rng), requires_grad=True)

    def forward(self, ids: ArrayLike) -> Tensor:
        return F.embedding(self.weight, ids)


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last axes, whose sizes are normalized_shape."""

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        ones, zeros = np.ones(self.normalized_shape), np.zeros(self.normalized_shape)
        self.weight = Tensor(ones, requires_grad=True) if elementwise_affine else None
        self.bias = Tensor(zeros, requires_grad=True) if elementwise_affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        size = len(self.normalized_shape)
        if x.shape[max(x.ndim - size, 0) :] != self.normalized_shape:
            raise ValueError(f"LayerNorm expects [..., {self.normalized_shape}], got {x.shape}")
        axes = tuple(range(-size, 0))
        centred = x - F.mean(x, axes, keepdims=True)
        out = centred / (F.var(x, axes, keepdims=True) + self.eps) ** 0.5
        out = out if self.weight is None else out * self.weight
        return out if self.bias is None else out + self.bias


class Dropout(Module):
    """F.dropout in training mode, the identity otherwise; rng None means PCG32(0).substream("dropout")."""

    def __init__(self, p: float = 0.5, rng: Rng | None = None) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout needs 0 <= p <= 1, got {p}")
        self.p = p
        self.rng: Rng = PCG32(0).substream("dropout") if rng is None else rng

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.p, self.training, self.rng)


class ReLU(Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x)


class Tanh(Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.tanh(x)


class GELU(Module):
    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x, self.approximate)


class ModuleList(Module):
    """A list of modules whose parameters count: children are named "0", "1", ..."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> ModuleList:
        """Add a child at the end; returns self."""
        if not isinstance(module, Module):
            raise TypeError(f"expected a Module, got {type(module).__name__}")
        setattr(self, str(len(self)), module)
        return self

    def __len__(self) -> int:
        return len(self._entries())

    def __iter__(self) -> Iterator[Module]:
        return (entry for entry in self._entries().values() if isinstance(entry, Module))

    def __getitem__(self, index: int) -> Module:
        return list(self)[index]


class Sequential(ModuleList):
    """Modules called one after the other, each on the result of the one before."""

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

    def forward(self, x: Tensor) -> Tensor:
        for module in self:
            x = module(x)
        return x


def _at_least_one(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")
