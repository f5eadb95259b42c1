"""Arithmetic of a source arrives; sums, products, powers and scales that are wrong leave."""

import ast
from collections.abc import Iterator

from grader.operators.operator import Operator, becomes, never
from grader.operators.source import Edits, Source, called, is_text

OTHER: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}


def _binary(source: Source) -> Iterator[ast.BinOp]:
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and not is_text(node.left) and not is_text(node.right):
            yield node


def replace_arithmetic(source: Source) -> Iterator[Edits]:
    for node in source.nodes:
        if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OTHER:
            left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
            if not is_text(left) and not is_text(right):
                yield source.between(left, right, *OTHER[type(node.op)])


def drop_term(source: Source) -> Iterator[Edits]:
    """Of a sum or difference, one of the two."""
    return _one_side(source, either=ast.Add, left_only=ast.Sub)


def drop_factor(source: Source) -> Iterator[Edits]:
    """Of a product or quotient, one of the two; never the 1 of 1 / x, which would leave nothing."""
    return _one_side(source, either=ast.Mult, left_only=ast.Div)


def _one_side(source: Source, either: type[ast.operator], left_only: type[ast.operator]) -> Iterator[Edits]:
    for node in _binary(source):
        if isinstance(node.op, (either, left_only)):
            yield source.replace(node, source.operand(node.left))
            if isinstance(node.op, either):
                yield source.replace(node, source.operand(node.right))


def drop_minus(source: Source) -> Iterator[Edits]:
    """Of a value, not of a number that is written out."""
    for node in source.nodes:
        if (
            isinstance(node, ast.UnaryOp)
            and isinstance(node.op, ast.USub)
            and not isinstance(node.operand, ast.Constant)
        ):
            yield source.replace(node, source.operand(node.operand))


def drop_inversion(source: Source) -> Iterator[Edits]:
    for node in source.nodes:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            yield source.replace(node, source.operand(node.operand))


def drop_root(source: Source) -> Iterator[Edits]:
    """sqrt(x) as x, and powers of one half as those of one."""
    for node in source.nodes:
        match node:
            case ast.Call(args=[argument], keywords=[]) if called(node) == "sqrt":
                yield source.replace(node, source.operand(argument))
            case ast.BinOp(op=ast.Pow(), right=right) if (half := _half(right)) is not None:
                yield source.replace(right, "1" if half else "-1")


def invert_root(source: Source) -> Iterator[Edits]:
    """A scale that divides by a root multiplies by it, and the other way round."""
    for node in source.nodes:
        match node:
            case ast.BinOp(op=ast.Pow(), right=right) if (half := _half(right)) is not None:
                yield source.replace(right, "-0.5" if half else "0.5")
            case ast.BinOp(op=ast.Div() | ast.Mult(), left=left, right=right) if called(right) == "sqrt":
                old, new = OTHER[type(node.op)]
                yield source.between(left, right, old, new)


def _half(node: ast.expr) -> bool | None:
    """Whether a power is a half (True), minus a half (False), or something else (None)."""
    match node:
        case ast.Constant(value=0.5):
            return True
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=0.5)):
            return False
    return None


def neutral_scale(source: Source) -> Iterator[Edits]:
    """An argument called scale is 1."""
    for node in source.nodes:
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg is not None and "scale" in keyword.arg and not isinstance(keyword.value, ast.Constant):
                    yield source.replace(keyword.value, "1.0")


OPERATORS = (
    Operator(
        replace_arithmetic,
        "arithmetic",
        "a number is computed with the wrong operation",
        becomes("a + b * c", "a - b * c", "a + b / c")
        + becomes("x += 1", "x -= 1")
        + becomes("(a)  -  (b)", "(a)  +  (b)")
        + becomes("rate % (d // H)", "rate // (d // H)", "rate % (d * H)")
        + becomes("allowed & seen", "allowed | seen")
        + never("a @ b", "'text' + x", "x ** 2", "raise E(a + b)", "f'{a + b}'", "w = normal_init(n, 1 / n)")
        + never("def f(x: A | B) -> A | None:\n    pass", "[a] + [b]"),
    ),
    Operator(
        drop_term,
        "arithmetic",
        "one of two terms is missing",
        becomes("x @ w + b", "(x @ w)", "b")
        + becomes("x - top", "x")
        + becomes("é + b - c", "(é + b)", "é - c", "b - c")
        + never("a * b", "'a' + b", "raise E(a - b)"),
    ),
    Operator(
        drop_factor,
        "scale",
        "a factor is missing",
        becomes("scores * scale", "scores", "scale")
        + becomes("kept / (1 - p)", "kept")
        + becomes("g * (a + b)", "g", "(a + b)")
        + never("a + b", "a // b", "a @ b"),
    ),
    Operator(
        drop_minus, "arithmetic", "a sign is wrong", becomes("y = -x", "y = x") + never("y = -1", "y = ~x", "a - b")
    ),
    Operator(
        drop_inversion,
        "mask",
        "what is allowed and what is forbidden are exchanged",
        becomes("np.where(~mask, 0, x)", "np.where(mask, 0, x)") + never("not mask", "-mask", "mask"),
    ),
    Operator(
        drop_root,
        "scale",
        "a scale lacks its root",
        becomes("s / math.sqrt(d)", "s / d")
        + becomes("s = dh**-0.5", "s = dh**-1")
        + becomes("np.sqrt(a + b) * var ** 0.5", "(a + b) * var ** 0.5", "np.sqrt(a + b) * var ** 1")
        + never("x ** 2", "root(x)", "w = normal_init((a, b), a**-0.5)"),
    ),
    Operator(
        invert_root,
        "scale",
        "a scale multiplies where it should divide",
        becomes("s = dh**-0.5", "s = dh**0.5")
        + becomes("s / math.sqrt(d)", "s * math.sqrt(d)")
        + becomes("s = var**0.5", "s = var**-0.5")
        + never("x ** 2", "s / d"),
    ),
    Operator(
        neutral_scale,
        "scale",
        "a scale has no effect",
        becomes("f(q, k, scale=d ** -0.5)", "f(q, k, scale=1.0)") + never("f(q, k)", "f(scale=2)", "f(rate=x)"),
    ),
)
