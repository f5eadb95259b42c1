"""Imports modules given as bytes, as code or as source: nothing of theirs lies on disk, and no source that compiles
is kept.

The packages above a module need no source of their own: they are namespace packages unless given.
"""

import ast
import importlib.abc
import importlib.machinery
import linecache
import marshal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, ModuleType

ONE_PLACE = {"lineno": 1, "end_lineno": 1, "col_offset": 0, "end_col_offset": 0}


@dataclass(frozen=True)
class Source:
    name: str
    filename: str
    visible: bool
    data: bytes
    is_code: bool = False
    """data is code of this version of Python, marshalled, instead of source"""


class MemoryFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._packages: set[str] = set()
        self._codes: dict[str, CodeType] = {}
        self._filenames: dict[str, str] = {}
        self.visible: set[str] = set()
        """file names of the modules whose source tracebacks may show"""

    def install(self, sources: Sequence[Source]) -> None:
        """Make the sources importable, ahead of everything else; one replaces a module of its name already imported.

        Modules imported before that hold the replaced one keep it.
        """
        if sys.meta_path[0] is not self:
            sys.meta_path[:] = [self, *(finder for finder in sys.meta_path if finder is not self)]
        for source in sources:
            self._keep(source)
            self._filenames[source.name] = source.filename
            parents = source.name.split(".")[:-1]
            self._packages |= {".".join(parents[: count + 1]) for count in range(len(parents))}
            _forget(source.name)
            linecache.cache.pop(source.filename, None)
            self.visible.discard(source.filename)
            if source.visible:
                self.visible.add(source.filename)
                text = source.data.decode("utf-8", "replace")
                linecache.cache[source.filename] = (len(text), None, text.splitlines(True), source.filename)

    def _keep(self, source: Source) -> None:
        """As code only: whoever shares the process with this finder could read a source from it."""
        self._sources.pop(source.name, None)
        self._codes.pop(source.name, None)
        try:
            self._codes[source.name] = marshal.loads(source.data) if source.is_code else compiled(source)
        except Exception:  # whoever imports it is told, by compiling it again
            self._sources[source.name] = source

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name in self._filenames:
            spec = importlib.machinery.ModuleSpec(
                name, self, origin=self._filenames[name], is_package=name in self._packages
            )
            spec.has_location = True
            return spec
        if name in self._packages:
            return importlib.machinery.ModuleSpec(name, None, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code(module.__name__), module.__dict__)

    def _code(self, name: str) -> CodeType:
        return self._codes[name] if name in self._codes else compiled(self._sources[name])


def compiled(source: Source) -> CodeType:
    """Everything that may not be seen lies on one line and in one column: its line table tells nothing but its
    length."""
    if source.visible:
        return compile(source.data, source.filename, "exec", dont_inherit=True)
    tree = ast.parse(source.data, source.filename)
    for node in ast.walk(tree):
        if "lineno" in node._attributes:
            vars(node).update(ONE_PLACE)
    return compile(tree, source.filename, "exec", dont_inherit=True)


def _forget(name: str) -> None:
    sys.modules.pop(name, None)
    parent, _, child = name.rpartition(".")
    if parent in sys.modules and hasattr(sys.modules[parent], child):
        delattr(sys.modules[parent], child)
