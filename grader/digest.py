"""Named parts go in; one SHA-256 over all of them comes out."""

import hashlib
from collections.abc import Iterable


def digest_of(parts: Iterable[tuple[str, bytes]]) -> str:
    """Hexadecimal, whatever the order of the parts. Lengths go in too, so that no two sets of parts read alike."""
    total = hashlib.sha256()
    for name, data in sorted(parts):
        for piece in (name.encode(), data):
            total.update(len(piece).to_bytes(8, "big"))
            total.update(piece)
    return total.hexdigest()
