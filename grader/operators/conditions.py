"""Conditions of a source arrive; comparisons, choices and checks that are wrong or gone leave."""

import ast
from collections.abc import Iterator

from grader.operators.operator import Operator, becomes, never
from grader.operators.source import Edits, Source, called, is_check

BOUNDARY: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}
OPPOSITE: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.In: ("in", "not in"),
    ast.Lt: ("<", ">="),
    ast.Gt: (">", "<="),
}
NEGATED: dict[type[ast.cmpop], str] = {ast.IsNot: "is", ast.NotIn: "in"}


def _comparisons(source: Source) -> Iterator[tuple[ast.expr, ast.cmpop, ast.expr]]:
    for node in source.nodes:
        if isinstance(node, ast.Compare):
            yield from zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)


def move_boundary(source: Source) -> Iterator[Edits]:
    for left, operator, right in _comparisons(source):
        if type(operator) in BOUNDARY:
            yield source.between(left, right, *BOUNDARY[type(operator)])


def negate_comparison(source: Source) -> Iterator[Edits]:
    for left, operator, right in _comparisons(source):
        if type(operator) in OPPOSITE:
            yield source.between(left, right, *OPPOSITE[type(operator)])
        elif type(operator) in NEGATED:
            gap = source.text[source.span(left)[1] : source.span(right)[0]].strip("()")
            yield source.between(left, right, gap.strip(), NEGATED[type(operator)])


def replace_logical(source: Source) -> Iterator[Edits]:
    """All of a row of `and` as `or`, and the other way round."""
    for node in source.nodes:
        if isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            pairs = zip(node.values, node.values[1:], strict=False)
            yield tuple(edit for left, right in pairs for edit in source.between(left, right, old, new))


def drop_condition(source: Source) -> Iterator[Edits]:
    """One of several that are joined by `and` or `or`."""
    for node in source.nodes:
        if isinstance(node, ast.BoolOp):
            spans = [source.outer_span(value) for value in node.values]
            kept = [source.text[slice(*span)] for span in spans]
            word = " and " if isinstance(node.op, ast.And) else " or "
            for i in range(len(kept)):
                yield source.replace(node, word.join(kept[:i] + kept[i + 1 :]))


def drop_not(source: Source) -> Iterator[Edits]:
    for node in source.nodes:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield source.replace(node, source.operand(node.operand))


def force_choice(source: Source) -> Iterator[Edits]:
    """Of a if c else b, always one of the two."""
    for node in source.nodes:
        if isinstance(node, ast.IfExp):
            yield source.replace(node, source.operand(node.body))
            yield source.replace(node, source.operand(node.orelse))


def swap_choice(source: Source) -> Iterator[Edits]:
    for node in source.nodes:
        match node:
            case ast.IfExp(body=first, orelse=second):
                yield source.swap(first, second)
            case ast.Call(args=[_, first, second]) if called(node) == "where":
                yield source.swap(first, second)


def always_branch(source: Source) -> Iterator[Edits]:
    """What an if without else holds is done without asking. Not for checks, and not where that leaves at once."""
    for node in source.nodes:
        if isinstance(node, ast.If) and not node.orelse and not _leaves(node):
            yield source.replace(node.test, "True")


def drop_guard(source: Source) -> Iterator[Edits]:
    """An if that leaves early, without a check's error, is gone."""
    for node in source.nodes:
        if isinstance(node, ast.If) and not node.orelse and _leaves(node) and not is_check(node):
            yield source.delete(node)


def _leaves(node: ast.If) -> bool:
    return isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def drop_check(source: Source) -> Iterator[Edits]:
    for node in source.nodes:
        if isinstance(node, ast.If) and is_check(node):
            yield source.delete(node)


def drop_check_call(source: Source) -> Iterator[Edits]:
    """A call that only looks: its name says check or validate."""
    for node in source.nodes:
        if isinstance(node, ast.Expr) and any(word in called(node.value) for word in ("check", "valid", "at_least")):
            yield source.delete(node)


def check_late(source: Source) -> Iterator[Edits]:
    """A check comes after the statement that it should have stopped."""
    for first, second in source.neighbours():
        if is_check(first) and not is_check(second) and not isinstance(second, ast.Return):
            yield source.swap_lines(first, second)


