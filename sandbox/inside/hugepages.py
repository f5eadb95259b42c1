"""The memory of a process that is about to be forked many times goes into huge pages.

A fork copies an entry for each page, and its end takes each of them back: of 2 MiB instead of 4 KiB there are few.
What a fork writes to is copied in 4 KiB all the same. Where the kernel cannot (before Linux 6.1), nothing changes.
"""

import ctypes
from collections.abc import Iterator

MADV_COLLAPSE = 25
HUGE_PAGE_BYTES = 2 << 20

_libc = ctypes.CDLL(None)
_libc.madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


def collapse() -> None:
    """Ask for huge pages for all memory of this process that is not a file's."""
    for start, end in anonymous():
        first, last = -(-start // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES, end // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
        if first < last:
            _libc.madvise(first, last - first, MADV_COLLAPSE)


def anonymous() -> Iterator[tuple[int, int]]:
    with open("/proc/self/maps", encoding="ascii") as maps:
        for line in maps:
            span, rights, _, _, inode, *name = line.split()
            if rights == "rw-p" and inode == "0" and name in ([], ["[heap]"]):
                start, end = span.split("-")
                yield int(start, 16), int(end, 16)
