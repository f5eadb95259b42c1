"""Modules arrive; whether their functions can leave nothing behind for each other leaves.

Leaving a test out is safe only if no other test would have noticed. So a suite whose tests share something that changes
is always run whole, and so is one against a unit that keeps something between calls. What is read here is what people
write, not what they could: a suite that hides its memory harms only itself (decision 0235). What is not listed as
harmless is in doubt, and doubt costs only time.
"""

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath

from grader.scopes import Function, arguments, bound_names, children, own_nodes, walk
from grader.source import Unparsed, last_name, read_only_tree

LIBRARIES = {
    *("__future__", "abc", "collections", "contextlib", "copy", "dataclasses", "enum", "fractions", "functools"),
    *("inspect", "itertools", "math", "numbers", "operator", "random", "re", "statistics", "string", "textwrap"),
    *("typing", "unittest", "numpy", "pytest"),
}
DECORATORS = {
    *("pytest.fixture", "staticmethod", "classmethod", "property", "contextlib.contextmanager", "functools.wraps"),
    *("dataclasses.dataclass", "abc.abstractmethod"),
}
FIXTURE_KEYWORDS = {"params", "autouse", "ids", "name", "scope"}
WIDE_FIXTURES = {
    *("cache", "pytestconfig", "tmp_path_factory", "tmpdir_factory", "record_testsuite_property"),
    *("doctest_namespace", "pytester", "testdir"),
}
WIDE_NAMES = {
    *("setup_module", "teardown_module", "setup_class", "teardown_class", "setUpModule", "tearDownModule"),
    *("setUpClass", "tearDownClass", "addClassCleanup", "addModuleCleanup", "enterClassContext", "importorskip"),
    *("cache", "lru_cache", "cached_property", "mock"),
}
REACHING = {
    *("exec", "eval", "compile", "globals", "vars", "setattr", "delattr", "open", "input", "breakpoint"),
    "__import__",
}
SPECIAL = {"__init__", "__name__", "__doc__", "__version__", "__file__", "__main__"}
RANDOM = {"default_rng", "Generator", "RandomState", "SeedSequence", "PCG64", "Philox", "MT19937", "SFC64", "Random"}
CHANGING = {
    *("append", "extend", "insert", "pop", "popitem", "remove", "clear", "update", "add", "discard", "sort", "reverse"),
    *("fill", "put", "resize"),
}
CHANGING_FOR_ALL = {"put", "memmap", "tofile", "dump", "write", "setflags"}
CHANGING_PREFIXES = ("set", "save", "seed", "reset", "register", "enable", "disable", "patch", "use_")
CONSTANT_CALLS = {"range", "slice", "pytest.param", "numpy.float32", "numpy.float64", "numpy.int32", "numpy.int64"}
READING = {
    *("len", "zip", "enumerate", "sorted", "list", "tuple", "set", "dict", "range", "sum", "min", "max", "reversed"),
}


class _Doubt(Exception):
    """Something could be kept from one call for another."""


def are_independent(files: Mapping[str, bytes], packages: Collection[str]) -> bool:
    """Whether no function of these files, by path, keeps anything for another one.

    `packages` are the top packages that they may import beside each other, numpy and pytest.
    """
    own = {part for path in files for part in PurePosixPath(path).with_suffix("").parts}
    return all(_keeps_nothing(source, frozenset(own), frozenset(packages)) for source in files.values())


@lru_cache(maxsize=4096)  # variants are the same for every submission
def _keeps_nothing(source: bytes, own: frozenset[str], packages: frozenset[str]) -> bool:
    tree = read_only_tree(source)
    if isinstance(tree, Unparsed):
        return False
    try:
        _Module(own, packages).read(tree)
    except (_Doubt, RecursionError):
        return False
    return True


