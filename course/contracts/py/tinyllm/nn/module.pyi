"""Parameters and child modules are assigned; their names, values and mode can be read, saved and set."""

from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from tinyllm.autograd.tensor import Tensor

class Module:
    """Base class of layers and models.

    Assigning a Tensor that requires a gradient registers a parameter, assigning a Module registers a child, both in
    order. A subclass calls super().__init__() first; AttributeError says so otherwise.
    """

    training: bool

    def __init__(self) -> None: ...
    def forward(self, *args: Any, **kwargs: Any) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def named_parameters(self) -> Iterator[tuple[str, Tensor]]: ...
    def parameters(self) -> Iterator[Tensor]:
        """Every parameter once, even one that has two names."""

    def named_modules(self) -> Iterator[tuple[str, Module]]: ...
    def train(self, mode: bool = True) -> Module:
        """Set training mode here and in all children; returns self."""

    def eval(self) -> Module:
        """train(False)."""

    def zero_grad(self) -> None: ...
    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Copies of all parameters by name, in order of registration."""

    def load_state_dict(self, sd: Mapping[str, NDArray[Any]], strict: bool = True) -> None:
        """Copy values into the existing parameters, keeping their dtype.

        Raises ValueError for a wrong shape and, when strict, KeyError naming all missing and unexpected keys;
        nothing is copied then.
        """
