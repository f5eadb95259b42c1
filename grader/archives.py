"""A .zip, .tar or .tar.gz as it was posted goes in; its members, named but not yet read, come out.

Nothing an archive says about itself is believed: sizes are counted while decompressing, and nothing touches a disk.
Raises Rejected for what cannot be read.
"""

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from stat import S_IFMT, S_ISDIR, S_ISLNK, S_ISREG

from grader import wording
from grader.errors import Rejected


class Kind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    SPECIAL = "special"


@dataclass
class Budget:
    """Decompressed bytes that all archives of one submission may still yield."""

    limit: int
    used: int = 0

    def spend(self, count: int, archive: str) -> None:
        self.used += count
        if self.used > self.limit:
            raise _rejected("archive_bomb", wording.archive_bomb(self.limit), archive)


@dataclass(frozen=True)
class Member:
    """An entry of an archive. `read(limit)` decompresses it, at most limit + 1 bytes: more means it is too large.
    `guessed` says that its name's encoding was not stated."""

    name: str
    kind: Kind
    read: Callable[[int], bytes]
    guessed: bool = False


ARCHIVE_SUFFIXES = (
    ".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".7z", ".rar", ".zst", ".whl", ".egg", ".jar",
)  # fmt: skip
_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_GZIP = b"\x1f\x8b"
_OTHER = (b"BZh", b"\xfd7zXZ\x00", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"\x28\xb5\x2f\xfd")
_CHUNK = 64 * 1024
_BLOCK = 512
_GZIP_MEMBERS = 1000


def is_archive(data: bytes) -> bool:
    """Whether the bytes are an archive of any kind, readable here or not. A .npz file is one too: judge it by name."""
    return data.startswith((*_ZIP, _GZIP, *_OTHER)) or _is_tar(data)


def members(name: str, data: bytes, budget: Budget, most: int) -> list[Member]:
    """The entries of an archive, in its order, at most `most` of them. Kind is judged by content, not by name."""
    if data.startswith(_OTHER):
        raise _rejected("unsupported_archive", wording.UNSUPPORTED_COMPRESSION, name)
    if data.startswith(_ZIP):
        return list(_zip_members(name, data, budget, most))
    if data.startswith(_GZIP):
        data = _gunzip(name, data, budget)
        if data.startswith((*_ZIP, _GZIP, *_OTHER)):
            raise _rejected("nested_archive", wording.NESTED_ARCHIVE, name)
    if not _is_tar(data):
        raise _rejected("not_an_archive", wording.NOT_AN_ARCHIVE, name)
    return list(_tar_members(name, data, most))


def _rejected(code: str, message: str, path: str) -> Rejected:
    return Rejected(code, message, wording.shown(path))


# -- zip -------------------------------------------------------------------------------------------------------------

_ENCRYPTED_BITS = 0x1 | 0x40 | 0x2000  # traditional, strong, masked headers
_PATCHED_BIT = 0x20
_UTF8_BIT = 0x800
_UNICODE_PATH = 0x7075
_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, struct.error, OverflowError,
    IndexError, RuntimeError, MemoryError, NotImplementedError,
)  # fmt: skip


def _zip_members(archive: str, data: bytes, budget: Budget, most: int) -> Iterator[Member]:
    if data.count(b"PK\x01\x02") > most:  # before the directory is parsed: that takes time for each entry
        raise _rejected("too_many_files", wording.too_many_members(most), archive)
    try:
        opened = zipfile.ZipFile(io.BytesIO(data))
    except UnicodeDecodeError as error:  # says UTF-8 and is not
        raise _rejected("bad_name", wording.NAME_ENCODING, archive) from error
    except _ZIP_ERRORS as error:
        raise _rejected("corrupt_archive", wording.CORRUPT_ARCHIVE, archive) from error
    for info in opened.infolist():
        name, guessed = _zip_name(info)
        yield Member(name, _zip_kind(info, name), _zip_reader(archive, name, opened, info, budget), guessed)


