"""Blocks enter and leave `no_grad()`; whether to record a graph leaves, as `is_grad_enabled()`."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Mode(threading.local):
    enabled: bool = True  # the class attribute is what a thread sees until it writes its own


_mode = _Mode()


def is_grad_enabled() -> bool:
    """True unless the calling thread is inside `no_grad()`."""
    return _mode.enabled


@contextmanager
def no_grad() -> Iterator[None]:
    """Record no graph inside the block; nests, affects the calling thread only, restored on exceptions."""
    before = _mode.enabled
    _mode.enabled = False
    try:
        yield
    finally:
        _mode.enabled = before
