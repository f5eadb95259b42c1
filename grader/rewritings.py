"""A module's syntax tree arrives; the same module, written another way, leaves: one function for each way.

Every rewriting keeps what the code computes to the last bit, the exceptions it raises and the text it raises them
with. It changes only what it can see to be safe, and leaves everything else alone: parameters, public names,
attributes, the order of calls, of attribute assignments and of operands that could act on each other. Its examples
are its tests: `after` is one of the forms that `before` can take; where they are equal, nothing may change.
"""

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from grader import scopes


class Choices(Random):
    """What a rewriting draws from: numbers, and names that do not occur in the source it is made for."""

    def __init__(self, seed: str, source: str) -> None:
        super().__init__(seed)
        self._taken = set(scopes.words(source))

    def name(self) -> str:
        while (name := f"{self.choice('abcdefghjkmnpqrstuvwxyz')}_{self.randrange(1000)}") in self._taken:
            pass
        self._taken.add(name)
        return name


@dataclass(frozen=True)
class Rewriting:
    """`apply` changes the tree in place and takes all its choices from `Choices`."""

    apply: Callable[[ast.Module, Choices], None]
    examples: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        return self.apply.__name__


Function = ast.FunctionDef | ast.AsyncFunctionDef
Body = list[ast.stmt]
PLAIN_DECORATORS = ("staticmethod", "classmethod", "property")


# -- what nobody may read ----------------------------------------------------------------------------------------------


def drop_docstrings(tree: ast.Module, choices: Choices) -> None:
    for node in scopes.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])


def drop_annotations(tree: ast.Module, choices: Choices) -> None:
    """Of functions and of their variables. Those of a class can mean something, and so can those under a decorator."""
    for node in scopes.walk(tree):
        if isinstance(node, Function) and all(map(_plain_decorator, node.decorator_list)):
            node.returns = None
            for argument in scopes.arguments(node.args):
                argument.annotation = None
    for body in scopes.function_bodies(tree):
        for i, statement in enumerate(body):
            if isinstance(statement, ast.AnnAssign) and statement.value is not None:
                body[i] = ast.Assign(targets=[statement.target], value=statement.value)