def _zip_kind(info: zipfile.ZipInfo, name: str) -> Kind:
    mode = info.external_attr >> 16
    if S_ISLNK(mode):
        return Kind.LINK
    if name.endswith(("/", "\\")) or S_ISDIR(mode):
        return Kind.FOLDER
    return Kind.FILE if S_IFMT(mode) == 0 or S_ISREG(mode) else Kind.SPECIAL


def _zip_name(info: zipfile.ZipInfo) -> tuple[str, bool]:
    """The name, and whether its encoding was guessed: as UTF-8 if it is that (macOS sets no flag), else as cp437."""
    if info.flag_bits & _UTF8_BIT or info.orig_filename.isascii():
        return info.orig_filename, False
    raw = info.orig_filename.encode("cp437")
    if stated := _unicode_path(info.extra, raw):
        return stated, False
    try:
        return raw.decode("utf-8"), False
    except UnicodeDecodeError:
        return info.orig_filename, True


def _unicode_path(extra: bytes, raw: bytes) -> str:
    """Info-ZIP's Unicode path field (0x7075): version 1, CRC-32 of the plain name, UTF-8. Stale or broken: ''."""
    while len(extra) >= 4:
        tag, length = struct.unpack_from("<HH", extra)
        body, extra = extra[4 : 4 + length], extra[4 + length :]
        if tag == _UNICODE_PATH and len(body) > 5 and body[0] == 1:
            if int.from_bytes(body[1:5], "little") != zlib.crc32(raw):
                return ""
            return body[5:].decode("utf-8", "ignore") if _is_utf8(body[5:]) else ""
    return ""


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _zip_reader(
    archive: str, name: str, opened: zipfile.ZipFile, info: zipfile.ZipInfo, budget: Budget
) -> Callable[[int], bytes]:
    def read(limit: int) -> bytes:
        if info.flag_bits & _ENCRYPTED_BITS:
            raise _rejected("encrypted", wording.ENCRYPTED, name)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & _PATCHED_BIT:
            raise _rejected("unsupported_compression", wording.UNSUPPORTED_COMPRESSION, name)
        parts: list[bytes] = []
        total = 0
        try:
            with opened.open(info) as stream:
                while total <= limit and (part := stream.read(min(_CHUNK, limit + 1 - total))):
                    budget.spend(len(part), archive)
                    parts.append(part)
                    total += len(part)
        except _ZIP_ERRORS as error:
            raise _rejected("corrupt_archive", wording.CORRUPT_ARCHIVE, name) from error
        if total <= limit and total != info.file_size:
            raise _rejected("corrupt_archive", wording.CORRUPT_ARCHIVE, name)
        return b"".join(parts)

    return read


# -- tar -------------------------------------------------------------------------------------------------------------


def _gunzip(name: str, data: bytes, budget: Budget) -> bytes:
    """All members of a gzip file, at most what the budget leaves. Zero bytes after the last member are padding."""
    corrupt = _rejected("corrupt_archive", wording.CORRUPT_ARCHIVE, name)
    plain: list[bytes] = []
    position = 0
    for _ in range(_GZIP_MEMBERS):
        if not data.startswith(_GZIP, position):
            break
        stream = zlib.decompressobj(wbits=31)
        pending = b""
        while not stream.eof:
            if not pending:  # fed in pieces: what is left over is copied every time
                pending = data[position : position + _CHUNK]
                position += len(pending)
            starved = not pending
            try:
                part = stream.decompress(pending, _CHUNK)
            except zlib.error as error:
                raise corrupt from error
            pending = stream.unconsumed_tail
            budget.spend(len(part), name)
            plain.append(part)
            if starved and not part and not stream.eof:
                raise corrupt
        position -= len(stream.unused_data)
    if data[position:].strip(b"\x00"):
        raise corrupt
    return b"".join(plain)


def _is_tar(data: bytes) -> bool:
    """Whether the first block is a tar header, by its checksum. Nothing but zeros is an empty tar."""
    if len(data) < _BLOCK:
        return False
    return _is_header(data[:_BLOCK]) or not data.strip(b"\x00")


