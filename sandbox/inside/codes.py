"""Files that runs will lay come in before there are runs; when a run imports one, its code is there already.

Compiling is done in a fork that executes none of it (decision 0155). Code is found by path and bytes, so a file that a
run writes or changes is compiled as ever. Of an inert suite (`inert.py`) two codes of each file are made: of its
imports that must wait for the run, and of everything else.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from types import CodeType
from typing import Any

import pytest
from _pytest.assertion import rewrite

from sandbox.inside.child import write
from sandbox.inside.inert import imported_here, waiting_of

Key = tuple[str, bytes]
"""Where a file lies, and the digest of its bytes."""

COMPILE_SECONDS = 5
COMPILE_BYTES = 512 << 20


@dataclass(frozen=True)
class Compiled:
    """The files of a suite as code, by path; of those that do not compile without a word there is none.

    `early` and `late` are None unless the suite is inert: then the code that is executed before the fork, and that of
    the imports which wait for the run.
    """

    digests: Mapping[str, bytes]
    whole: Mapping[str, CodeType]
    early: Mapping[str, CodeType] | None = None
    late: Mapping[str, CodeType] | None = None

    def to_bytes(self) -> bytes:
        parts: Any = (self.digests, self.whole, self.early, self.late)
        return marshal.dumps(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Compiled":
        return cls(*marshal.loads(data))


class Codes:
    """The code of source files, by place and bytes. Given to the two ways of importing that test files have."""

    def __init__(self) -> None:
        self._known: dict[Key, CodeType] = {}

    def know(self, compiled: Compiled, directories: Sequence[str]) -> None:
        """Keep what was compiled, for each directory that runs lie in."""
        for directory in directories:
            self._known |= placed(compiled.whole, compiled.digests, directory)

    @contextmanager
    def early(self, compiled: Compiled, directory: str) -> Iterator[None]:
        """Find instead of whole files what is executed of them before the fork."""
        known = self._known
        self._known = {**known, **placed(compiled.early or {}, compiled.digests, directory)}
        try:
            yield
        finally:
            self._known = known

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


def placed(codes: Mapping[str, CodeType], digests: Mapping[str, bytes], directory: str) -> dict[Key, CodeType]:
    """The codes as of files that lie in a directory. Each has one place, so a second directory needs copies."""
    found = {}
    for path, code in marshal.loads(marshal.dumps(dict(codes))).items():
        place = f"{directory}/{path}"
        _imp._fix_co_filename(code, place)  # type: ignore[attr-defined]
        found[place, digests[path]] = code
    return found


def compile_ahead(files: Mapping[str, bytes], path_dirs: Sequence[str], config: pytest.Config) -> Compiled:
    """A suite's files, by path, as code; imports are looked up in `path_dirs`."""
    trees, whole = {}, {}
    for path, source in files.items():
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("error")  # whoever imports it shall see the warning: it is compiled again
            trees[path] = ast.parse(source, filename=path)
    waiting = waiting_of(trees, path_dirs, imported_here()) if len(trees) == len(files) else None
    for path, tree in trees.items():
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("error")
            if is_rewritten(PurePosixPath(path).name):
                rewrite.rewrite_asserts(tree, files[path], path, config)
            whole[path] = compile(tree, path, "exec", dont_inherit=True)
    digests = {path: hashlib.sha256(files[path]).digest() for path in whole}
    if waiting is None or len(whole) < len(files):
        return Compiled(digests, whole)
    early, late = {}, {}
    for path, tree in trees.items():
        tree.body = [node for node in tree.body if node not in waiting[path]]
        early[path] = compile(tree, path, "exec", dont_inherit=True)
        if waiting[path]:
            statements = ast.Module([*waiting[path]], type_ignores=[])
            late[path] = compile(statements, path, "exec", dont_inherit=True)
    return Compiled(digests, whole, early, late)


def in_fork(work: Callable[[], bytes]) -> int:
    """Start `work` in a fork; returns the descriptor its result comes from, of which nothing is read if it fails.

    Compiling executes nothing of the source, but it may take all time, memory and stack.
    """
    read_end, write_end = os.pipe()
    if os.fork():
        os.close(write_end)
        return read_end
    try:
        os.close(read_end)  # or it would wait for ever to be read if the reader dies
        resource.setrlimit(resource.RLIMIT_CPU, (COMPILE_SECONDS, COMPILE_SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_AS, (COMPILE_BYTES, COMPILE_BYTES))
        write(write_end, work())
    finally:
        os._exit(0)
