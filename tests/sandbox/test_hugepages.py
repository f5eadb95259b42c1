"""What lies in memory is the same after it went into huge pages, for a process and for its forks."""

import ctypes
import os

from sandbox.inside.hugepages import HUGE_PAGE_BYTES, anonymous, collapse


def test_memory_reads_the_same_afterwards_and_in_a_fork_that_writes_to_it() -> None:
    data = bytearray(os.urandom(4 * HUGE_PAGE_BYTES))
    before = bytes(data)
    collapse()
    assert data == before
    pid = os.fork()
    if pid == 0:
        data[:] = bytes(len(data))
        os._exit(0 if not any(data) else 1)
    assert os.waitpid(pid, 0)[1] == 0 and data == before


def test_what_is_no_file_s_is_asked_for_and_nothing_else() -> None:
    data = bytearray(4 * HUGE_PAGE_BYTES)
    spans = list(anonymous())
    of_data = ctypes.addressof(ctypes.c_char.from_buffer(data))
    of_code = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p).value
    assert of_code is not None
    assert any(start <= of_data < end for start, end in spans)
    assert not any(start <= of_code < end for start, end in spans)
