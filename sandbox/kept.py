"""What bytes are made of comes in; the bytes leave: made the first time, from then on read from a folder.

For bytes that cost time and follow from their parts alone. The folder is set once, around everything a process does;
without one, or where it cannot be read or written, everything is made. Losing it costs only time.
"""

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

DAYS_UNUSED = 30.0
DIGEST_BYTES = 32

_folders: list[Path] = []


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Keep in `folder`, which is made if it can be; what nobody has read for a month is removed."""
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        forget_unused(folder, time.time() - DAYS_UNUSED * 86_400)
    _folders.append(folder)
    try:
        yield
    finally:
        _folders.remove(folder)


def made_once(kind: str, parts: Sequence[bytes], make: Callable[[], bytes]) -> bytes:
    """What `make` returns, which must follow from `kind` and `parts`."""
    if not _folders:
        return make()
    path = _folders[-1] / f"{kind}-{name_of(parts)}"
    if (kept := read(path)) is not None:
        return kept
    data = make()
    write(path, data)
    return data


def name_of(parts: Sequence[bytes]) -> str:
    digest = _begun(*parts[:2]).copy()
    for part in parts[2:]:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


@lru_cache(maxsize=256)  # first comes the code that makes them, which is long, and the same for all
def _begun(*parts: bytes) -> "hashlib._Hash":
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest


def read(path: Path) -> bytes | None:
    """None for a file that is not there, or not whole: a disk may lose power."""
    try:
        data = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    body = data[DIGEST_BYTES:]
    return body if hashlib.sha256(body).digest() == data[:DIGEST_BYTES] else None


def write(path: Path, data: bytes) -> None:
    """Whole or not at all; who reads at the same time sees the file before or after."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        part.write_bytes(hashlib.sha256(data).digest() + data)
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()


def forget_unused(folder: Path, since: float) -> None:
    """Remove the files that nobody has read or written since then (seconds of time.time)."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < since:
                path.unlink()
