"""Files as they were posted go in; a `Submission` with clean paths and plain UTF-8 source comes out, or `Rejected`.

    uploads -> candidates     archives opened, names split, left-overs dropped            (per upload)
            -> chosen         the unit's folder found in a repository, wrappers taken off (per upload)
            -> tests          read within limits, normalised, checked against each other  (all together)

Pure: nothing is written, and the order of the uploads changes nothing. Every refusal has a code of its own.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from grader import archives, names, wording
from grader.archives import Budget, Kind
from grader.errors import Rejected
from grader.names import Parts
from grader.source import normalise
from grader.submission import IntakeNote, Submission, Upload
from grader.unit import Unit
from sandbox.records import File


@dataclass(frozen=True)
class IntakeLimits:
    """What one submission may hold. Kept files count towards all but `upload_bytes` and `expanded_bytes`."""

    upload_bytes: int = 16 * 2**20
    """one upload as posted"""
    expanded_bytes: int = 64 * 2**20
    """what is decompressed, of all archives together"""
    members: int = 20_000
    """entries of one archive, left-overs included"""
    source_bytes: int = 256 * 2**10
    """one Python file"""
    data_bytes: int = 2 * 2**20
    """one other file"""
    total_bytes: int = 8 * 2**20
    files: int = 200
    name_bytes: int = 200
    depth: int = 8


@dataclass(frozen=True)
class _Candidate:
    """A file that may be taken: its path so far, and how to get its bytes."""

    parts: Parts
    kind: Kind
    read: Callable[[int], bytes]


@dataclass
class _Notes:
    """What was done, by (action, message); many files become one note."""

    paths: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, action: str, message: str, path: str) -> None:
        self.paths.setdefault((action, message), []).append(path)

    def told(self) -> tuple[IntakeNote, ...]:
        return tuple(sorted(map(self._note, self.paths), key=lambda note: (note.action, note.path, note.message)))

    def _note(self, key: tuple[str, str]) -> IntakeNote:
        action, message = key
        paths = sorted(set(self.paths[key]))
        if len(paths) == 1:
            return IntakeNote(action, wording.shown(paths[0]), message)
        return IntakeNote(action, "", wording.note_many(len(paths), message, paths))


def take_in(
    unit: Unit, files: Mapping[str, Upload], tests: Sequence[Upload], limits: IntakeLimits | None = None
) -> Submission:
    """The submission, or Rejected. `files` maps the stem of a unit's file ("mha") to what was sent for it; files of the
    units it builds on may be among them.

    `tests` are archives (.zip, .tar, .tar.gz, told by content) or single files, in any order. No test file among them
    is no reason to refuse: that is graded.
    """
    limits = limits or IntakeLimits()
    notes = _Notes()
    sources = _unit_files(unit, files, limits, notes)
    if not tests:
        raise Rejected("no_tests_sent", wording.NO_TESTS_SENT)
    _refuse_repeated(tests)
    budget = Budget(limits.expanded_bytes)
    chosen: list[_Candidate] = []
    for group in _groups(tests, limits, budget, notes):
        chosen.extend(_choose(unit, group, notes))
    return Submission(unit.id, sources, _take_tests(unit, chosen, limits, notes), notes.told())


# -- the unit's files ------------------------------------------------------------------------------------------------


def _unit_files(unit: Unit, files: Mapping[str, Upload], limits: IntakeLimits, notes: _Notes) -> dict[str, bytes]:
    wanted = [file.stem for file in unit.files]
    others = unit.dep_stems
    for stem in sorted(files):
        if stem not in wanted and stem not in others:
            raise Rejected("unknown_file", wording.unknown_file(stem, wanted), wording.shown(stem))
    taken: dict[str, bytes] = {}
    for file in unit.files:
        if file.stem not in files:
            raise Rejected("missing_file", wording.missing_file(file.stem, file.path, wanted), f"{file.stem}.py")
        taken[file.path] = _source(files[file.stem].data, f"{file.stem}.py", limits, notes)
    for stem, file in others.items():
        if stem in files:
            taken[file.path] = _source(files[stem].data, f"{stem}.py", limits, notes)
    return taken


def _source(data: bytes, path: str, limits: IntakeLimits, notes: _Notes) -> bytes:
    if len(data) > limits.source_bytes:
        raise Rejected("file_too_large", wording.file_too_large(limits.source_bytes), wording.shown(path))
    plain = normalise(data, path)
    if plain.had_bom:
        notes.add("normalised", wording.NOTE_BOM, path)
    if plain.had_line_ends:
        notes.add("normalised", wording.NOTE_LINE_ENDS, path)
    return plain.data


# -- uploads to candidates -------------------------------------------------------------------------------------------


def _refuse_repeated(tests: Sequence[Upload]) -> None:
    seen: set[str] = set()
    for upload in tests:
        if upload.name in seen:
            raise Rejected("duplicate_upload", wording.duplicate_upload(), wording.shown(upload.name))
        seen.add(upload.name)


def _groups(tests: Sequence[Upload], limits: IntakeLimits, budget: Budget, notes: _Notes) -> Iterable[list[_Candidate]]:
    """One group for each archive, and one for all files sent singly: each is laid out by its own packer."""
    singles: list[_Candidate] = []
    for upload in sorted(tests, key=lambda upload: upload.name):
        if len(upload.data) > limits.upload_bytes:
            message = wording.upload_too_large(limits.upload_bytes)
            raise Rejected("upload_too_large", message, wording.shown(upload.name))
        if _packed(upload, alone=len(tests) == 1):
            yield _opened(upload, limits, budget, notes)
        else:
            singles.extend(_candidate(upload.name, Kind.FILE, _reader(upload.data), notes))
    yield singles


def _packed(upload: Upload, alone: bool) -> bool:
    """Whether to open an upload. Content decides, except that .npz is a zip of arrays and .npy may look like a tar.

    An upload that comes alone and is neither archive nor Python nor data is refused; among others it is dropped later.
    """
    name = upload.name.lower()
    if name.endswith((".npz", ".npy")) or "__macosx" in name or name.rpartition("/")[2].startswith("._"):
        return False
    if archives.is_archive(upload.data) or name.endswith(archives.ARCHIVE_SUFFIXES):
        return True
    parts = names.split(upload.name)
    if not alone or not parts or names.leftover(parts) or names.is_python(parts) or names.is_data(parts):
        return False
    raise Rejected("not_an_archive", wording.NOT_AN_ARCHIVE, wording.shown(upload.name))


def _reader(data: bytes) -> Callable[[int], bytes]:
    return lambda limit: data[: limit + 1]


def _opened(upload: Upload, limits: IntakeLimits, budget: Budget, notes: _Notes) -> list[_Candidate]:
    found: list[_Candidate] = []
    for member in archives.members(upload.name, upload.data, budget, limits.members):
        candidates = _candidate(member.name, member.kind, member.read, notes)
        if candidates and member.guessed:
            notes.add("renamed", wording.NOTE_NAME_GUESSED, "/".join(candidates[0].parts))
        found.extend(candidates)
    return found


def _candidate(name: str, kind: Kind, read: Callable[[int], bytes], notes: _Notes) -> list[_Candidate]:
    """The file as a candidate, or nothing for folders and left-overs."""
    parts = names.split(name)
    if kind is Kind.FOLDER:
        return []
    if parts and (why := names.leftover(parts)):
        notes.add("dropped", why, "/".join(parts))
        return []
    path = "/".join(parts)
    if "\\" in name:
        notes.add("renamed", wording.NOTE_SEPARATORS, path)
    if not unicodedata.is_normalized("NFC", name):
        notes.add("renamed", wording.NOTE_NAME_FORM, path)
    return [_Candidate(parts, kind, read)]


# -- candidates to chosen --------------------------------------------------------------------------------------------


def _choose(unit: Unit, group: list[_Candidate], notes: _Notes) -> list[_Candidate]:
    """The files of one upload that belong to the tests, relative to their root."""
    wanted = tuple(part for part in unit.tests_path.split("/") if part)
    root = _unit_folder([candidate.parts for candidate in group], wanted)
    if root is None:
        return _unwrapped(group, notes)
    inside = [candidate for candidate in group if candidate.parts[: len(root)] == root]
    outside = [candidate for candidate in group if candidate.parts[: len(root)] != root]
    for candidate in outside:
        notes.add("dropped", wording.note_outside("/".join(root)), "/".join(candidate.parts))
    if not outside:
        notes.add("renamed", wording.note_wrapper("/".join(root)), "/".join(root))
    return [_Candidate(candidate.parts[len(root) :], candidate.kind, candidate.read) for candidate in inside]


def _unit_folder(paths: list[Parts], wanted: Parts) -> Parts | None:
    """Where the unit's tests folder (or the longest end of its path) lies. Rejected if it lies in two places."""
    for start in range(len(wanted)):
        ending = names.collision_key(wanted[start:])
        roots = {root for parts in paths if (root := _prefix_ending(parts[:-1], ending)) is not None}
        if len(roots) > 1:
            first, second = sorted("/".join(root) for root in roots)[:2]
            raise Rejected("ambiguous_tests", wording.ambiguous_tests(first, second))
        if roots:
            return roots.pop()
    return None


