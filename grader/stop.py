"""Somebody who no longer wants a grading says so, from any thread; what must end because of it is told, once."""

import threading
from collections.abc import Callable


class Stop:
    """Told or not; once told it stays so."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told = False
        self._then: list[Callable[[], None]] = []

    @property
    def told(self) -> bool:
        return self._told

    def tell(self) -> None:
        """Call what waits for it. Harmless the second time."""
        with self._lock:
            self._told, then, self._then = True, self._then, []
        for call in then:
            call()

    def when_told(self, call: Callable[[], None]) -> None:
        """Have `call` called when it is told: at once if it has been."""
        with self._lock:
            if not self._told:
                self._then.append(call)
                return
        call()