def _is_header(block: bytes) -> bool:
    stated = block[148:156].strip(b"\x00 ")
    if not stated or stated.strip(b"01234567"):
        return False
    return int(stated, 8) == sum(block[:148]) + 8 * ord(" ") + sum(block[156:])


@dataclass
class _Overrides:
    """What extension headers say about the entry that follows them."""

    name: bytes | None = None
    size: int | None = None
    sparse: bool = False


_EXTENSIONS = (b"x", b"X", b"L", b"K", b"g")
_WITHOUT_DATA = (b"1", b"2", b"3", b"4", b"5", b"6")


def _tar_members(archive: str, data: bytes, most: int) -> Iterator[Member]:
    """Read by hand: tarfile takes quadratic time for some headers and stops in silence at others (decision 0041)."""
    corrupt = _rejected("corrupt_archive", wording.CORRUPT_ARCHIVE, archive)
    position, count, said = 0, 0, _Overrides()
    while True:
        block = data[position : position + _BLOCK]
        if len(block) == _BLOCK and not block.strip(b"\x00"):
            return
        if len(block) < _BLOCK or not _is_header(block):  # a cut archive lacks the zero block at its end
            raise corrupt
        count += 1
        if count > most:
            raise _rejected("too_many_files", wording.too_many_members(most), archive)
        kind = block[156:157]
        size = _tar_number(block[124:136]) if said.size is None or kind in _EXTENSIONS else said.size
        start = position + _BLOCK
        length = 0 if kind in _WITHOUT_DATA else size
        if size < 0 or start + length > len(data):
            raise corrupt
        position = start + -(-length // _BLOCK) * _BLOCK
        if kind in _EXTENSIONS:
            if not _extend(said, kind, data[start : start + length]):
                raise corrupt
            continue
        name = (_tar_name(block) if said.name is None else said.name).decode("utf-8", "surrogateescape")
        yield Member(name, _tar_kind(kind, name, said.sparse), _slice(data, start, length))
        said = _Overrides()


def _tar_number(field: bytes) -> int:
    """Octal digits, or base 256 for large numbers; -1 for neither."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big") if field[0] == 0x80 else -1
    digits = field.strip(b"\x00 ")
    return -1 if digits.strip(b"01234567") else int(digits or b"0", 8)


def _tar_name(block: bytes) -> bytes:
    name = block[:100].split(b"\x00", 1)[0]
    prefix = block[345:500].split(b"\x00", 1)[0] if block[257:263] == b"ustar\x00" else b""
    return prefix + b"/" + name if prefix else name


def _extend(said: _Overrides, kind: bytes, body: bytes) -> bool:
    """Take in an extension header; False if it is malformed. Global headers (g) and link targets (K) are skipped."""
    if kind == b"L":
        said.name = body.rstrip(b"\x00")
    if kind not in (b"x", b"X"):
        return True
    position = 0
    while position < len(body):
        space = body.find(b" ", position, position + 10)
        digits = body[position:space] if space > 0 else b""
        end = position + int(digits) if digits.isdigit() else 0
        if end <= space or end > len(body) or body[end - 1 : end] != b"\n":
            return False
        key, _, value = body[space + 1 : end - 1].partition(b"=")
        if key == b"path":
            said.name = value
        elif key == b"size":
            said.size = int(value) if value.isdigit() and len(value) < 20 else -1
        elif key.startswith(b"GNU.sparse"):
            said.sparse = True
        position = end
    return True


def _tar_kind(kind: bytes, name: str, sparse: bool) -> Kind:
    if kind in (b"1", b"2"):
        return Kind.LINK
    if kind == b"5" or (kind in (b"0", b"\x00") and name.endswith("/")):  # before POSIX a slash made a folder
        return Kind.FOLDER
    return Kind.FILE if kind in (b"0", b"\x00", b"7") and not sparse else Kind.SPECIAL


def _slice(data: bytes, start: int, size: int) -> Callable[[int], bytes]:
    return lambda limit: data[start : start + min(size, limit + 1)]
