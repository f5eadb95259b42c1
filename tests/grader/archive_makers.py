"""Archives for tests: the honest ones through the standard library, the odd ones from raw bytes."""

import io
import struct
import tarfile
import zipfile
import zlib

Content = dict[str, bytes]


def make_zip(files: Content, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data, compression)
    return buffer.getvalue()


def make_tar(files: Content, mode: str = "w:gz", extra: list[tarfile.TarInfo] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in extra or []:
            archive.addfile(info)
    return buffer.getvalue()


def tar_entry(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def raw_zip(
    *entries: tuple[bytes, bytes],
    flags: int = 0,
    method: int = 0,
    mode: int = 0,
    extra: bytes = b"",
    stated_size: int | None = None,
) -> bytes:
    """A zip written by hand: names are bytes, and what the headers say need not be true."""
    body, directory = b"", b""
    for name, data in entries:
        stored = data
        if method == 8:
            packer = zlib.compressobj(9, zlib.DEFLATED, -15)
            stored = packer.compress(data) + packer.flush()
        size = len(data) if stated_size is None else stated_size
        common = struct.pack(
            "<HHHHHIIIHH", 20, flags, method, 0, 33, zlib.crc32(data), len(stored), size, len(name), len(extra)
        )
        directory += b"PK\x01\x02" + struct.pack("<H", 3 << 8 | 20) + common
        directory += struct.pack("<HHHII", 0, 0, 0, mode << 16, len(body)) + name + extra
        body += b"PK\x03\x04" + common + name + extra + stored
    count = len(entries)
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def unicode_path(raw: bytes, name: str, crc: int | None = None) -> bytes:
    """Info-ZIP's extra field 0x7075."""
    body = b"\x01" + struct.pack("<I", zlib.crc32(raw) if crc is None else crc) + name.encode()
    return struct.pack("<HH", 0x7075, len(body)) + body