def _plain_decorator(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in PLAIN_DECORATORS


# -- order -------------------------------------------------------------------------------------------------------------


def order_imports(tree: ast.Module, choices: Choices) -> None:
    """Neighbouring imports at the top of the module that bind different names."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and _names_one_thing_each(node):
            choices.shuffle(node.names)
    _shuffle_runs(tree.body, _is_import, _bound, choices)


def _names_one_thing_each(node: ast.ImportFrom) -> bool:
    names = [alias.asname or alias.name for alias in node.names]
    return len(set(names)) == len(names)


def _is_import(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module != "__future__" and node.names[0].name != "*"
    return isinstance(node, ast.Import)


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return {node.name} if isinstance(node, Function) else set()


def order_definitions(tree: ast.Module, choices: Choices) -> None:
    """Neighbouring functions of a module, and methods of a class, whose definition evaluates nothing."""
    for node in scopes.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            _shuffle_runs(node.body, _evaluates_nothing, _bound, choices)


def _evaluates_nothing(node: ast.stmt) -> bool:
    if not isinstance(node, Function) or not all(map(_plain_decorator, node.decorator_list)):
        return False
    defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    notes = [node.returns, *(argument.annotation for argument in scopes.arguments(node.args))]
    return all(isinstance(default, ast.Constant) for default in defaults) and not any(notes)


def _shuffle_runs(
    body: Body, belongs: Callable[[ast.stmt], bool], bound: Callable[[ast.stmt], set[str]], choices: Choices
) -> None:
    """Shuffle neighbours that belong, each run as long as all its names differ."""
    start = 0
    while start < len(body):
        names: set[str] = set()
        end = start
        while end < len(body) and belongs(body[end]) and not (bound(body[end]) & names):
            names |= bound(body[end])
            end += 1
        run = body[start:end]
        choices.shuffle(run)
        body[start:end] = run
        start = max(end, start + 1)


def order_assignments(tree: ast.Module, choices: Choices) -> None:
    """Neighbours that give local names constants, parameters, or attributes of parameters: no call, no other local."""
    for function in scopes.outermost(tree):
        reads_only = partial(_reads_only, scopes.steady_parameters(function))
        for body in scopes.bodies(function):
            _shuffle_runs(body, reads_only, _targets, choices)


def _reads_only(steady: frozenset[str], node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and bool(_targets(node)) and _is_reading(node.value, steady)


def _is_reading(node: ast.expr, steady: frozenset[str]) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name in steady
        case ast.Attribute(value=ast.Name(id=name)):
            return name in steady
        case ast.Tuple(elts=items):
            return all(_is_reading(item, steady) for item in items)
    return False


def _targets(node: ast.stmt) -> set[str]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return {name}
    return set()


# -- forms -------------------------------------------------------------------------------------------------------------


def name_values(tree: ast.Module, choices: Choices) -> None:
    """Give what is returned, assigned or asked a name first. Not for `a or b` as a condition, which would be asked
    twice."""
    for function in scopes.outermost(tree):
        if scopes.is_opaque(function):
            continue
        for body in scopes.bodies(function):
            for i in range(len(body) - 1, -1, -1):
                if (value := _nameable(body[i])) is not None and choices.random() < 0.3:
                    name = choices.name()
                    _replace_value(body[i], ast.Name(name, ast.Load()))
                    body.insert(i, ast.Assign(targets=[ast.Name(name, ast.Store())], value=value))


def _nameable(node: ast.stmt) -> ast.expr | None:
    match node:
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            return value
        case ast.Assign(targets=[ast.Name()], value=value) if not isinstance(value, ast.Constant | ast.Name):
            return value
        case ast.If(test=ast.Compare(ops=[_]) | ast.Call() | ast.Attribute() as test):
            return test
    return None


def _replace_value(node: ast.stmt, value: ast.expr) -> None:
    if isinstance(node, ast.If):
        node.test = value
    elif isinstance(node, ast.Return | ast.Assign):
        node.value = value


def unfold_choices(tree: ast.Module, choices: Choices) -> None:
    """x = a if c else b as an if statement, and so for return."""
    for body in scopes.function_bodies(tree):
        for i, node in enumerate(body):
            match node:
                case ast.Assign(value=ast.IfExp() as choice) | ast.Return(value=ast.IfExp() as choice):
                    if choices.random() < 0.5:
                        other = copy.deepcopy(node)
                        node.value, other.value = choice.body, choice.orelse
                        body[i] = ast.If(test=choice.test, body=[node], orelse=[other])


def split_alternatives(tree: ast.Module, choices: Choices) -> None:
    """if a or b: X as if a: X elif b: X, for an X of one statement."""
    for body in scopes.function_bodies(tree):
        for i, node in enumerate(body):
            match node:
                case ast.If(test=ast.BoolOp(op=ast.Or(), values=[first, *rest]), body=[_], orelse=orelse):
                    if choices.random() < 0.5:
                        test = rest[0] if len(rest) == 1 else ast.BoolOp(op=ast.Or(), values=rest)
                        second = ast.If(test=test, body=copy.deepcopy(node.body), orelse=orelse)
                        body[i] = ast.If(test=first, body=node.body, orelse=[second])


def nest_rest(tree: ast.Module, choices: Choices) -> None:
    """What follows an if that always leaves, as its else."""
    for function in scopes.outermost(tree):
        for body in scopes.bodies(function):
            for i in range(len(body) - 2, -1, -1):
                node = body[i]
                if isinstance(node, ast.If) and _leaves(node.body) and not node.orelse and choices.random() < 0.3:
                    node.orelse = body[i + 1 :]
                    del body[i + 1 :]


def _leaves(body: Body) -> bool:
    return isinstance(body[-1], ast.Return | ast.Raise)


def flip_conditions(tree: ast.Module, choices: Choices) -> None:
    """a if c else b as b if not c else a, and so for if statements."""
    for node in scopes.walk(tree):
        if isinstance(node, ast.IfExp) and choices.random() < 0.5:
            node.test, node.body, node.orelse = _not(node.test), node.orelse, node.body
    for body in scopes.function_bodies(tree):
        for node in body:
            if isinstance(node, ast.If) and choices.random() < 0.4:
                node.test, node.body, node.orelse = _not(node.test), node.orelse or [ast.Pass()], node.body


def _not(test: ast.expr) -> ast.expr:
    """The opposite of a condition, where only its truth matters."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(op=ast.Not(), operand=test)


MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
    ast.Is: ast.Is,
    ast.IsNot: ast.IsNot,
}


def flip_comparisons(tree: ast.Module, choices: Choices) -> None:
    """x < 1 as 1 > x: one comparison with a number or None, which evaluates nothing else out of order."""
    for node in scopes.walk(tree):
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in MIRRORED:
                if (_is_plain(left) or _is_plain(right)) and choices.random() < 0.5:
                    node.left, node.comparators = right, [left]
                    node.ops = [MIRRORED[type(operator)]()]


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or _is_number(node))


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def swap_factors(tree: ast.Module, choices: Choices) -> None:
    """2 * x as x * 2, and 1 + x as x + 1: sums and products of two are the same either way, to the last bit."""
    for node in scopes.walk(tree):
        match node:
            case ast.BinOp(left=left, op=ast.Mult() | ast.Add(), right=right):
                if _is_number(left) != _is_number(right) and choices.random() < 0.5:
                    node.left, node.right = right, left


