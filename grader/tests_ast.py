"""A student's test files go in; the names, numbers and words in them, read without running anything, come out.

What students are shown during a mutation run comes from here only: names and literals frozen from their own upload can
carry nothing of the reference. Imports between the files are followed as Python would; what is imported from elsewhere
is not looked at (docs/decisions/0113-names-are-followed-through-the-upload.md).
"""

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import lru_cache
from itertools import islice

from grader.source import Unparsed, last_name, read_only_tree, statements
from sandbox.records import File

TEST_CASES = ("TestCase", "IsolatedAsyncioTestCase")

# A suite has 200 tests at most; these bounds are for sources that are made to be expensive.
MOST_NAMES = 10_000
MOST_STEPS = 20_000
"""imports followed, names taken over by them, and members of classes looked at, in one upload"""
DEEPEST_IMPORT = 20
LARGEST_FAMILY = 50
DEEPEST_CLASS = 10


@dataclass(frozen=True)
class TestName:
    """A test as its file spells it. `id` is path::[Class::]function as pytest has it; `path`, `line` and `end` say
    where its def stands, which may be in another file of the upload."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    id: str
    path: str
    line: int
    end: int


def frozen_names(tests: Iterable[File]) -> tuple[TestName, ...]:
    """Every test pytest would collect by its default rules, in file order. Files that cannot be parsed have none.

    Tests may be inherited or imported from other files of the upload. Those made while running are not found.
    """
    upload = _Upload({file.path: file.data for file in tests if file.path.endswith(".py")})
    found: dict[str, TestName] = {}
    for path in upload.sources:
        if is_test_file(path):
            for name in islice(_names(path, upload), MOST_NAMES - len(found)):
                found[name.id] = name  # a later definition of the same name replaces the earlier, as in Python
    return tuple(found.values())


def is_test_file(path: str) -> bool:
    """pytest's default python_files."""
    name = path.rpartition("/")[2]
    return fnmatch(name, "test_*.py") or fnmatch(name, "*_test.py")


# -- what names mean -------------------------------------------------------------------------------------------------

_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class _Function:
    path: str
    line: int
    end: int


@dataclass(frozen=True, eq=False)
class _Class:
    """A class with its own members, and its bases as far as they stand in the upload."""

    members: Mapping[str, "_Meaning"]
    bases: tuple["_Class", ...]
    is_test_case: bool

    def family(self) -> tuple["_Class", ...]:
        """The class itself first, then its bases and theirs."""
        found = {self: None}
        waiting = list(self.bases)
        while waiting and len(found) < LARGEST_FAMILY:
            member = waiting.pop(0)
            if member not in found:
                found[member] = None
                waiting += member.bases
        return tuple(found)


@dataclass(frozen=True)
class _Module:
    """A file of the upload, or a folder that is imported like one."""

    path: str


_Meaning = _Function | _Class | _Module


