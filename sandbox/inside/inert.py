"""A suite's files arrive as syntax trees; which of their imports must wait for the run leaves, or that it cannot be
collected ahead at all.

A suite is inert if importing its files does nothing but import, define and name: no call, loop or condition of its
author is executed. Such a suite is collected before the fork, once, because there is nothing it could do or remember
there (decision 0159). What is not imported yet in that process, such as the unit under test, is imported by the run:
those statements are split off. What is not listed here as harmless makes a suite not inert, which costs only time.
"""

import ast
import builtins
import inspect
import math
import posixpath
import sys
import unittest
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import PurePosixPath
from types import GenericAlias, ModuleType

MOST_ITEMS = 1000
MOST_REFERRED = 10_000
"""nodes and characters that the values of names stand for, where a file names them again"""
MOST_SPELLED = 10_000_000
"""characters of all names of items together"""
UNKNOWN = ""
"""origin of a name whose value is not an imported one"""

MARK = "pytest.mark."
PARAMETRIZE = f"{MARK}parametrize"
FIXTURE = "pytest.fixture"
DECORATORS = {
    FIXTURE,
    "contextlib.contextmanager",
    "functools.cache",
    "functools.lru_cache",
    "builtins.staticmethod",
    "builtins.classmethod",
}
CACHE = "functools.lru_cache"
CALLED_DECORATORS = {FIXTURE, CACHE}
"""The others would take what they are given for what they decorate, and call the result with what they decorate."""
CALLS = {"pytest.param", "numpy.array", "builtins.range"}
BASES = {"builtins.object", "unittest.TestCase", "unittest.case.TestCase"}
OF_INSTANCES = {"__init__", "__call__", "__enter__", "__exit__", "__getitem__", "__iter__", "__len__", "__repr__"}
CALL_KEYWORDS = {PARAMETRIZE, FIXTURE, CACHE, "pytest.param"}
"""what calls a function that it is given by keyword, such as `ids`"""
TEST_CASE_METHODS = {"setUp", "tearDown", "setUpClass", "tearDownClass", "asyncSetUp", "asyncTearDown"}
XUNIT = {"setUpModule", "tearDownModule", "setup_module", "teardown_module", "setup_function", "teardown_function"}
PATH_CALLS = {"sys.path.append", "sys.path.insert"}
PLACES = {"builtins.str", "pathlib.Path", "os.path.abspath", "os.path.dirname", "os.path.join"}
RUN_DIRECTORY = "/\0"
"""stands for the run's directory in a place; no place can be written with it"""
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)


class Active(Exception):
    """Something at the top level of a file could do more than define."""


def waiting_of(
    files: Mapping[str, ast.Module], path_dirs: Iterable[str], imported: Mapping[str, ModuleType]
) -> dict[str, list[ast.stmt]] | None:
    """For each file of a suite the statements that its runs execute, which are imports; None if it is not inert.

    `files` are trees by path; `path_dirs` the folders that imports are looked up in; `imported` modules, by name, that
    are there already.
    """
    own = names_of(files, path_dirs)
    if any(is_found_elsewhere(name.partition(".")[0], imported) for name in own):
        return None
    try:
        readings = {path: Reading(own, imported, path) for path in files}
        for path, tree in files.items():
            readings[path].read(tree)
        fixtures = math.prod(reading.fixture_values for reading in readings.values())
        items = fixtures * sum(reading.items for reading in readings.values())
        spelled = sum(reading.spelled + reading.referred for reading in readings.values())
        if items > MOST_ITEMS or items * spelled > MOST_SPELLED:
            return None
        taken = set().union(*(reading.taken for reading in readings.values()))
        if any(taken & reading.multiplied for reading in readings.values()):
            return None
    except (Active, RecursionError):
        return None
    return {path: reading.waiting for path, reading in readings.items()}


