"""Files that runs will lay come in before there are runs; when a run imports one, its code is there already.

Only compiling is done ahead, in a fork that executes none of it: modules are made, and tests collected, afresh in
every run (decision 0155). Code is found by path and bytes, so a file that a run writes or changes is compiled as ever.
"""

import _imp
import ast
import contextlib
import hashlib
import importlib.machinery
import importlib.util
import marshal
import os
import resource
import warnings
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from types import CodeType
from typing import Any

import pytest
from _pytest.assertion import rewrite

Key = tuple[str, bytes]
"""Where a file lies, and the digest of its bytes."""

COMPILE_SECONDS = 5
COMPILE_BYTES = 512 << 20


class Codes:
    """The code of source files, by place and bytes. Given to the two ways of importing that test files have."""

    def __init__(self) -> None:
        self._known: dict[Key, CodeType] = {}

    def know(self, compiled: bytes, directories: Sequence[str]) -> None:
        """Keep what `compile_ahead` made, for each directory that runs lie in."""
        for directory in directories:
            for path, digest, code in marshal.loads(compiled):
                place = f"{directory}/{path}"
                _imp._fix_co_filename(code, place)  # type: ignore[attr-defined]
                self._known[place, digest] = code

    def find(self, place: str, source: bytes) -> CodeType | None:
        return self._known.get((place, hashlib.sha256(source).digest()))

    def install(self) -> None:
        """Have pytest and importlib ask here before they compile."""
        rewrite_test, source_to_code = rewrite._rewrite_test, importlib.machinery.SourceFileLoader.source_to_code

        def find_rewritten(fn: Path, config: pytest.Config) -> tuple[bytes, CodeType]:
            if is_rewritten(fn.name) and (code := self.find(str(fn), source := fn.read_bytes())):
                return importlib.util.source_hash(source), code
            return rewrite_test(fn, config)

        def find_plain(loader: Any, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:
            if isinstance(data, bytes) and not is_rewritten(os.path.basename(path)) and (code := self.find(path, data)):
                return code
            return source_to_code(loader, data, path, _optimize=_optimize)

        rewrite._rewrite_test = find_rewritten
        importlib.machinery.SourceFileLoader.source_to_code = find_plain  # type: ignore[method-assign, assignment]


def is_rewritten(name: str) -> bool:
    """Whether pytest rewrites the assertions of a file of this name."""
    return name == "conftest.py" or fnmatch(name, "test_*.py") or fnmatch(name, "*_test.py")


def compile_ahead(files: Iterable[tuple[str, bytes]], config: pytest.Config) -> bytes:
    """The code of the files that compile without a word, with path and digest; `Codes.know` reads it."""
    made = []
    for path, source in files:
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("error")  # whoever imports it shall see the warning: it is compiled again
            made.append((path, hashlib.sha256(source).digest(), compiled(path, source, config)))
    return marshal.dumps(made)


def compiled(path: str, source: bytes, config: pytest.Config) -> CodeType:
    """As pytest and importlib compile it."""
    if not is_rewritten(PurePosixPath(path).name):
        return compile(source, path, "exec", dont_inherit=True)
    tree = ast.parse(source, filename=path)
    rewrite.rewrite_asserts(tree, source, path, config)
    return compile(tree, path, "exec", dont_inherit=True)


def in_fork(work: Callable[[], bytes]) -> int:
    """Start `work` in a fork; returns the descriptor its result comes from, of which nothing is read if it fails.

    Compiling executes nothing of the source, but it may take all time, memory and stack.
    """
    read_end, write_end = os.pipe()
    if os.fork():
        os.close(write_end)
        return read_end
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (COMPILE_SECONDS, COMPILE_SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_AS, (COMPILE_BYTES, COMPILE_BYTES))
        view = memoryview(work())
        while view:
            view = view[os.write(write_end, view) :]
    finally:
        os._exit(0)