def _prefix_ending(folders: Parts, ending: Parts) -> Parts | None:
    """The shortest prefix of `folders` that ends in `ending`."""
    keys = names.collision_key(folders)
    for stop in range(len(ending), len(folders) + 1):
        if keys[stop - len(ending) : stop] == ending:
            return folders[:stop]
    return None


_WRAPPERS = 8


def _unwrapped(group: list[_Candidate], notes: _Notes) -> list[_Candidate]:
    """Take off folders that hold everything, unless the tests import them by name (decision 0042)."""
    taken: list[str] = []
    while group and len(taken) < _WRAPPERS:
        tops = {candidate.parts[0] if len(candidate.parts) > 1 else "" for candidate in group}
        top = tops.pop()
        if tops or not top or _imported(top, group):
            break
        taken.append(top)
        group = [_Candidate(candidate.parts[1:], candidate.kind, candidate.read) for candidate in group]
    if taken:
        notes.add("renamed", wording.note_wrapper("/".join(taken)), "/".join(taken))
    return group


_PEEK_BYTES = 64 * 2**10


def _imported(folder: str, group: list[_Candidate]) -> bool:
    if not folder.isidentifier():
        return False
    names_it = re.compile(rb"^[ \t]*(?:from|import)[ \t]+" + re.escape(folder.encode()) + rb"\b", re.MULTILINE)
    python = [one for one in group if one.kind is Kind.FILE and names.is_python(one.parts)]
    return any(names_it.search(one.read(_PEEK_BYTES)) for one in python[:200])