def is_found_elsewhere(name: str, imported: Mapping[str, ModuleType]) -> bool:
    """Whether importing a file of this name could import something else, which then finds other files of the suite
    where it expects modules, and calls what they define."""
    if name in imported or name in sys.stdlib_module_names:
        return True
    spec = PathFinder.find_spec(name)
    return spec is not None and spec.loader is not None


def names_of(paths: Iterable[str], path_dirs: Iterable[str]) -> set[str]:
    """The names under which files may be imported, with those of their packages."""
    names = set()
    for path in map(PurePosixPath, paths):
        for folder in (*path_dirs, str(path.parent)):
            if path.is_relative_to(folder):
                parts = path.relative_to(folder).with_suffix("").parts
                parts = parts[:-1] if parts[-1] == "__init__" else parts
                names |= {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return names


@dataclass
class Name:
    """What a global name stands for: an imported thing (`origin`), a class of the file's own that others may be made
    from, or a value of `length`, if it has one. One that waits has no value yet.

    `weight` is the size of the value, all that it names included; a class has `items`, which are multiplied by
    `factor`, as are those of classes made from it.
    """

    origin: str = UNKNOWN
    length: int | None = None
    is_base: bool = False
    waits: bool = False
    weight: int = 1
    is_type: bool = False
    items: int = 0
    factor: int = 1


@dataclass
class Reading:
    """One file, read from top to bottom."""

    own: Set[str]
    imported: Mapping[str, ModuleType]
    path: str
    names: dict[str, Name] = field(default_factory=dict)
    waiting: list[ast.stmt] = field(default_factory=list)
    items: int = 0
    """an upper bound of what it is collected to, but for the values of fixtures"""
    fixture_values: int = 1
    module_values: int = 1
    multiplied: set[str] = field(default_factory=set)
    """names of what is collected to more than one item, or multiplies others: under a second name it would again"""
    taken: set[str] = field(default_factory=set)
    """names that are imported from other files of the suite"""
    referred: int = 0
    spelled: int = 0
    """size of the parameters, of which the names of items are made"""
    future_annotations: bool = False

    def read(self, tree: ast.Module) -> None:
        for node in tree.body:
            self._statement(node)
        self.items *= self.module_values

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node)
                self._bind(node.name, Name())
            case ast.ClassDef():
                self._bind(node.name, self._class(node))
            case ast.Assign():
                for target, value in pairs_of(node):
                    self._assign(target, value)
            case ast.AnnAssign(target=ast.Name() as target, annotation=annotation, value=value):
                self._annotation(annotation)
                if value is not None:
                    self._assign(target, value)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call(func=func, args=arguments, keywords=[])) if self._origin(func) in PATH_CALLS:
                if not all(map(self._is_inside, arguments)):
                    raise Active
            case ast.If(test=test, orelse=[]) if ast.dump(test) == RUN_AS_SCRIPT:
                pass  # never so in a suite
            case _:
                raise Active

    # Names.

    def _bind(self, name: str, meaning: Name) -> None:
        before = self.names.get(name)
        again = before is not None and (before.waits or meaning.waits) and before != meaning
        if again or is_special(name) or (meaning.waits and self._is_looked_for(name)):
            raise Active
        self.names[name] = meaning

    def _is_looked_for(self, name: str) -> bool:
        """Whether a module that lacks this name is collected otherwise, or imported from otherwise."""
        return name.lower().startswith("test") or name in XUNIT or any(own.endswith(f".{name}") for own in self.own)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        waits = set()
        for alias in node.names:
            if isinstance(node, ast.Import):
                there = self._is_there(alias.name)
                origin = alias.name if alias.asname else alias.name.partition(".")[0]
                name = alias.asname or origin
            else:
                if node.module == "__future__":
                    self.future_annotations |= alias.name == "annotations"
                    return
                if node.level or alias.name == "*" or node.module is None:
                    raise Active
                there = self._is_there(node.module, alias.name)
                origin, name = f"{node.module}.{alias.name}", alias.asname or alias.name
                if node.module in self.own:
                    self.taken.add(alias.name)
                    if name.lower().startswith("test"):
                        raise Active  # it is collected here too
            if name == "pytestmark":
                raise Active
            self.items += name.lower().startswith("test")
            waits.add(not there)
            self._bind(name, Name(origin, waits=not there and not self._shares_a_package(alias, node)))
        if len(waits) > 1:
            raise Active  # one statement, half of which could be executed
        if True in waits:
            self.waiting.append(node)

    def _shares_a_package(self, alias: ast.alias, node: ast.stmt) -> bool:
        """Whether what is bound is a package that is there, though a module in it is not: `import package.module`."""
        return isinstance(node, ast.Import) and not alias.asname and alias.name.partition(".")[0] in self.imported

    def _is_there(self, module: str, name: str = "") -> bool:
        """Whether it can be imported before the run: from the suite itself, or because it has been imported."""
        if module in self.own:
            return True
        if module not in self.imported:
            return False
        return not name or f"{module}.{name}" in self.imported or name in vars(self.imported[module])

    def _origin(self, node: ast.expr) -> str:
        """The full name of an imported thing or a builtin; UNKNOWN for everything else."""
        origin = self._full_name(node)
        is_mark = origin.startswith(MARK) and origin.count(".") == MARK.count(".")
        return origin if is_mark or self._is_known(origin) else UNKNOWN

    def _full_name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            origin = self._full_name(node.value)
            return f"{origin}.{node.attr}" if origin else UNKNOWN
        if not isinstance(node, ast.Name):
            return UNKNOWN
        if node.id not in self.names:
            return f"builtins.{node.id}" if hasattr(builtins, node.id) else UNKNOWN
        found = self.names[node.id]
        return UNKNOWN if found.waits or found.origin.partition(".")[0] in self.own else found.origin

    def _is_known(self, origin: str) -> bool:
        return bool(origin) and self._thing(origin) is not MISSING

    def _thing(self, origin: str) -> object:
        """What bears this full name, or MISSING; found without executing anything, such as a module's `__getattr__`."""
        first, *others = origin.split(".")
        thing: object = builtins if first == "builtins" else self.imported.get(first, MISSING)
        name = first
        for other in others:
            name = f"{name}.{other}"
            if isinstance(thing, ModuleType):
                thing = vars(thing).get(other, self.imported.get(name, MISSING))
            elif thing is not MISSING:
                thing = inspect.getattr_static(thing, other, MISSING)
        return thing

    def _is_type(self, node: ast.expr) -> bool:
        """Whether it is an imported type, or a form of `typing`: what an index makes another type of."""
        origin = self._origin(node)
        thing = self._thing(origin) if origin else MISSING
        return isinstance(thing, type | GenericAlias) or type(thing).__module__ == "typing"

    def _refer(self, name: str) -> None:
        """Count what a name of the file stands for: values made of names made of names must not grow without end."""
        self.referred += self.names[name].weight if name in self.names else 1
        if self.referred > MOST_REFERRED:
            raise Active

    # What is executed: values, decorators, annotations.

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if not isinstance(target, ast.Name):
            raise Active
        before = self.referred
        if target.id == "pytestmark":
            self.module_values *= self._marks(value)
        elif isinstance(value, ast.Lambda):
            self._arguments(value.args)
        else:
            self._value(value)
        self._alias(target.id, value)
        is_type = isinstance(value, ast.Subscript) or self._is_type(value)
        weight = size_of(value) + self.referred - before
        self._bind(target.id, Name(length=self._length(value), weight=weight, is_type=is_type))

    def _alias(self, name: str, value: ast.expr) -> None:
        """A second name for something must not have it collected again, but for single items, which count."""
        is_test = name.lower().startswith("test")
        self.items += is_test
        if isinstance(value, ast.Name):
            meant = self.names.get(value.id, Name())
            is_from_suite = meant.origin.partition(".")[0] in self.own
            if value.id in self.multiplied or meant.items or (is_test and is_from_suite):
                raise Active

    def _value(self, node: ast.expr) -> None:
        """Something whose evaluation takes no longer than reading it, and calls nothing of the author's."""
        match node:
            case ast.Constant():
                return
            case ast.Name():
                if node.id in self.names and self.names[node.id].waits:
                    raise Active
                self._refer(node.id)
                return
            case ast.Attribute() if self._origin(node) or self._is_place(node):
                return
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                pass
            case ast.Dict(keys=keys, values=parts) if all(key is not None and is_written_out(key) for key in keys):
                pass
            case ast.Set(elts=parts) if all(map(is_written_out, parts)):
                pass
            case ast.UnaryOp() | ast.BinOp() if is_number(node) or self._is_place(node):
                return
            case ast.Subscript() if self._is_type(node.value):
                self._annotation(node, evaluated=True)
                return
            case ast.Call() if self._is_place(node):
                return
            case ast.Call():
                self._call(node)
                return
            case _:
                raise Active
        for part in parts:
            self._value(part)

    def _call(self, node: ast.Call, allowed: Callable[[str], bool] = CALLS.__contains__) -> None:
        origin = self._origin(node.func)
        if not allowed(origin) or any(keyword.arg is None for keyword in node.keywords):
            raise Active
        keywords = {keyword.arg for keyword in node.keywords}
        if origin == "numpy.array":
            shaped = [keyword.value for keyword in node.keywords if not self._origin(keyword.value)]
            if len(node.args) != 1 or keywords - {"dtype"} or shaped or not is_numbers(node.args[0]):
                raise Active  # it may be of any size; so may a dtype that is given as text, or one that is text's
        if origin == "builtins.range" and self._count(node) > MOST_ITEMS:
            raise Active
        for keyword in node.keywords:
            if keyword.arg == "marks" and origin == "pytest.param":
                if self._marks(keyword.value) != 1:
                    raise Active
            else:
                self._value(keyword.value)
                if origin in CALL_KEYWORDS and not self._is_data(keyword.value):
                    raise Active
        for argument in node.args:
            self._value(argument)

    def _is_data(self, node: ast.expr) -> bool:
        """Nothing that could be called, whoever wrote it: `eval` for `ids` would do what the values say."""
        return not isinstance(node, ast.Name | ast.Attribute | ast.Subscript) or self._length(node) is not None

    def _length(self, node: ast.expr) -> int | None:
        match node:
            case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
                return len(elements)
            case ast.Dict(keys=keys):
                return len(keys)
            case ast.Constant(value=str() as text):
                return len(text)
            case ast.Name() if node.id in self.names:
                return self.names[node.id].length
            case ast.Call(args=arguments, keywords=[]) if self._origin(node.func) == "builtins.range":
                return length_of_range(arguments)
        return None

    def _marks(self, node: ast.expr) -> int:
        """By how much one mark, or a list of them, multiplies the items of what it marks."""
        marks = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
        return math.prod(map(self._mark, marks))

    def _mark(self, node: ast.expr) -> int:
        origin = self._origin(node.func if isinstance(node, ast.Call) else node)
        if not origin.startswith(MARK) or origin.count(".") != MARK.count("."):
            raise Active
        if not isinstance(node, ast.Call):
            return 1
        self._call(node, lambda name: True)
        self.spelled += size_of(node)
        if origin != PARAMETRIZE:
            if not all(map(self._is_data, node.args)):
                raise Active  # a mark that is given a function marks that, and is it then
            return 1
        if len(node.args) != 2:
            raise Active
        return self._count(node.args[1])

    def _decorator(self, node: ast.expr) -> int:
        """By how much it multiplies the items of the function it decorates."""
        origin = self._origin(node.func if isinstance(node, ast.Call) else node)
        if origin not in DECORATORS:
            return self._mark(node)
        if isinstance(node, ast.Call):
            self._call(node, CALLED_DECORATORS.__contains__)
            self.spelled += size_of(node)
            if (node.args and origin == FIXTURE) or not all(map(self._is_data, node.args)):
                raise Active
            for keyword in node.keywords:
                if (origin, keyword.arg) == (FIXTURE, "params"):
                    self.fixture_values *= self._count(keyword.value)
        return 1

    def _count(self, values: ast.expr) -> int:
        count = self._length(values)
        if count is None:
            raise Active
        return max(count, 1)

    def _annotation(self, node: ast.expr | None, evaluated: bool = False) -> None:
        if node is None or (self.future_annotations and not evaluated):
            return
        match node:
            case ast.Constant():
                return
            case ast.Name() | ast.Attribute() if self._origin(node):
                return
            case ast.Name() if node.id in self.names and not self.names[node.id].waits:
                self._refer(node.id)
            case ast.Subscript(value=base, slice=inner) if self._is_type(base):
                self._annotation(inner, evaluated)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._annotation(part, evaluated)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                for part in (left, right):
                    self._annotation(part, evaluated)
                    if isinstance(part, ast.Name) and not self._origin(part) and not self.names[part.id].is_type:
                        raise Active  # of two arrays it makes one that is as large as their product
            case _:
                raise Active

    # Definitions.

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if is_special(node.name):
            raise Active
        self._definition(node)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        fixtures = self.fixture_values
        count = math.prod(map(self._decorator, node.decorator_list))
        if count > 1 or self.fixture_values > fixtures:
            self.multiplied.add(node.name)
        self.items += count
        self._arguments(node.args)
        self._annotation(node.returns)

    def _arguments(self, arguments: ast.arguments) -> None:
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self._value(default)
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        for argument in every:
            if argument is not None:
                self._annotation(argument.annotation)

    def _class(self, node: ast.ClassDef) -> Name:
        """Others may not be made from it if it says what its instances do, of which pytest makes some."""
        instances = False
        if node.keywords or not all(self._is_plain_base(base) for base in node.bases):
            raise Active
        made_from = [self.names[base.id] for base in node.bases if isinstance(base, ast.Name) and base.id in self.names]
        factor = math.prod([*map(self._mark, node.decorator_list), *(base.factor for base in made_from)])
        before = self.items
        for part in node.body:
            match part:
                case ast.FunctionDef(name=name) if name in OF_INSTANCES and not node.bases:
                    instances = True
                    self._definition(part)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._member(part.name)
                    self._function(part)
                case ast.Assign():
                    for target, value in pairs_of(part):
                        if not isinstance(target, ast.Name) or target.id == "pytestmark":
                            raise Active
                        self._member(target.id)
                        self._value(value)
                        self._alias(target.id, value)
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case _:
                    raise Active
        items = self.items - before + sum(base.items for base in made_from)
        self.items = before + items * factor
        if items and node.bases:
            self.multiplied.add(node.name)  # pytest collects a TestCase of any name
        return Name(is_base=not instances, is_type=True, items=items, factor=factor)

    def _member(self, name: str) -> None:
        """A name in a class must not stand for something that is called as the class is made or collected."""
        imported = name in self.names and bool(self.names[name].origin)
        if is_special(name) or name in OVERRIDING or imported or hasattr(builtins, name):
            raise Active

    def _is_plain_base(self, base: ast.expr) -> bool:
        own = isinstance(base, ast.Name) and base.id in self.names and self.names[base.id].is_base
        return own or self._origin(base) in BASES

    def _is_place(self, node: ast.expr) -> bool:
        """Where the file lies, or a place relative to it, as `pathlib` and `os.path` are asked for it."""
        return self._place(node) is not None

    def _place(self, node: ast.expr) -> str | None:
        match node:
            case ast.Name(id="__file__"):
                return f"{RUN_DIRECTORY}/{self.path}"
            case ast.Attribute(value=value, attr="parent"):
                place = self._place(value)
                return None if place is None else posixpath.dirname(place)
            case ast.Call(func=ast.Attribute(value=value, attr="resolve" | "absolute"), args=[], keywords=[]):
                place = self._place(value)
                return None if place is None else posixpath.normpath(place)
            case ast.Call(func=func, args=[first, *rest], keywords=[]) if (origin := self._origin(func)) in PLACES:
                place = self._place(first)
                if place is not None and origin == "os.path.abspath":
                    place = posixpath.normpath(place)
                if place is not None and origin == "os.path.dirname":
                    place = posixpath.dirname(place)
                return below(place, rest)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return below(self._place(left), [right])
        return None

    def _is_inside(self, node: ast.expr) -> bool:
        """Whether it is a place within the run's directory, where nothing lies but the suite; or a number."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return True
        place = below(RUN_DIRECTORY, [node]) if isinstance(node, ast.Constant) else self._place(node)
        return place is not None and f"{posixpath.normpath(place)}/".startswith(f"{RUN_DIRECTORY}/")


class Missing:
    """Stands for a thing that is not there."""


MISSING = Missing()
RUN_AS_SCRIPT = ast.dump(ast.parse('__name__ == "__main__"', mode="eval").body)

OVERRIDING = {name for name in dir(unittest.TestCase) if not name.startswith("__")} - TEST_CASE_METHODS
"""what pytest calls of a test class as it collects it"""


def pairs_of(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """What is assigned to what; a tuple to a tuple of targets piece by piece."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for target in node.targets:
        match target, node.value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                pairs += zip(targets, values, strict=True)
            case _:
                pairs.append((target, node.value))
    return pairs


