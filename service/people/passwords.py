"""A password goes in; its argon2id hash, or whether it fits one, comes out.

The parameters are OWASP's for small servers (19 MiB, two passes). At most two are computed at a time in a process, so
that a flood of sign-ins takes neither all cores, much memory nor the threads that answer everybody else.
(docs/decisions/0176)
"""

import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

LEAST_CHARS = 10
MOST_CHARS = 200
AT_A_TIME = 2
PLACES = 10  # computing and waiting


class Busy(Exception):
    """Too many sign in at this moment."""


class Passwords:
    """Makes and checks hashes. Somebody who does not exist, or has no password, takes as long as somebody who has."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
        self._turns = threading.BoundedSemaphore(AT_A_TIME)
        self._places = threading.BoundedSemaphore(PLACES)

    @cached_property
    def _nobody(self) -> str:
        return self._hasher.hash("nobody's")

    def hash(self, password: str) -> str:
        """Raises Busy."""
        with self._turn():
            return self._hasher.hash(_normal(password))

    def fits(self, password: str, hashed: str | None) -> bool:
        """Whether the password is the one hashed; None is nobody's, which none fits. Raises Busy."""
        if len(password) > MOST_CHARS:
            password, hashed = "", None
        with self._turn():
            nobody = self._nobody
            try:
                self._hasher.verify(hashed or nobody, _normal(password))
            except (VerificationError, InvalidHashError):
                return False
        return hashed is not None

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Whoever waits holds a thread that others need: only some may."""
        if not self._places.acquire(blocking=False):
            raise Busy
        try:
            with self._turns:
                yield
        finally:
            self._places.release()

    def is_old(self, hashed: str) -> bool:
        """Whether it was made with other parameters than are used now."""
        return self._hasher.check_needs_rehash(hashed)


def is_weak(password: str, login: str) -> bool:
    """Too short, too long, the login itself, or one character again and again."""
    normal = _normal(password)
    if not LEAST_CHARS <= len(normal) <= MOST_CHARS:
        return True
    return normal.casefold() == login or len(set(normal)) < 4


def _normal(password: str) -> str:
    """The same text however the keyboard composed its accents."""
    return unicodedata.normalize("NFC", password)
