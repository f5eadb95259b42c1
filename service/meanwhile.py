"""Work goes in; it is done in a thread of its own for as long as a context is open."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def meanwhile(
    name: str,
    work: Callable[[threading.Event], None],
    wake: Callable[[], object] = lambda: None,
    patience_seconds: float | None = None,
) -> Iterator[None]:
    """`work` gets an event and returns soon after it is set; `wake` is called then, for work that waits for something
    else. On exit its end is waited for, or no longer than `patience_seconds`."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        wake()
        thread.join(patience_seconds)
