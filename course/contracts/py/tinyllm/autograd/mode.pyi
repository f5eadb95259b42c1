"""Whether operations are recorded: asked by every op, switched off by `no_grad`."""

from contextlib import AbstractContextManager

def is_grad_enabled() -> bool:
    """True unless the calling thread is inside `no_grad`."""

def no_grad() -> AbstractContextManager[None]:
    """Record nothing inside the block; nests, holds per thread, and is undone when the block raises."""
