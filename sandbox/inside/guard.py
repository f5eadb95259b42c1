"""Whatever is executed while an inert suite is collected is seen here; at the first thing that should not be, it ends.

`inert.py` lets no suite through that has anything of its author's called as it is collected. Should it be mistaken,
this is what stands behind it: the process ends before the first instruction of a function that the suite defines, and
before any call that could start, send or share something. Runs then collect for themselves (decision 0159).
"""

import builtins
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy

HARMLESS_OF_THE_SYSTEM = {
    *("access", "close", "fspath", "fstat", "getcwd", "getpid", "getppid", "getuid", "isatty", "listdir", "lstat"),
    *("_path_normpath", "open", "readlink", "scandir", "stat", "uname", "urandom", "umask"),
}
REFUSED = {
    "builtins": {"breakpoint", "compile", "eval", "input"},
    "_thread": {"start_new", "start_new_thread"},
}
REFUSED_WHOLE = {"_ctypes", "_posixsubprocess", "_socket", "fcntl", "resource", "_signal"}
EXECUTES_MODULES = ("<frozen importlib", os.path.join("_pytest", "assertion", "rewrite.py"))


@contextmanager
def guarded(directory: str) -> Iterator[None]:
    """Collect a suite that lies in `directory` in here."""

    def look(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            if is_of_an_author(frame, directory):
                os._exit(1)
        elif event == "c_call" and is_refused(frame, argument, directory):
            os._exit(1)

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


def is_of_an_author(frame: FrameType, directory: str) -> bool:
    """Whether a function of the suite begins, or code made from text. Bodies of modules and classes are none."""
    code = frame.f_code
    if code.co_filename.startswith(directory):
        return bool(code.co_flags & inspect.CO_OPTIMIZED)
    return code.co_filename == "<string>" and code.co_name == "<module>"


def is_refused(frame: FrameType, called: Any, directory: str) -> bool:
    """Whether a built-in function may not be called: from the suite's own code hardly any, from elsewhere few."""
    caller = frame.f_code.co_filename
    name, owner = called.__name__, getattr(called, "__self__", None)
    if caller.startswith(directory):
        on_path = owner is sys.path and name in ("append", "insert")
        return called not in (builtins.__build_class__, numpy.array) and not on_path
    module = called.__module__ or ""
    if module == "builtins" and name == "exec":
        return not any(part in caller for part in EXECUTES_MODULES)
    if module == "posix":
        return name not in HARMLESS_OF_THE_SYSTEM
    return module in REFUSED_WHOLE or name in REFUSED.get(module, ())