def below(place: str | None, parts: Iterable[ast.expr]) -> str | None:
    """A place from another one, if all parts are written out."""
    for part in parts:
        if place is None or not isinstance(part, ast.Constant) or not isinstance(part.value, str) or "\0" in part.value:
            return None
        place = posixpath.join(place, part.value)
    return place


def size_of(node: ast.expr) -> int:
    texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return sum(1 for _ in ast.walk(node)) + sum(len(text) for text in texts if isinstance(text, str | bytes))


def is_special(name: str) -> bool:
    """Names that Python or pytest itself looks for, as it imports or collects."""
    return name.startswith(("__", "pytest_")) or name == "pytest_plugins"


def is_written_out(node: ast.expr) -> bool:
    """A constant or a container of such: as large as its text, which one that is made of names need not be."""
    if isinstance(node, ast.Tuple | ast.List):
        return all(map(is_written_out, node.elts))
    return isinstance(node, ast.Constant) or is_number(node)


def is_numbers(node: ast.expr) -> bool:
    """As `is_written_out`, without texts: in an array each takes as much as the longest."""
    if isinstance(node, ast.Tuple | ast.List):
        return all(map(is_numbers, node.elts))
    return is_number(node) or (isinstance(node, ast.Constant) and node.value is None)


def length_of_range(arguments: Iterable[ast.expr]) -> int | None:
    bounds = [each.value for each in arguments if isinstance(each, ast.Constant) and type(each.value) is int]
    try:
        return len(range(*bounds)) if len(bounds) == len(tuple(arguments)) else None
    except (TypeError, ValueError, OverflowError):
        return None


def is_number(node: ast.expr) -> bool:
    """A number, or arithmetic of numbers that cannot grow beyond what is written."""
    match node:
        case ast.Constant(value=int() | float() | complex()):
            return True
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return is_number(operand)
        case ast.BinOp(left=ast.Constant(value=int() as base), op=ast.Pow(), right=ast.Constant(value=int() as power)):
            return base <= 1024 and power <= 64
        case ast.BinOp(left=left, op=op, right=right):
            return isinstance(op, ARITHMETIC) and is_number(left) and is_number(right)
    return False


def imported_here() -> Mapping[str, ModuleType]:
    """The modules of this process."""
    return {name: module for name, module in sys.modules.items() if isinstance(module, ModuleType)}