def spell_slices(tree: ast.Module, choices: Choices) -> None:
    """x[a:b] as x[slice(a, b)], unless the module has a slice of its own."""
    if scopes.binds(tree, "slice"):
        return
    for node in scopes.walk(tree):
        if not isinstance(node, ast.Subscript):
            continue
        if isinstance(node.slice, ast.Slice):
            if choices.random() < 0.5:
                node.slice = _slice_call(node.slice)
        elif isinstance(node.slice, ast.Tuple):
            items = node.slice.elts
            for i, item in enumerate(items):
                if isinstance(item, ast.Slice) and choices.random() < 0.3:
                    items[i] = _slice_call(item)


def _slice_call(node: ast.Slice) -> ast.expr:
    ends = [end or ast.Constant(None) for end in (node.lower, node.upper)]
    steps = [] if node.step is None else [node.step]
    return ast.Call(func=ast.Name("slice", ast.Load()), args=[*ends, *steps], keywords=[])


def pad(tree: ast.Module, choices: Choices) -> None:
    """Constants assigned to names that nothing reads: they move what follows."""
    for function in scopes.functions(tree):
        if scopes.is_opaque(function):
            continue
        bodies = list(scopes.bodies(function))
        for _ in range(choices.randint(1, 3)):
            body = choices.choice(bodies)
            target = ast.Name(choices.name(), ast.Store())
            value = ast.Constant(choices.choice((None, True, False, choices.randint(0, 4096), choices.random())))
            body.insert(choices.randint(0, len(body) - 1), ast.Assign(targets=[target], value=value))


# -- names -------------------------------------------------------------------------------------------------------------


def rename_locals(tree: ast.Module, choices: Choices) -> None:
    """Names that a function binds by assignment, loop or comprehension; never a parameter."""
    for function in scopes.outermost(tree):
        if scopes.is_opaque(function):
            continue
        for names in scopes.local_bindings(function):
            new = choices.name()
            for name in names:
                name.id = new


def rename_private_functions(tree: ast.Module, choices: Choices) -> None:
    """A function of the module whose name begins with one underscore and is only ever called or handed on by it.

    Methods keep their names: a base class that is not here may call them.
    """
    mentions: Counter[str] | None = None
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or node.decorator_list or not scopes.is_private(node.name):
            continue
        mentions = mentions or scopes.mentions(tree)
        uses = [name for name in scopes.walk(tree) if isinstance(name, ast.Name) and name.id == node.name]
        if mentions[node.name] == len(uses) + 1 and all(isinstance(use.ctx, ast.Load) for use in uses):
            node.name = f"_{choices.name()}"
            for use in uses:
                use.id = node.name


def _each(*pairs: str) -> tuple[tuple[str, str], ...]:
    return tuple(zip(pairs[::2], pairs[1::2], strict=True))


def _same(*texts: str) -> tuple[tuple[str, str], ...]:
    return tuple((text, text) for text in texts)


