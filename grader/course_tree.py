"""A course tree on disk, or an archive of some of its files, goes in; files by their path come out, and the other way.

Paths are those of a checkout: "course/…" for the tree, and beside it the packages whose references it takes from there,
as "tinyllm/…". What is uploaded is not believed: archives are read in memory, names are checked, and a tree is laid out
in a folder of its own, never over another. Raises Rejected for what cannot be taken.
"""

import difflib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader import archives, names, wording
from grader.archives import Budget, Kind
from grader.errors import Rejected
from grader.submission import Upload
from grader.units import CONTRACTS

Files = Mapping[str, bytes]

COURSE = "course"
ORACLES = f"{COURSE}/oracle/"
EXPANDED_BYTES = 64 * 2**20
FILE_BYTES = 16 * 2**20
MOST_FILES = 5_000
NAME_BYTES = 200
DEEPEST = 12
MOST_DIFFS = 50  # files whose lines are compared
MOST_DIFF_LINES = 1_000  # of one file, of either side
MOST_DIFF_BYTES = 128 * 2**10  # likewise
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Change:
    """A file that is not as it was: added, removed or changed. `lines`: a unified diff, empty for what is no text."""

    path: str
    how: str
    lines: tuple[str, ...]

    @property
    def is_trusted(self) -> bool:
        """Whether it belongs to an oracle, which runs outside of the sandbox."""
        return self.path.startswith(ORACLES)


def read(root: Path) -> dict[str, bytes]:
    """The files of the tree in `root`, and of the packages beside it that it has contracts of. Raises OSError."""
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is no course tree")
    found = _below(root, COURSE)
    contracts = f"{COURSE}/{CONTRACTS}/"
    inside = (path.removeprefix(contracts) for path in found if path.startswith(contracts))
    for package in sorted({path.partition("/")[0] for path in inside}):
        sources = _below(root.parent / package, package)
        found |= {path: data for path, data in sources.items() if path.endswith(".py")}
    return found


def _below(folder: Path, name: str) -> dict[str, bytes]:
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    parts = {file: file.relative_to(folder).parts for file in files}
    return {"/".join((name, *parts[file])): file.read_bytes() for file in parts if not names.leftover(parts[file])}


def taken(uploads: Sequence[Upload], into: str) -> dict[str, bytes]:
    """What was uploaded, by path: archives (.zip, .tar, .tar.gz) hold paths of a checkout, other files lie in the
    folder `into`. A folder around everything in an archive is taken off."""
    budget = Budget(EXPANDED_BYTES)
    found: dict[str, bytes] = {}
    for upload in uploads:
        is_packed = upload.name.lower().endswith(archives.ARCHIVE_SUFFIXES)
        inside = _members(upload, budget) if is_packed else {names.split(f"{into}/{upload.name}"): upload.data}
        for parts, data in inside.items():
            names.check(parts, NAME_BYTES, DEEPEST)
            path = "/".join(parts)
            if path in found:
                raise Rejected("repeated_name", wording.TREE_REPEATED_NAME, wording.shown(path))
            found[path] = data
    return found


def _members(upload: Upload, budget: Budget) -> dict[names.Parts, bytes]:
    found: dict[names.Parts, bytes] = {}
    for member in archives.members(upload.name, upload.data, budget, MOST_FILES):
        parts, shown = names.split(member.name), wording.shown(member.name)
        if member.kind is Kind.FOLDER or not parts or names.leftover(parts):
            continue
        if member.kind is not Kind.FILE:
            raise Rejected("special_file", wording.TREE_SPECIAL_FILE, shown)
        data = member.read(FILE_BYTES)
        if len(data) > FILE_BYTES:
            raise Rejected("file_too_large", wording.file_too_large(FILE_BYTES), shown)
        if parts in found:
            raise Rejected("repeated_name", wording.TREE_REPEATED_NAME, shown)
        found[parts] = data
    around = {parts[0] for parts in found} if any(parts[1:2] == (COURSE,) for parts in found) else set()
    return {parts[1:]: data for parts, data in found.items()} if len(around) == 1 else found


def laid_over(before: Files, files: Files, removed: Iterable[str] = (), *, whole: bool = False) -> dict[str, bytes]:
    """The tree with these files in it, and without the removed ones: a path of one, or of a folder. `whole`: without
    any but these files.

    Raises Rejected for what lies outside of a tree, is no path, or cannot stand beside the rest.
    """
    gone = {path.strip().strip("/") for path in removed if path.strip()}
    if missing := gone.difference(*map(_with_folders, before)):
        raise Rejected("file_unknown", wording.TREE_FILE_UNKNOWN, wording.shown(min(missing)))
    kept = {} if whole else {path: before[path] for path in before if not gone & _with_folders(path)}
    tops = {COURSE, *(path.partition("/")[0] for path in before)}
    for path in files:
        if path.partition("/")[0] not in tops or "/" not in path:
            raise Rejected("outside_tree", wording.tree_outside(sorted(tops)), wording.shown(path))
    after = dict(sorted({**kept, **files}.items()))
    keys = {names.collision_key(tuple(path.split("/"))): path for path in after}
    folders = {key[:length] for key in keys for length in range(1, len(key))}
    if len(keys) < len(after) or folders & set(keys):
        raise Rejected("colliding_names", wording.TREE_COLLIDING_NAMES)
    if len(after) > MOST_FILES:
        raise Rejected("too_many_files", wording.too_many_members(MOST_FILES))
    return after


def _with_folders(path: str) -> set[str]:
    """The path, and those of the folders that it lies in."""
    parts = path.split("/")
    return {"/".join(parts[:length]) for length in range(1, len(parts) + 1)}


def lay(files: Files, folder: Path) -> Path:
    """Write the tree below `folder`, which appears when it is whole, or is there already; returns the course's own."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
            whole = Path(beside) / "tree"
            for path, data in files.items():
                file = whole / path
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("xb") as new:
                    new.write(data)
            try:
                os.rename(whole, folder)
            except OSError:  # another process was faster
                if not folder.is_dir():
                    raise
    return folder / COURSE


def packed(files: Files) -> bytes:
    """A .zip of the files, the same for the same files."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(path, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def changes(before: Files, after: Files) -> list[Change]:
    """Every file that differs, those of oracles first, then by path; of the first MOST_DIFFS the lines as well."""
    found: list[Change] = []
    for path in sorted({*before, *after}, key=lambda path: (not path.startswith(ORACLES), path)):
        old, new = before.get(path), after.get(path)
        if old != new:
            how = "added" if old is None else "removed" if new is None else "changed"
            found.append(Change(path, how, _diff(old or b"", new or b"") if len(found) < MOST_DIFFS else ()))
    return found


def _diff(old: bytes, new: bytes) -> tuple[str, ...]:
    if max(len(old), len(new)) > MOST_DIFF_BYTES:
        return ()
    try:
        before, after = (side.decode().splitlines() for side in (old, new))
    except UnicodeDecodeError:
        return ()
    if max(len(before), len(after)) > MOST_DIFF_LINES:
        return ()
    return tuple(difflib.unified_diff(before, after, lineterm=""))[2:]
