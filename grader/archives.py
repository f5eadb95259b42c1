"""A .zip, .tar or .tar.gz as it was posted goes in; its members, named but not yet read, come out.

Nothing an archive says about itself is believed: sizes are counted while decompressing, and nothing touches a disk.
Raises Rejected for what cannot be read.
"""

import io
import lzma
import struct
import tarfile
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

_TAR_ERRORS = (
    tarfile.TarError, EOFError, OSError, ValueError, struct.error, OverflowError, IndexError, RecursionError,
    MemoryError, KeyError, TypeError,
)  # fmt: skip


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
    """Whether the first block is a tar header, by its checksum. An all-zero block is an empty tar."""
    block = data[:_BLOCK]
    if len(block) < _BLOCK:
        return False
    if not block.strip(b"\x00"):
        return not data.strip(b"\x00")
    try:
        stated = int(block[148:156].strip(b"\x00 ") or b"-", 8)
    except ValueError:
        return False
    return stated == sum(block[:148]) + 8 * ord(" ") + sum(block[156:])


def _tar_members(archive: str, data: bytes, most: int) -> Iterator[Member]:
    try:
        opened = tarfile.TarFile(fileobj=io.BytesIO(data), encoding="utf-8", errors="surrogateescape")
        count = 0
        while (info := opened.next()) is not None:
            count += 1
            if count > most:
                raise _rejected("too_many_files", wording.too_many_members(most), archive)
            yield Member(info.name, _tar_kind(info), _tar_reader(data, info))
        if data[opened.offset : opened.offset + _BLOCK].strip(b"\x00"):  # tarfile stops in silence at a bad header
            raise _rejected("corrupt_archive", wording.CORRUPT_ARCHIVE, archive)
    except _TAR_ERRORS as error:
        if not data.strip(b"\x00"):
            return
        raise _rejected("corrupt_archive", wording.CORRUPT_ARCHIVE, archive) from error


def _tar_kind(info: tarfile.TarInfo) -> Kind:
    if info.issym() or info.islnk():
        return Kind.LINK
    if info.isdir():
        return Kind.FOLDER
    return Kind.FILE if info.isreg() and not info.issparse() else Kind.SPECIAL


def _tar_reader(data: bytes, info: tarfile.TarInfo) -> Callable[[int], bytes]:
    start, size = info.offset_data, info.size

    def read(limit: int) -> bytes:
        if size < 0 or start + size > len(data):
            raise _rejected("corrupt_archive", wording.CORRUPT_ARCHIVE, info.name)
        return data[start : start + min(size, limit + 1)]

    return read