REWRITINGS: Sequence[Rewriting] = (
    Rewriting(
        drop_docstrings,
        _each('"""A."""\nx = 1', "x = 1", 'def f():\n    """B."""', "def f():\n    pass") + _same("x = 'text'"),
    ),
    Rewriting(
        drop_annotations,
        _each("def f(a: int) -> int:\n    b: int = a\n    return b", "def f(a):\n    b = a\n    return b")
        + _same("class A:\n    x: int = 1", "@register\ndef f(a: int):\n    pass", "def f():\n    a: int"),
    ),
    Rewriting(
        order_imports,
        _each("import a\nimport b", "import b\nimport a", "from a import b, c", "from a import c, b")
        + _same("import a.b\nimport a", "from __future__ import annotations\nimport a", "import a\nx = a\nimport b"),
    ),
    Rewriting(
        order_definitions,
        _each(
            "class A:\n\n    def f(self):\n        pass\n\n    def g(self):\n        pass",
            "class A:\n\n    def g(self):\n        pass\n\n    def f(self):\n        pass",
        )
        + _same(
            "def f():\n    pass\n\ndef f():\n    return 1",
            "def f():\n    pass\n\ndef g(a=f()):\n    pass",
            "def f():\n    pass\n\n@f\ndef g():\n    pass",
        ),
    ),
    Rewriting(
        rename_private_functions,
        _each("def _f():\n    pass\n_f()", "def _q_1():\n    pass\n_q_1()")
        + _same(
            "def f():\n    pass",
            "def _f():\n    pass\ngetattr(x, '_f')",
            "class A:\n\n    def _f(self):\n        pass\nA()._f()",
            "class A:\n\n    def __f(self):\n        self.__f()",
            "def _f():\n    pass\n_f = 1",
        ),
    ),
    Rewriting(
        name_values,
        _each("def f(a):\n    return g(a)", "def f(a):\n    q_1 = g(a)\n    return q_1")
        + _same("def f(a, b):\n    if a or b:\n        pass", "def f():\n    return locals()", "x = g()"),
    ),
    Rewriting(
        unfold_choices,
        _each(
            "def f(a, c):\n    b = a if c else 1\n    return b",
            "def f(a, c):\n    if c:\n        b = a\n    else:\n        b = 1\n    return b",
        )
        + _same("b = 1 if c else 2"),
    ),
    Rewriting(
        split_alternatives,
        _each(
            "def f(a, b):\n    if a or b:\n        raise E",
            "def f(a, b):\n    if a:\n        raise E\n    elif b:\n        raise E",
        )
        + _same("def f(a, b):\n    if a and b:\n        raise E"),
    ),
    Rewriting(
        nest_rest,
        _each(
            "def f(a):\n    if a:\n        return 1\n    return 2",
            "def f(a):\n    if a:\n        return 1\n    else:\n        return 2",
        )
        + _same("def f(a):\n    if a:\n        g()\n    return 2"),
    ),
    Rewriting(
        flip_conditions,
        _each("x = a if c else b", "x = b if not c else a", "x = a if not c else b", "x = b if c else a")
        + _each(
            "def f(a):\n    if a:\n        g()",
            "def f(a):\n    if not a:\n        pass\n    else:\n        g()",
        )
        + _same("if a:\n    b = 1"),
    ),
    Rewriting(
        flip_comparisons,
        _each("x < 1", "1 > x", "f() is None", "None is f()", "3 != x", "x != 3")
        + _same("f() < g()", "0 <= x < 1", "x in (1, 2)", "x == 'text'"),
    ),
    Rewriting(
        swap_factors,
        _each("2 * x", "x * 2", "x + 1.5", "1.5 + x") + _same("x * y", "f() + g()", "x - 1", "x / 2", "'a' + x"),
    ),
    Rewriting(
        spell_slices,
        _each(
            "x[1:n]", "x[slice(1, n)]", "x[:, ::2]", "x[:, slice(None, None, 2)]", "x[a:] = b", "x[slice(a, None)] = b"
        )
        + _same("x[1]", "slice = 3\nx[1:n]"),
    ),
    Rewriting(
        order_assignments,
        _each(
            "def f(self, a):\n    b = self.x\n    c = (a, 1)\n    return (b, c)",
            "def f(self, a):\n    c = (a, 1)\n    b = self.x\n    return (b, c)",
        )
        + _same(
            "def f(a):\n    b = a\n    c = b",
            "def f(a):\n    b = g()\n    c = h()",
            "def f(self, a):\n    self.x = a\n    self.y = a",
            "def f(a):\n    b = a\n    b = 1",
            "def f(a, b):\n    a = 1\n    c = a",
        ),
    ),
    Rewriting(
        pad,
        _each("def f(a):\n    return a", "def f(a):\n    q_1 = None\n    return a")
        + _same("x = 1", "class A:\n    x = 1", "def f():\n    return locals()"),
    ),
    Rewriting(
        rename_locals,
        _each(
            "def f(a):\n    b = a\n    return [b for c in a]",
            "def f(a):\n    q_1 = a\n    return [q_1 for q_2 in a]",
            "def f(a):\n    x = [x for x in x]\n    return x",
            "def f(a):\n    q_1 = [q_2 for q_2 in q_1]\n    return q_1",
        )
        + _same(
            "def f(a):\n    a = 1\n    return a",
            "def f(a):\n    b = a\n    return locals()",
            "def f():\n    global b\n    b = 1",
            "def f():\n    return b",
            "def f():\n\n    def g():\n        pass\n    return g",
            "def f():\n\n    class A:\n        b = 1\n    return A.b",
        ),
    ),
)


def examples() -> Iterator[tuple[Rewriting, str, str]]:
    for rewriting in REWRITINGS:
        for before, after in rewriting.examples:
            yield rewriting, before, after