@dataclass
class _Module:
    """One file, read twice: for its names, and for what its functions do with them."""

    own: frozenset[str]
    packages: frozenset[str]
    origins: dict[str, str] = field(default_factory=dict)
    """imported names, with what they stand for"""
    shared: set[str] = field(default_factory=set)
    """names of what could be changed for all: imported things, functions, classes, and what is made of them"""
    lists: set[str] = field(default_factory=set)
    """names of containers of what cannot change, which may only be read"""

    def read(self, tree: ast.Module) -> None:
        for node in tree.body:
            self._bind(node)
        for parent in walk(tree) if self.lists else ():
            for name in children(parent):
                if isinstance(name, ast.Name) and name.id in self.lists and isinstance(name.ctx, ast.Load):
                    require(self._only_reads(parent))
        for node in tree.body:
            if isinstance(node, Function | ast.ClassDef):
                self._definition(node)

    def _bind(self, node: ast.stmt) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                require(not name.startswith("pytest_"))
                self.shared.add(name)
            case ast.Assign(targets=[ast.Name(id="pytestmark" | "__all__")]):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._constant(name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._constant(name, value)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__")), orelse=[]):
                pass  # never so in a suite
            case _:
                raise _Doubt

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        relative = isinstance(node, ast.ImportFrom) and node.level > 0
        for alias in node.names:
            origin = alias.name if isinstance(node, ast.Import) else f"{node.module or ''}.{alias.name}"
            require(relative or origin.partition(".")[0] in LIBRARIES | self.own | self.packages)
            require(not _is_chancy(origin) and origin.rpartition(".")[2] not in {"*", "random"} | WIDE_NAMES)
            name = alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)
            self.origins[name] = origin if alias.asname or isinstance(node, ast.ImportFrom) else name
            self.shared.add(name)

    def _constant(self, name: str, value: ast.expr) -> None:
        require(name != "pytest_plugins")
        if self._names_shared(value):
            self.shared.add(name)
        if isinstance(value, ast.List | ast.Set | ast.Dict):
            require(all(map(self._is_constant, _parts(value))))
            self.lists.add(name)
        else:
            require(self._is_constant(value))

    def _names_shared(self, node: ast.AST) -> bool:
        """Whether it is made of something that could be changed for all; the libraries' own things are not."""
        names = (each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id in self.shared)
        return any(not self.is_of_library(name) for name in names)

    def is_of_library(self, node: ast.expr) -> bool:
        return self.origin(node).partition(".")[0] in LIBRARIES

    def _is_constant(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant():
                return True
            case ast.Name(id=name):
                return name not in self.lists
            case ast.Attribute(value=value) | ast.UnaryOp(operand=value):
                return self._is_constant(value)
            case ast.BinOp(left=left, right=right):
                return self._is_constant(left) and self._is_constant(right)
            case ast.Tuple(elts=parts):
                return all(map(self._is_constant, parts))
            case ast.Call(func=func, args=parts, keywords=keywords):
                parts = [*parts, *(keyword.value for keyword in keywords)]
                return self.origin(func) in CONSTANT_CALLS and all(map(self._is_values, parts))
        return False

    def _is_values(self, node: ast.expr) -> bool:
        """What tests are given as parameters: constants, in lists or not. Marks change nothing."""
        if isinstance(node, ast.List | ast.Set | ast.Dict):
            return all(map(self._is_values, _parts(node)))
        if self.origin(node).startswith("pytest.mark."):
            return True
        is_value = isinstance(node, ast.Name | ast.Lambda) or self._is_constant(node)
        return is_value and not self._names_shared(node)

    def _only_reads(self, parent: ast.AST) -> bool:
        match parent:
            case ast.For() | ast.comprehension() | ast.Compare() | ast.Subscript(ctx=ast.Load()) | ast.Starred():
                return True
            case ast.Call(func=func):  # that of a mark gives each test the values, which are constants
                return self.origin(func) in READING or self.origin(func).startswith("pytest.mark.")
        return False

    def origin(self, node: ast.expr) -> str:
        """What a name or attribute stands for, in full: "numpy.random.rand"."""
        match node:
            case ast.Name(id=name):
                return self.origins.get(name, name)
            case ast.Attribute(value=value, attr=attr):
                return f"{self.origin(value)}.{attr}"
            case ast.Call(func=func):
                return self.origin(func)
        return ""

    # Functions.

    def _definition(self, node: Function | ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self._decorator(decorator)
        if isinstance(node, Function):
            self._function(node, frozenset(), frozenset())
            return
        require(not node.keywords)
        for part in node.body:
            match part:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self._definition(part)
                case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                    require(self._is_constant(value) or self.origin(value).startswith("pytest.mark."))
                case ast.AnnAssign(value=None) | ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case _:
                    raise _Doubt

    def _decorator(self, node: ast.expr) -> None:
        origin = self.origin(node)
        is_mark = origin.startswith("pytest.mark.")
        require(is_mark or origin in DECORATORS or origin.endswith(".setter"))
        if not isinstance(node, ast.Call):
            return
        if origin == "pytest.fixture":
            require(not node.args and {keyword.arg for keyword in node.keywords} <= FIXTURE_KEYWORDS)
            for keyword in node.keywords:
                require(keyword.arg != "scope" or ast.dump(keyword.value) == ast.dump(ast.Constant("function")))
        if is_mark or origin == "pytest.fixture":
            require(all(map(self._is_values, [*node.args, *(keyword.value for keyword in node.keywords)])))

    def _function(self, node: Function | ast.Lambda, outer: frozenset[str], outer_aliases: frozenset[str]) -> None:
        """`outer` are the local names of the functions around it, `outer_aliases` those that may be shared things."""
        if isinstance(node, Function):
            require(node.name not in WIDE_NAMES)
        parameters = {argument.arg for argument in arguments(node.args)}
        require(not parameters & WIDE_FIXTURES)
        defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        require(bool(outer) or not any(self._names_shared(default) for default in defaults))
        require(bool(outer) or all(map(self._is_constant, defaults)))
        mine = frozenset(bound_names(node))
        frame = _Frame(self, outer | mine, (outer_aliases - parameters) | ({"cls"} & parameters))
        frame.find_aliases(node)
        frame.look_for_requests(node)
        for each in own_nodes(node):
            if isinstance(each, Function | ast.Lambda):
                self._function(each, frame.names, frame.aliases)
            else:
                frame.look_at(each)


@dataclass
class _Frame:
    """A function's own names, and those among them that may stand for something shared."""

    module: _Module
    names: frozenset[str]
    aliases: frozenset[str]

    def find_aliases(self, node: Function | ast.Lambda) -> None:
        while True:
            found = set(self.aliases)
            for each in own_nodes(node):
                for target, value in _bindings(each):
                    require(self.module.origin(value) != "numpy.random")
                    if self.may_be_shared(value):
                        found |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
            if found == self.aliases:
                return
            self.aliases = frozenset(found)

    def may_be_shared(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self.aliases or (name in self.module.shared and name not in self.names)
            case ast.Attribute(value=value) | ast.Subscript(value=value) | ast.Starred(value=value):
                return self.may_be_shared(value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.BoolOp(values=parts):
                return any(map(self.may_be_shared, parts))
            case ast.IfExp(body=body, orelse=orelse):
                return self.may_be_shared(body) or self.may_be_shared(orelse)
            case ast.NamedExpr(value=value):
                return self.may_be_shared(value)
            case ast.Call(func=ast.Name(id="type")):
                return True
        return False

    def look_for_requests(self, node: Function | ast.Lambda) -> None:
        """pytest's `request` leads to everything: only its `param` is asked for."""
        requests = [each for each in own_nodes(node) if isinstance(each, ast.Name) and each.id == "request"]
        asked = [each.value for each in own_nodes(node) if isinstance(each, ast.Attribute) and each.attr == "param"]
        require(all(any(request is each for each in asked) for request in requests))

    def look_at(self, node: ast.AST) -> None:
        match node:
            case ast.Global() | ast.Import() | ast.ImportFrom():
                raise _Doubt
            case ast.Name(id=name):
                require(name in self.names or (name not in REACHING and name not in WIDE_NAMES))
            case ast.Attribute(attr=attr):
                require(not attr.startswith("__") or attr in SPECIAL)
                require(attr not in WIDE_NAMES and not _is_chancy(self.module.origin(node)))
                if isinstance(node.ctx, ast.Store | ast.Del):
                    self._store(node)
            case ast.Subscript(ctx=ast.Store() | ast.Del()):
                self._store(node)
            case ast.AugAssign(target=ast.Name(id=name)):
                require(name not in self.aliases)  # += changes an array in place
            case ast.Return(value=value) | ast.Yield(value=value) if value is not None:
                require(not self.could_be_changed(value))
            case ast.Call():
                self._call(node)

    def _store(self, node: ast.expr) -> None:
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        require(isinstance(node, ast.Name) and node.id in self.names and not self.may_be_shared(node))

    def _call(self, node: ast.Call) -> None:
        name = last_name(node.func)
        if self.may_be_shared(node.func):
            require(name not in CHANGING_FOR_ALL and not name.startswith(CHANGING_PREFIXES))
            require(name not in CHANGING or self.module.is_of_library(node.func))
        if isinstance(node.func, ast.Name) and self._is_of_suite(name):
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            require(not any(map(self.could_be_changed, values)))

    def could_be_changed(self, node: ast.expr) -> bool:
        """Whether it is something shared, that a function of the suite which is handed it could change."""
        return self.may_be_shared(node) and not self.module.is_of_library(node)

    def _is_of_suite(self, name: str) -> bool:
        origin = self.module.origins.get(name, "")
        if not origin:
            return name in self.names or name in self.module.shared
        return origin.partition(".")[0] in self.module.own


def _bindings(node: ast.AST) -> Iterable[tuple[ast.expr, ast.expr]]:
    """What a statement or expression gives names to: the targets, and the value that they or parts of them are."""
    match node:
        case ast.Assign(targets=targets, value=value):
            return [(target, value) for target in targets if not isinstance(target, ast.Attribute | ast.Subscript)]
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            return [(target, value)] if isinstance(target, ast.Name) else []
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            return [(target, value)]
        case ast.withitem(optional_vars=ast.expr() as target, context_expr=value):
            return [(target, value)]
    return []


def _parts(node: ast.List | ast.Set | ast.Dict) -> list[ast.expr]:
    if isinstance(node, ast.Dict):
        return [part for part in (*node.keys, *node.values) if part is not None]
    return node.elts


def _is_chancy(origin: str) -> bool:
    """Whether it draws from a generator that all tests share."""
    module, _, name = origin.rpartition(".")
    return module in ("numpy.random", "random") and name not in RANDOM


def require(harmless: bool) -> None:
    if not harmless:
        raise _Doubt
