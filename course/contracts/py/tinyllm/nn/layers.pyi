"""The small layers every model is made of: Tensors in, Tensors out."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from numpy.typing import NDArray

from tinyllm.autograd.tensor import Tensor
from tinyllm.nn.module import Module

class Linear(Module):
    """x [..., in_f] -> x @ weight.T + bias [..., out_f].

    weight [out_f, in_f] is normal with standard deviation in_f ** -0.5, bias [out_f] zeros or None. Without `rng`
    the weights come from PCG32(0).substream("init").
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(self, in_f: int, out_f: int, bias: bool = True, rng: Any = None) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...

class Embedding(Module):
    """ids [...] -> rows of weight [num_embeddings, embedding_dim], as [..., embedding_dim]."""

    weight: Tensor

    def __init__(self, num_embeddings: int, embedding_dim: int, rng: Any = None) -> None: ...
    def forward(self, ids: NDArray[Any]) -> Tensor: ...

class LayerNorm(Module):
    """Normalise the last axes, of sizes normalized_shape, to mean 0 and variance 1; scale by weight, shift by bias."""

    weight: Tensor | None
    bias: Tensor | None

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
    ) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...

class Dropout(Module):
    """F.dropout in training mode, the identity in eval mode."""

    def __init__(self, p: float = 0.5, rng: Any = None) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...

class ReLU(Module):
    def forward(self, x: Tensor) -> Tensor: ...

class Tanh(Module):
    def forward(self, x: Tensor) -> Tensor: ...

class GELU(Module):
    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...

class ModuleList(Module):
    """A list of children named 0, 1, ..."""

    def __init__(self, modules: Iterable[Module] = ()) -> None: ...
    def append(self, module: Module) -> ModuleList:
        """Add a child at the end; returns self."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Module]: ...
    def __getitem__(self, index: int) -> Module: ...

class Sequential(ModuleList):
    """Applies its children one after another."""

    def __init__(self, *modules: Module) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...
