"""Tensors and Modules are assigned as attributes; named parameters, modes and state dicts leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tinyllm.autograd.tensor import Tensor


class Module:
    """Base of everything with parameters.

    Assigning a Tensor that requires grad registers a parameter, assigning a Module registers a child, in
    the order of assignment. Assigning anything else under the same name takes the old entry out again.
    """

    training: bool = True

    def __init__(self) -> None:
        object.__setattr__(self, "_registered", {})

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{type(self).__name__} defines no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Module) or (isinstance(value, Tensor) and value.requires_grad):
            self._entries()[name] = value
        else:
            vars(self).get("_registered", {}).pop(name, None)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        vars(self).get("_registered", {}).pop(name, None)
        object.__delattr__(self, name)

    def _entries(self) -> dict[str, Tensor | Module]:
        entries: dict[str, Tensor | Module] | None = vars(self).get("_registered")
        if entries is None:
            raise AttributeError(
                f"call super().__init__() first in {type(self).__name__}.__init__(), "
                "before assigning parameters or modules"
            )
        return entries

    def _all_parameters(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        for name, entry in self._entries().items():
            if isinstance(entry, Module):
                yield from entry._all_parameters(f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}", entry

    def _all_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        yield prefix, self
        for name, entry in self._entries().items():
            if isinstance(entry, Module):
                yield from entry._all_modules(f"{prefix}.{name}" if prefix else name)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Dotted names and Tensors in order of assignment; a tied Tensor once, under its first name."""
        seen: set[int] = set()
        for name, parameter in self._all_parameters():
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield name, parameter

    def parameters(self) -> Iterator[Tensor]:
        """The Tensors of `named_parameters`."""
        return (parameter for _, parameter in self.named_parameters())

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """("", self), then every module below with its dotted name; a shared module once."""
        seen: set[int] = set()
        for name, module in self._all_modules():
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def train(self, mode: bool = True) -> Self:
        """Set training mode here and below; returns self."""
        for _, module in self.named_modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Leave training mode; returns self."""
        return self.train(False)

    def zero_grad(self) -> None:
        """Forget every parameter's gradient."""
        for parameter in self.parameters():
            parameter.grad = None

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """A copy of every parameter's array under its dotted name (a tied one under each of its names)."""
        return {name: parameter.data.copy() for name, parameter in self._all_parameters()}

    def load_state_dict(self, sd: Mapping[str, Any], strict: bool = True) -> None:
        """Copy arrays into the parameters in place, converted to their dtype.

        With strict, KeyError names every missing and unexpected key; without, both are ignored. ValueError
        for a shape. Everything is checked before anything is copied.
        """
        own = dict(self._all_parameters())
        missing, unexpected = [k for k in own if k not in sd], [k for k in sd if k not in own]
        if strict and (missing or unexpected):
            raise KeyError(f"missing keys: {missing}, unexpected keys: {unexpected}")
        arrays = {name: np.asarray(sd[name]) for name in own if name in sd}
        for name, array in arrays.items():
            if array.shape != own[name].shape:
                raise ValueError(f"{name} must have shape {own[name].shape}, got {array.shape}")
        for name, array in arrays.items():
            own[name].data[...] = array
