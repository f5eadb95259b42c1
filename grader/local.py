"""Paths on this machine go in; uploads, as if they had been posted, come out.

Folders are read without following links and without the folders intake would drop anyway, so that a virtual
environment beside the tests is never read. Links become `Rejected`: what they point to may be anything.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from grader import names, wording
from grader.errors import Rejected
from grader.intake import IntakeLimits
from grader.submission import Upload


def read_paths(paths: Sequence[Path], limits: IntakeLimits | None = None) -> list[Upload]:
    """Uploads from a folder, an archive, or several files. Raises Rejected for what cannot be read."""
    uploads: list[Upload] = []
    for path in paths:
        uploads.extend(read_directory(path, limits) if path.is_dir() else [_read(path, path.name, limits)])
    return uploads


def read_directory(path: Path, limits: IntakeLimits | None = None) -> list[Upload]:
    """Every file below `path` that is no left-over, named relative to it with forward slashes, sorted by name.

    Left-overs inside are passed over in silence, whole folders at a time.
    """
    limits = limits or IntakeLimits()
    uploads: list[Upload] = []
    for entry, name in _files(path):
        if len(uploads) >= limits.files * 2:  # intake drops some and refuses the rest; no need to read a disk
            raise Rejected("too_many_files", wording.too_many_files(limits.files), wording.shown(str(path)))
        uploads.append(_read(entry, name, limits))
    return sorted(uploads, key=lambda upload: upload.name)


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    for folder, inner, found in os.walk(root, onerror=_unreadable):
        base = Path(folder).relative_to(root)
        inner[:] = sorted(name for name in inner if not names.leftover((*base.parts, name, "x")))
        linked = [name for name in inner if (Path(folder) / name).is_symlink()]
        for name in sorted([*found, *linked]):
            parts = (*base.parts, name)
            if names.leftover(parts):
                continue
            entry = Path(folder) / name
            if entry.is_symlink():
                raise Rejected("link", wording.LINK, wording.shown("/".join(parts)))
            if not entry.is_file():
                raise Rejected("special_file", wording.SPECIAL_FILE, wording.shown("/".join(parts)))
            yield entry, "/".join(parts)


def _unreadable(error: OSError) -> None:
    raise Rejected("unreadable", wording.UNREADABLE, wording.shown(str(error.filename))) from error


def _read(path: Path, name: str, limits: IntakeLimits | None) -> Upload:
    limit = (limits or IntakeLimits()).upload_bytes
    try:
        with path.open("rb") as stream:
            return Upload(name, stream.read(limit + 1))  # one more: intake sees that it is too large
    except OSError as error:
        raise Rejected("unreadable", wording.UNREADABLE, wording.shown(name)) from error
