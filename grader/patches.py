"""A unified diff and the files it was made against go in; the patched files come out, or PatchError with a line.

Strict: every context and removed line must stand exactly where the hunk says. There is no fuzz and no offset, because a
mutant that lands elsewhere is another mutant.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from grader.source import BOM


class PatchError(Exception):
    """The patch is malformed or does not apply; `line` is the line of the patch at fault."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


@dataclass(frozen=True)
class _Row:
    """A line of a hunk: `mark` is ' ', '-' or '+'; `text` ends in a newline unless the file ends without one."""

    number: int
    mark: str
    text: bytes


@dataclass(frozen=True)
class _Hunk:
    line: int
    old_start: int
    rows: tuple[_Row, ...]


_HUNK = re.compile(rb"^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NO_NEWLINE = b"\\ "


def apply(patch: bytes, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files a patch changes, by path, as the patch leaves them.

    `files` maps paths to the text patched. Line ends CRLF are taken as LF on both sides. Raises PatchError.
    """
    changed: dict[str, bytes] = {}
    for path, line, hunks in _parse(_lf(patch)):
        if path not in files:
            raise PatchError(line, f"{path} is not one of the files to patch ({', '.join(sorted(files))})")
        if path in changed:
            raise PatchError(line, f"{path} is patched twice")
        changed[path] = _patched(_lf(files[path]), hunks)
    if not changed:
        raise PatchError(1, "there is no file in the patch")
    return changed


def _lf(data: bytes) -> bytes:
    return data.removeprefix(BOM).replace(b"\r\n", b"\n")


def _parse(patch: bytes) -> Iterator[tuple[str, int, list[_Hunk]]]:
    lines = patch.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    index = 0
    while index < len(lines):
        if not lines[index].startswith(b"--- "):
            if lines[index].startswith(b"@@ "):
                raise PatchError(index + 1, "a hunk before any '--- a/' line")
            index += 1  # git's headers and prose between files
            continue
        if index + 1 >= len(lines) or not lines[index + 1].startswith(b"+++ "):
            raise PatchError(index + 1, "a '--- a/' line must be followed by a '+++ b/' line")
        path = _path(lines[index], lines[index + 1], index + 1)
        start = index + 1
        index += 2
        hunks: list[_Hunk] = []
        while index < len(lines) and lines[index].startswith(b"@@"):
            hunk, index = _hunk(lines, index)
            hunks.append(hunk)
        if not hunks:
            raise PatchError(start, f"no hunk follows for {path}")
        if (index < len(lines) and lines[index][:1] in (b" ", b"+")) or _stray_minus(lines, index):
            raise PatchError(index + 1, "the hunk is longer than its header says")
        yield path, start, hunks


def _stray_minus(lines: list[bytes], index: int) -> bool:
    return index < len(lines) and lines[index].startswith(b"-") and not lines[index].startswith(b"--- ")


def _path(old: bytes, new: bytes, number: int) -> str:
    before, after = _name(old, number), _name(new, number + 1)
    if before != after:
        raise PatchError(number, f"the patch renames, creates or deletes a file ({before} to {after})")
    return before


def _name(header: bytes, number: int) -> str:
    try:
        name = header[4:].split(b"\t", 1)[0].rstrip().decode("utf-8")
    except UnicodeDecodeError:
        raise PatchError(number, "the file name is not UTF-8") from None
    name = name[2:] if name.startswith(("a/", "b/")) else name
    if not name or name.startswith("/") or ".." in name.split("/"):
        raise PatchError(number, f"'{name}' is not a relative path")
    return name


def _hunk(lines: list[bytes], start: int) -> tuple[_Hunk, int]:
    match = _HUNK.match(lines[start])
    if match is None:
        raise PatchError(start + 1, "not a hunk header: expected '@@ -start,count +start,count @@'")
    old_start, old_left, _, new_left = (1 if group is None else int(group) for group in match.groups())
    index = start + 1
    rows: list[_Row] = []
    while old_left > 0 or new_left > 0:
        if index >= len(lines):
            raise PatchError(index, "the hunk is shorter than its header says")
        row = lines[index] or b" "  # some editors strip the space of an empty context line
        mark = row[:1].decode("latin-1")
        if mark not in " -+":
            raise PatchError(index + 1, "a line of a hunk must begin with ' ', '-' or '+'")
        old_left -= mark in " -"
        new_left -= mark in " +"
        if old_left < 0 or new_left < 0:
            raise PatchError(index + 1, "the hunk's lines do not agree with its header")
        text = row[1:] + b"\n"
        if index + 1 < len(lines) and lines[index + 1].startswith(_NO_NEWLINE):
            text = row[1:]
            index += 1
        rows.append(_Row(index + 1, mark, text))
        index += 1
    return _Hunk(start + 1, old_start, tuple(rows)), index


def _patched(old: bytes, hunks: list[_Hunk]) -> bytes:
    lines = old.split(b"\n")
    before = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    after: list[bytes] = []
    position = 0
    for hunk in hunks:
        has_old = any(row.mark in " -" for row in hunk.rows)
        start = hunk.old_start - 1 if has_old else hunk.old_start
        if start < position or start > len(before):
            raise PatchError(hunk.line, "the hunk overlaps the one before it or lies beyond the end of the file")
        after.extend(before[position:start])
        position = start
        for row in hunk.rows:
            if row.mark in " -":
                _expect(before, position, row)
                position += 1
            if row.mark in " +":
                after.append(row.text)
    after.extend(before[position:])
    if any(not line.endswith(b"\n") for line in after[:-1]):
        raise PatchError(hunks[-1].line, "a line without newline would stand before the end of the file")
    return b"".join(after)


def _expect(before: list[bytes], position: int, row: _Row) -> None:
    found = before[position] if position < len(before) else None
    if found == row.text:
        return
    there = "the file has ended there" if found is None else "the file has another there"
    # Neither line is quoted: whoever asks which units there are is told this, and the lines are of the reference.
    raise PatchError(row.number, f"expected this line at line {position + 1} of the file, and {there}")
