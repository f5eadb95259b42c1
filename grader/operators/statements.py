"""Statements of a source arrive; steps that are missing, doubled or in another order leave."""

import ast
from collections.abc import Iterator

from grader.operators.operator import Operator, becomes, never
from grader.operators.source import Edit, Edits, Source, called, own_attribute, parameters


def delete_statement(source: Source) -> Iterator[Edits]:
    """Calls, updates, and assignments to a name that has a value already: the code still runs without them."""
    for node in source.nodes:
        match node:
            case ast.Expr(value=ast.Call(func=func)) if "super" not in source.segment(func):
                yield source.delete(node)
            case ast.AugAssign():
                yield source.delete(node)
            case ast.Assign(targets=[ast.Name(id=name)]) if _bound_before(source, node, name):
                yield source.delete(node)
            case ast.Assign(targets=[ast.Subscript()]):
                yield source.delete(node)


def _bound_before(source: Source, node: ast.stmt, name: str) -> bool:
    function = source.function_of(node)
    if function is None:
        return False
    stored = (
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
    )
    before = source.span(node)[0]
    return name in {each.arg for each in parameters(function)} or any(source.span(each)[0] < before for each in stored)


def duplicate_statement(source: Source) -> Iterator[Edits]:
    """A step x = f(x) is taken twice."""
    for node in source.nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as value) if _uses(value, name):
                if (lines := source.lines_of(node)) is not None:
                    text = source.text[slice(*lines)].removesuffix("\n") + "\n"
                    yield (Edit(lines[0], lines[0], text),)


def _uses(value: ast.expr, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(value))


def swap_statements(source: Source) -> Iterator[Edits]:
    """Two steps that follow each other and are of one kind: they assign the same name, or what the same call makes."""
    for first, second in source.neighbours():
        if _alike(first, second):
            yield source.swap_lines(first, second)


def _kind(node: ast.stmt) -> tuple[str, str] | None:
    """What is assigned, and the call that makes it."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, called(value)
        case ast.Assign(targets=[ast.Attribute() as target], value=value) if called(value):
            return own_attribute(target), called(value)
    return None


def _alike(first: ast.stmt, second: ast.stmt) -> bool:
    one, two = _kind(first), _kind(second)
    if one is None or two is None:
        return False
    both_own = all(isinstance(each, ast.Assign) and own_attribute(each.targets[0]) for each in (first, second))
    return one[0] == two[0] or (both_own and one[1] == two[1])


def return_early(source: Source) -> Iterator[Edits]:
    """The last step before a result is skipped: what it was made from is returned."""
    for pair in source.neighbours():
        match pair:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[ast.Name(id=made_from)])),
                ast.Return(value=ast.Name(id=returned) as result),
            ) if name == returned != made_from:
                yield source.replace(result, made_from)


def skip_item(source: Source) -> Iterator[Edits]:
    """A loop passes over the first or the last of its items."""
    for node in source.nodes:
        match node:
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[ast.expr() as count])):
                yield source.replace(count, f"1, {source.segment(count)}")
                yield source.replace(count, f"{source.operand(count)} - 1")
            case ast.For(iter=items):
                listed = f"list({source.segment(items)})"
                yield source.replace(items, f"{listed}[1:]")
                yield source.replace(items, f"{listed}[:-1]")


OPERATORS = (
    Operator(
        delete_statement,
        "statement",
        "a step is missing",
        becomes("f(x)\ny = 1", "y = 1")
        + becomes("def f(x):\n    x = g(x)  # twice\n    return x", "def f(x):\n    return x")
        + becomes("g[i] += 1\nh = 2", "h = 2")
        + becomes("x.data[...] = y\nz = 1", "z = 1")
        + never("def f():\n    y = 1\n    return y", '"""A text."""', "super().__init__()", "return_value = 3"),
    ),
    Operator(
        duplicate_statement,
        "statement",
        "a step is taken twice",
        becomes("x = T(x, 1, 2)  # swap\n", "x = T(x, 1, 2)  # swap\nx = T(x, 1, 2)  # swap\n")
        + never("x = T(y)", "x.y = T(x)", "x = x + 1"),
    ),
    Operator(
        swap_statements,
        "statement",
        "two steps are in the wrong order",
        becomes("x = A(x)  # one\nx = B(x)\n", "x = B(x)\nx = A(x)  # one\n")
        + becomes("self.a = L(d)\nself.b = L(d)\n", "self.b = L(d)\nself.a = L(d)\n")
        + never("x = A(x)\ny = A(x)", "self.a = A()\nself.b = B()", "self.a = 1\nself.b = 1"),
    ),
    Operator(
        return_early,
        "statement",
        "the last step before the result is missing",
        becomes("def f(a):\n    b = g(a)\n    return b", "def f(a):\n    b = g(a)\n    return a")
        + never("def f(a):\n    a = g(a)\n    return a", "def f(a):\n    b = g(a)\n    return c"),
    ),
    Operator(
        skip_item,
        "statement",
        "the first or the last of several is passed over",
        becomes("for i in range(n):\n    f(i)", "for i in range(1, n):\n    f(i)", "for i in range(n - 1):\n    f(i)")
        + becomes(
            "for a, b in zip(x, y):\n    a.b = b",
            "for a, b in list(zip(x, y))[1:]:\n    a.b = b",
            "for a, b in list(zip(x, y))[:-1]:\n    a.b = b",
        )
        + never("[f(i) for i in x]", "while a:\n    b()"),
    ),
)