def other_error(source: Source) -> Iterator[Edits]:
    """ValueError is TypeError, for which callers do not look."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Raise(exc=ast.Call(func=ast.Name(id="ValueError") as name)):
                yield source.replace(name, "TypeError")


def any_as_all(source: Source) -> Iterator[Edits]:
    for node in source.nodes:
        if isinstance(node, ast.Call) and called(node) in ("any", "all"):
            other = "all" if called(node) == "any" else "any"
            yield source.replace(node.func, source.segment(node.func)[:-3] + other)


CHECK = "if n < 1:\n    raise ValueError('text')\n"

OPERATORS = (
    Operator(
        move_boundary,
        "boundary",
        "a value on the border is on the wrong side",
        becomes("x < 1", "x <= 1")
        + becomes("0 <= p < 1", "0 < p < 1", "0 <= p <= 1")
        + becomes("u >= p", "u > p")
        + never("a == b", "a is b", "raise E(a < b)"),
    ),
    Operator(
        negate_comparison,
        "condition",
        "a condition is the opposite",
        becomes("a == b", "a != b")
        + becomes("x is not None", "x is None")
        + becomes("n not in (1, m)", "n in (1, m)")
        + becomes("u < p", "u >= p")
        + becomes("(a) != (b)", "(a) == (b)")
        + never("a <= b", "not a"),
    ),
    Operator(
        replace_logical,
        "condition",
        "one condition of several is enough where all are needed, or the other way round",
        becomes("a and b and c", "a or b or c")
        + becomes("a or (b and c)", "a and (b and c)", "a or (b or c)")
        + never("not a", "a | b"),
    ),
    Operator(
        drop_condition,
        "validation",
        "one of several conditions is not looked at",
        becomes("if x.ndim != 3 or (w != d):\n    pass", "if (w != d):\n    pass", "if x.ndim != 3:\n    pass")
        + becomes("a and b and c", "b and c", "a and c", "a and b")
        + never("a | b", "not a"),
    ),
    Operator(
        drop_not,
        "condition",
        "a condition is the opposite",
        becomes("if not self.training:\n    pass", "if self.training:\n    pass")
        + becomes("not 0 <= p < 1", "(0 <= p < 1)")
        + never("x is not None", "~x", "-x"),
    ),
    Operator(
        force_choice,
        "condition",
        "a setting makes no difference",
        becomes("p = rate if self.training else 0.0", "p = rate", "p = 0.0")
        + becomes("r = new() if rng is None else rng", "r = new()", "r = rng")
        + never("if a:\n    b", "raise E(a if b else c)"),
    ),
    Operator(
        swap_choice,
        "condition",
        "two alternatives are exchanged",
        becomes("p = rate if self.training else 0.0", "p = 0.0 if self.training else rate")
        + becomes("np.where(mask, x, -np.inf)", "np.where(mask, -np.inf, x)")
        + never("np.where(mask)", "f(mask, a, b)", "a or b"),
    ),
    Operator(
        always_branch,
        "condition",
        "a step is taken also where it must not be",
        becomes("if x.ndim == 3:\n    x = x[:, None]", "if True:\n    x = x[:, None]")
        + never(
            CHECK, "def f(a):\n    if a is None:\n        return None\n    return g(a)", "if a:\n    b\nelse:\n    c"
        ),
    ),
    Operator(
        drop_guard,
        "condition",
        "a case that needs an answer of its own does not get it",
        becomes(
            "def f(a):\n    if a is None:  # nothing\n        return None\n    return g(a)",
            "def f(a):\n    return g(a)",
        )
        + never(CHECK, "if a:\n    b = 1"),
    ),
    Operator(
        drop_check,
        "validation",
        "something that has to be refused is accepted",
        becomes(CHECK + "x = n", "x = n")
        + becomes("def f(n):\n    if n < 1:\n        raise E", "def f(n):\n    pass")
        + never("if n < 1:\n    n = 1", "if n:\n    raise E\nelse:\n    f()", "if n:\n    return"),
    ),
    Operator(
        drop_check_call,
        "validation",
        "something that has to be refused is accepted",
        becomes("_check(x)\ny = x", "y = x")
        + becomes(
            "self._check_input('x', x)\nself._check_input('y', y)",
            "self._check_input('y', y)",
            "self._check_input('x', x)\n",
        )
        + never("y = _checked(x)", "f(x)", "x.append(check)"),
    ),
    Operator(
        check_late,
        "validation",
        "a call that is refused has changed something already",
        becomes(CHECK + "a.data[...] = n\n", "a.data[...] = n\n" + CHECK)
        + never(CHECK, CHECK + CHECK, "def f(n):\n    if n < 1:\n        raise E\n    return n"),
    ),
    Operator(
        other_error,
        "validation",
        "a wrong argument raises another kind of error",
        becomes("raise ValueError('a')", "raise TypeError('a')")
        + never("raise", "raise KeyError(a)", "ValueError('a')"),
    ),
    Operator(
        any_as_all,
        "condition",
        "one of many counts for all, or all are asked for where one is enough",
        becomes("any(n > 1 for n in shape)", "all(n > 1 for n in shape)")
        + becomes("mask.all(axis=-1)", "mask.any(axis=-1)")
        + never("company(x)", "any", "raise E(any(x))"),
    ),
)
