"""A password goes in; its argon2id hash, or whether it fits one, comes out.

The parameters are OWASP's for small servers (19 MiB, two passes). At most two are computed at a time in a process, so
that a flood of sign-ins takes neither all cores nor much memory. (docs/decisions/0176)
"""

import threading
import unicodedata
from functools import cached_property

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

LEAST_CHARS = 10
MOST_CHARS = 200
AT_A_TIME = 2


class Passwords:
    """Makes and checks hashes. Somebody who does not exist, or has no password, takes as long as somebody who has."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
        self._turns = threading.BoundedSemaphore(AT_A_TIME)

    @cached_property
    def _nobody(self) -> str:
        return self._hasher.hash("nobody's")

    def hash(self, password: str) -> str:
        with self._turns:
            return self._hasher.hash(_normal(password))

    def fits(self, password: str, hashed: str | None) -> bool:
        """Whether the password is the one hashed; None is nobody's, which none fits."""
        with self._turns:
            try:
                self._hasher.verify(hashed or self._nobody, _normal(password)[:MOST_CHARS])
            except (VerificationError, InvalidHashError):
                return False
        return hashed is not None

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