@dataclass
class _Upload:
    """The Python files of an upload by path, and what the names in them mean, worked out once for each file."""

    sources: Mapping[str, bytes]
    steps: int = MOST_STEPS
    _spaces: dict[str, dict[str, _Meaning]] = field(default_factory=dict)
    _depth: int = 0

    def __post_init__(self) -> None:
        self._folders = {folder for path in self.sources for folder in _folders(path)}
        self._bases = sorted({self._base(path) for path in self.sources if is_test_file(path) or _is_conftest(path)})

    def space(self, path: str) -> dict[str, _Meaning]:
        """What the names of a module mean. A module that is still being read has what it has so far, as in Python."""
        if path in self._spaces:
            return self._spaces[path]
        if path not in self.sources or self._depth >= DEEPEST_IMPORT:
            return {}
        space = self._spaces[path] = {}
        tree = read_only_tree(self.sources[path])
        if not isinstance(tree, Unparsed):
            self._depth += 1
            for node in statements(tree.body):
                self._bind(path, node, space)
            self._depth -= 1
        return space

    def _bind(self, path: str, node: ast.stmt, space: dict[str, _Meaning]) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                space[node.name] = _function(path, node)
            case ast.ClassDef():
                space[node.name] = self._class(path, node, space)
            case ast.Import():
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    module = self._module(path, alias.name if alias.asname else name)
                    if module is not None:
                        space[name] = module
            case ast.ImportFrom():
                self._import_from(path, node, space)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if (meaning := self._meaning(value, space)) is not None:
                    space[name] = meaning
            case _:
                pass

    def _import_from(self, path: str, node: ast.ImportFrom, space: dict[str, _Meaning]) -> None:
        module = self._module(path, node.module or "", node.level)
        if module is None:
            return
        for alias in node.names:
            if alias.name == "*":
                names = [name for name in self.space(module.path) if not name.startswith("_")]
            else:
                names = [alias.name]
            for name in names:
                if self.steps <= 0:
                    return
                self.steps -= 1
                if (meaning := self._attribute(module, name)) is not None:
                    space[alias.asname or name] = meaning

    def _class(self, path: str, node: ast.ClassDef, space: Mapping[str, _Meaning], depth: int = 0) -> _Class:
        members: dict[str, _Meaning] = {}
        for inner in statements(node.body):
            match inner:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    members[inner.name] = _function(path, inner)
                case ast.ClassDef() if depth < DEEPEST_CLASS:
                    members[inner.name] = self._class(path, inner, space, depth + 1)
                case _:
                    pass
        meanings = [self._meaning(base, space) for base in node.bases]
        bases = tuple(meaning for meaning in meanings if isinstance(meaning, _Class))
        is_test_case = any(last_name(base) in TEST_CASES for base in node.bases)
        return _Class(members, bases, is_test_case)

    def _meaning(self, node: ast.expr, space: Mapping[str, _Meaning]) -> _Meaning | None:
        """What a name as written means, "a" or "a.b.c"."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        meaning = space.get(node.id) if isinstance(node, ast.Name) else None
        for name in reversed(attributes):
            meaning = self._attribute(meaning, name)
        return meaning

    def _attribute(self, of: _Meaning | None, name: str) -> _Meaning | None:
        match of:
            case _Module(path):
                folder = _folder(path) if path.endswith("/__init__.py") else path
                inside = self._file(f"{folder}/{name}") if not folder.endswith(".py") else None
                return self.space(path).get(name, inside)
            case _Class():
                return next((one.members[name] for one in of.family() if name in one.members), None)
            case _:
                return None

    def _module(self, importer: str, name: str, level: int = 0) -> _Module | None:
        """The file that an import of `name` in the file `importer` loads. pytest puts the first folder that is no
        package on the path, of every test file and conftest.py; the suite's own folder is there too."""
        inner = name.replace(".", "/")
        if level:
            folder = _folder(importer)
            for _ in range(level - 1):
                folder = _folder(folder)
            return self._file("/".join(filter(None, (folder, inner))))
        self.steps -= 1
        if self.steps <= 0:
            return None
        places = dict.fromkeys((self._base(importer), "", *self._bases))
        return next((module for place in places if (module := self._file(f"{place}/{inner}".lstrip("/")))), None)

    def _base(self, path: str) -> str:
        folder = _folder(path)
        while folder and f"{folder}/__init__.py" in self.sources:
            folder = _folder(folder)
        return folder

    def _file(self, stem: str) -> _Module | None:
        for path in (f"{stem}/__init__.py", f"{stem}.py"):
            if path in self.sources:
                return _Module(path)
        return _Module(stem) if stem in self._folders else None


def _function(path: str, node: _FunctionNode) -> _Function:
    return _Function(path, node.lineno, node.end_lineno or node.lineno)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _folders(path: str) -> Iterator[str]:
    while path := _folder(path):
        yield path


def _is_conftest(path: str) -> bool:
    return path.rpartition("/")[2] == "conftest.py"


# -- what pytest collects --------------------------------------------------------------------------------------------


