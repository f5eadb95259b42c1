"""Calls and parameters of a source arrive; arguments that are missing, exchanged or of the wrong kind leave."""

import ast
from collections.abc import Iterator

from grader.operators.operator import Operator, becomes, never
from grader.operators.source import Edits, Function, Source, called, handed, own_attribute, parameters


def drop_keyword(source: Source) -> Iterator[Edits]:
    """An argument given by name is left to its default. Not `strict`, which only ever guards."""
    for node in source.nodes:
        if isinstance(node, ast.Call):
            items: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
            for i, item in enumerate(items):
                if isinstance(item, ast.keyword) and item.arg not in (None, "strict"):
                    yield source.drop_item(items, i)


def drop_last_argument(source: Source) -> Iterator[Edits]:
    """The last argument of a call of the module's own method is left to its default."""
    optional = {
        function.name: len(parameters(function)) - len(function.args.defaults) - 1
        for function in ast.walk(source.tree)
        if isinstance(function, Function) and function.args.defaults
    }
    for node in source.nodes:
        match node:
            case ast.Call(func=func, args=[*_, _], keywords=[]) if own_attribute(func) in optional:
                if len(node.args) > optional[own_attribute(func)]:
                    yield source.drop_item(node.args, len(node.args) - 1)


def swap_arguments(source: Source) -> Iterator[Edits]:
    """Two neighbours that are values, not numbers written out."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and called(node) not in ("zip", "isinstance", "where"):
            for first, second in zip(node.args, node.args[1:], strict=False):
                plain = isinstance(first, ast.Constant) or isinstance(second, ast.Constant)
                if not plain and source.segment(first) != source.segment(second):
                    yield source.swap(first, second)


def flip_flag(source: Source) -> Iterator[Edits]:
    """True as False where it is an argument or a default, and the other way round."""
    for node in source.nodes:
        values: list[ast.expr | None] = []
        if isinstance(node, ast.Call):
            values = [*handed(node)]
        elif isinstance(node, Function):
            values = [*node.args.defaults, *node.args.kw_defaults]
        for value in values:
            match value:
                case ast.Constant(value=bool(flag)):
                    yield source.replace(value, str(not flag))


def fix_flag(source: Source) -> Iterator[Edits]:
    """A flag that is handed on is always one of its values, or the opposite."""
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            function = source.function_of(node)
            match keyword.value:
                case ast.Name(id=name) as value if function is not None and name in _flags(function):
                    for text in (f"not {name}", "True", "False"):
                        yield source.replace(value, text)


def _flags(function: Function) -> set[str]:
    return {
        each.arg
        for each in parameters(function)
        if isinstance(each.annotation, ast.Name) and each.annotation.id == "bool"
    }


def swap_parameters(source: Source) -> Iterator[Edits]:
    """A parameter stands where another of the same kind belongs: same annotation, and names of one family."""
    for node in source.nodes:
        function = source.function_of(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and function is not None:
            for other in _akin(function, node.id):
                yield source.replace(node, other)


def _akin(function: Function, name: str) -> list[str]:
    """Other parameters that share annotation and the word before or behind an underscore; or are single letters."""
    given = {each.arg: ast.dump(each.annotation) for each in parameters(function) if each.annotation is not None}
    words = set(name.split("_"))
    return [
        other
        for other, annotation in given.items()
        if other != name
        and given.get(name) == annotation
        and (words & set(other.split("_")) or len(name) == len(other) == 1)
    ]


OPTIONAL = "class A:\n    def f(self, x, m=None):\n        return x\n    def g(self, x, m):\n        return "

OPERATORS = (
    Operator(
        drop_keyword,
        "argument",
        "a setting is not handed on",
        becomes("f(x, axis=-1, keepdims=True)", "f(x, keepdims=True)", "f(x, axis=-1)")
        + becomes("f(mask=mask)", "f()")
        + never("f(x, y)", "zip(a, b, strict=True)", "f(**options)", "raise E(a=b)"),
    ),
    Operator(
        drop_last_argument,
        "argument",
        "an argument is not handed on",
        becomes(OPTIONAL + "self.f(x, m)", OPTIONAL + "self.f(x)")
        + never("class A:\n    def f(self, x):\n        return self.f(x)", "f(x, y)"),
    ),
    Operator(
        swap_arguments,
        "argument",
        "two arguments are exchanged",
        becomes("f(q, k, v)", "f(k, q, v)", "f(q, v, k)")
        + becomes("self.f(x.a, g(y))", "self.f(g(y), x.a)")
        + never("f(x, 1)", "f(x, x)", "f(x, y=z)", "zip(a, b)"),
    ),
    Operator(
        flip_flag,
        "argument",
        "a setting is the opposite of what it says",
        becomes("x.sum(axis=0, keepdims=True)", "x.sum(axis=0, keepdims=False)")
        + becomes("def f(x, bias: bool = True):\n    pass", "def f(x, bias: bool = False):\n    pass")
        + never("f(None)", "x = True", "f(1)"),
    ),
    Operator(
        fix_flag,
        "argument",
        "a setting has no effect, or the opposite one",
        becomes(
            "def f(bias: bool):\n    g(bias=bias)",
            "def f(bias: bool):\n    g(bias=not bias)",
            "def f(bias: bool):\n    g(bias=True)",
            "def f(bias: bool):\n    g(bias=False)",
        )
        + never("def f(bias):\n    g(bias=bias)", "g(bias=bias)", "def f(bias: bool):\n    g(bias=True)"),
    ),
    Operator(
        swap_parameters,
        "projection",
        "one input stands where the other belongs",
        becomes("def f(x_q: T, x_kv: T, m: T):\n    return g(x_kv)", "def f(x_q: T, x_kv: T, m: T):\n    return g(x_q)")
        + becomes(
            "def f(q: T, k: T):\n    return q @ k",
            "def f(q: T, k: T):\n    return k @ k",
            "def f(q: T, k: T):\n    return q @ q",
        )
        + never(
            "def f(x_q, x_kv):\n    return x_q",
            "def f(x_q: T, x_kv: S):\n    return x_q",
            "def f(a: T, mask: T):\n    g(a)",
        ),
    ),
)
