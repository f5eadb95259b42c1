"""What was sent, by whom and when, goes in; a signed receipt for it comes out, and is read again from its text.

A receipt says that these files were here at that time although they could not be taken in. It is checked by its
signature alone: nothing is stored, so it can be given while the database does not answer. (docs/decisions/0136)
"""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass, field

VALID_SECONDS = 24 * 3600.0
MAX_CHARS = 1000
KEY_NAME = "receipts"
PURPOSE = b"autograder receipt 1\0"  # so that the key signs nothing that could be read as something else


class BadReceipt(Exception):
    """This text is no receipt of ours."""


@dataclass(frozen=True)
class Receipt:
    """`fingerprint` is of what was posted (service/posted.py), `token` the digest of the token it came with."""

    fingerprint: str
    token: str
    received_at: float

    @property
    def valid_until(self) -> float:
        return self.received_at + VALID_SECONDS


@dataclass(frozen=True)
class Signer:
    """Signs receipts with `key`; without one, with a key of this process's own."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def text(self, receipt: Receipt) -> str:
        """The receipt as printable text, to be sent back as it is."""
        payload = _base64(json.dumps(asdict(receipt), separators=(",", ":")).encode())
        return f"{payload}.{_base64(self._signature(payload))}"

    def read(self, text: str) -> Receipt:
        """The receipt that `text` gave this key; raises BadReceipt for any other text."""
        payload, _, signature = text.partition(".")
        try:
            if len(text) > MAX_CHARS or not hmac.compare_digest(_bytes(signature), self._signature(payload)):
                raise BadReceipt("it was not signed here")
            return Receipt(**json.loads(_bytes(payload)))
        except (binascii.Error, ValueError, TypeError) as error:
            raise BadReceipt("it cannot be read") from error

    def _signature(self, payload: str) -> bytes:
        return hmac.digest(self.key, PURPOSE + payload.encode("utf-8", "surrogatepass"), hashlib.sha256)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