# -- chosen to tests -------------------------------------------------------------------------------------------------


def _take_tests(unit: Unit, chosen: list[_Candidate], limits: IntakeLimits, notes: _Notes) -> tuple[File, ...]:
    if len(chosen) > 10 * limits.files:  # before each is looked at: too many even if most were of unknown type
        raise Rejected("too_many_files", wording.too_many_files(limits.files))
    wanted = [candidate for candidate in chosen if _is_wanted(candidate, limits, notes)]
    if len(wanted) > limits.files:
        raise Rejected("too_many_files", wording.too_many_files(limits.files))
    wanted.sort(key=lambda candidate: candidate.parts)
    _refuse_collisions([candidate.parts for candidate in wanted])
    _refuse_shadows(unit, [candidate.parts for candidate in wanted])
    taken: list[File] = []
    total = 0
    for candidate in wanted:
        data = _content(candidate, limits, notes)
        total += len(data)
        if total > limits.total_bytes:
            raise Rejected("total_too_large", wording.total_too_large(limits.total_bytes))
        taken.append(File("/".join(candidate.parts), data))
    return tuple(sorted(taken, key=lambda file: file.path))


def _is_wanted(candidate: _Candidate, limits: IntakeLimits, notes: _Notes) -> bool:
    """Check a name and kind. Files of unknown type are dropped with a note; archives inside are refused."""
    names.check(candidate.parts, limits.name_bytes, limits.depth)
    path = "/".join(candidate.parts)
    if candidate.kind is Kind.LINK:
        raise Rejected("link", wording.LINK, wording.shown(path))
    if candidate.kind is Kind.SPECIAL:
        raise Rejected("special_file", wording.SPECIAL_FILE, wording.shown(path))
    if path.lower().endswith(archives.ARCHIVE_SUFFIXES):
        raise Rejected("nested_archive", wording.NESTED_ARCHIVE, wording.shown(path))
    if names.is_python(candidate.parts) or names.is_data(candidate.parts):
        return True
    notes.add("dropped", wording.NOTE_TYPE, path)
    return False


def _refuse_collisions(paths: list[Parts]) -> None:
    """Two files with one name, or a file where another has a folder."""
    files: dict[Parts, Parts] = {}
    for parts in paths:
        key = names.collision_key(parts)
        if key in files:
            raise Rejected("same_name", wording.same_name("/".join(files[key])), wording.shown("/".join(parts)))
        files[key] = parts
    for parts in paths:
        key = names.collision_key(parts)
        for length in range(1, len(key)):
            if other := files.get(key[:length]):
                raise Rejected("same_name", wording.same_name("/".join(other)), wording.shown("/".join(parts)))


def _refuse_shadows(unit: Unit, paths: list[Parts]) -> None:
    packages = names.packages_of(paths)
    for parts in filter(names.is_python, paths):
        safe = wording.shown("/".join(parts))
        for file in unit.files:
            if parts[-1] == f"{file.stem}.py":
                raise Rejected("unit_file_in_tests", wording.unit_file_in_tests(file.stem), safe)
        if name := names.shadowed(parts, packages):
            raise Rejected("shadows", wording.shadows(name), safe)


def _content(candidate: _Candidate, limits: IntakeLimits, notes: _Notes) -> bytes:
    path = "/".join(candidate.parts)
    python = names.is_python(candidate.parts)
    limit = limits.source_bytes if python else limits.data_bytes
    data = candidate.read(limit)
    if len(data) > limit:
        raise Rejected("file_too_large", wording.file_too_large(limit), wording.shown(path))
    if not path.lower().endswith((".npz", ".npy")) and archives.is_archive(data):
        raise Rejected("nested_archive", wording.NESTED_ARCHIVE, wording.shown(path))
    return _source(data, path, limits, notes) if python else data