def _names(path: str, upload: _Upload) -> Iterator[TestName]:
    for name, meaning in upload.space(path).items():
        match meaning:
            case _Function() if name.startswith("test"):
                yield TestName(f"{path}::{name}", meaning.path, meaning.line, meaning.end)
            case _Class():
                yield from _class_names(f"{path}::{name}", name, meaning, upload)
            case _:
                pass


def _class_names(prefix: str, name: str, found: _Class, upload: _Upload, depth: int = 0) -> Iterator[TestName]:
    family = found.family()
    unittest_style = any(member.is_test_case for member in family)
    made_otherwise = any(method in member.members for member in family for method in ("__init__", "__new__"))
    if not unittest_style and (not name.startswith("Test") or made_otherwise):
        return
    members: dict[str, _Meaning] = {}
    for member in family:
        for inner, meaning in member.members.items():
            upload.steps -= 1
            if upload.steps <= 0:
                return
            members.setdefault(inner, meaning)
    for inner, meaning in members.items():
        match meaning:
            case _Function() if inner.startswith("test"):
                yield TestName(f"{prefix}::{inner}", meaning.path, meaning.line, meaning.end)
            case _Class() if not unittest_style and depth < DEEPEST_CLASS:
                yield from _class_names(f"{prefix}::{inner}", inner, meaning, upload, depth + 1)
            case _:
                pass


# -- words and numbers -----------------------------------------------------------------------------------------------

EQUAL_ALL = "==all"
"""stands for arrays compared bit by bit: (a == b).all(), np.all(a == b)"""


def words(source: bytes, line: int) -> frozenset[str]:
    """The names that stand in the function whose def is in `line`, and in functions of its file that it names: names,
    attributes, parameters, keywords and texts that are names. What is private to the file is not among them."""
    spoken = _spoken(source)
    by_name = {each.name: each for each in spoken}
    waiting = [each for each in spoken if each.line == line]
    known, found = set(waiting), set[str]()
    while waiting:
        each = waiting.pop()
        found |= each.words
        called = {by_name[name] for name in each.names if name in by_name} - known
        known |= called
        waiting += called
    return frozenset(found - by_name.keys())


@dataclass(frozen=True)
class _Spoken:
    """What stands in a function: the names it uses itself, and its words as a whole."""

    name: str
    line: int
    names: frozenset[str]
    words: frozenset[str]


@lru_cache(maxsize=16)  # asked for once for each test of a file
def _spoken(source: bytes) -> tuple[_Spoken, ...]:
    tree = read_only_tree(source)
    if isinstance(tree, Unparsed):
        return ()
    functions = [node for node in ast.walk(tree) if isinstance(node, _FunctionNode)]
    return tuple(_Spoken(node.name, node.lineno, frozenset(_used(node)), frozenset(_words(node))) for node in functions)


def _used(function: _FunctionNode) -> Iterator[str]:
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                yield name
            case _:
                pass


def _words(function: _FunctionNode) -> Iterator[str]:
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) if not name.startswith("_"):
                yield name
            case ast.Attribute(attr=name, value=value) if last_name(value) not in ("self", "cls"):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.Constant(value=str(text)) if text.isidentifier():
                yield text
            case ast.Call(func=ast.Attribute(attr="all", value=ast.Compare(ops=[ast.Eq()]))):
                yield EQUAL_ALL
            case ast.Call(func=func, args=[ast.Compare(ops=[ast.Eq()])]) if last_name(func) == "all":
                yield EQUAL_ALL
            case _:
                pass


@lru_cache(maxsize=16)
def number_literals(source: bytes) -> tuple[tuple[str, int], ...]:
    """Number literals as written ("0.055817"), each with its line, as far as the source can be tokenised."""
    found: list[tuple[str, int]] = []
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            if token.type == tokenize.NUMBER:
                found.append((token.string, token.start[0]))
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass  # what stands before the fault has been read
    return tuple(found)
