"""Axes, indices and shapes of a source arrive; arrays with their numbers in the wrong places leave."""

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise

from grader.operators.operator import Operator, becomes, never
from grader.operators.source import Edit, Edits, Source, called, is_check, of_numpy, whole_number

TRANSPOSES = ("transpose", "swapaxes", "permute", "moveaxis")
ON_AXES = (*TRANSPOSES, "softmax", "concat", "concatenate", "stack", "expand_dims", "squeeze", "split", "flip")
AXIS_NAMES = ("axis", "axes", "dim", "dims")


def shift_axis(source: Source) -> Iterator[Edits]:
    """The axis beside the right one, wherever an axis is written out."""
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        values = [keyword.value for keyword in node.keywords if keyword.arg in AXIS_NAMES]
        if called(node) in ON_AXES:
            values = [*node.args, *values]
        for value in _flat(values):
            axis = whole_number(value)
            if axis is not None:
                for other in (axis - 1, axis + 1):
                    if (other < 0) == (axis < 0):
                        yield source.replace(value, str(other))


def _flat(values: Sequence[ast.expr]) -> Iterator[ast.expr]:
    for value in values:
        if isinstance(value, ast.Tuple | ast.List):
            yield from value.elts
        else:
            yield value


def shift_index(source: Source) -> Iterator[Edits]:
    """The item beside the right one. Not in a check, where another is hardly ever another rule."""
    for node in source.nodes:
        match node:
            case ast.Subscript(ctx=ast.Load(), slice=index) if (at := whole_number(index)) is not None:
                if not any(is_check(each) for each in source.ancestors(node)):
                    for other in (at - 1, at + 1):
                        if (other < 0) == (at < 0):
                            yield source.replace(index, str(other))


def shift_slice(source: Source) -> Iterator[Edits]:
    """A slice begins or ends one too early or too late."""
    for node in source.nodes:
        match node:
            case ast.Slice(lower=lower, upper=upper):
                ends = [lower, upper]
            case ast.Call(func=ast.Name(id="slice"), args=[lower, upper]):
                ends = [lower, upper]
            case _:
                continue
        for end in ends:
            if end is None:
                continue
            if (value := whole_number(end)) is not None:
                yield from (
                    source.replace(end, str(other)) for other in (value - 1, value + 1) if (other < 0) == (value < 0)
                )
            else:
                yield from (source.replace(end, f"{source.segment(end)} {sign} 1") for sign in "-+")


def drop_step(source: Source) -> Iterator[Edits]:
    for node in source.nodes:
        match node:
            case ast.Slice(step=ast.expr() as step):
                start = source.text.rindex(":", source.span(node)[0], source.span(step)[0])
                yield (Edit(start, source.span(step)[1], ""),)


def drop_transpose(source: Source) -> Iterator[Edits]:
    for node in source.nodes:
        if (inner := _transposed(node)) is not None:
            yield source.replace(node, source.operand(inner))


def _transposed(node: ast.AST) -> ast.expr | None:
    """What a transpose is of: x of x.T, x.transpose(...) and F.transpose(x, ...)."""
    match node:
        case ast.Attribute(value=inner, attr="T" | "mT"):
            return inner
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=[first, _, *_]) if called(node) in TRANSPOSES:
            return first if name in ("np", "numpy", "F") else node.func.value  # type: ignore[attr-defined]
        case ast.Call(func=ast.Attribute(value=inner)) if called(node) in TRANSPOSES:
            return inner
        case ast.Call(func=ast.Name(), args=[first, *_]) if called(node) in TRANSPOSES:
            return first
    return None


def add_transpose(source: Source) -> Iterator[Edits]:
    """A matrix product's second factor, or an array that is copied in whole, is transposed."""
    for node in source.nodes:
        match node:
            case ast.BinOp(op=ast.MatMult(), right=right) if _transposed(right) is None:
                yield source.replace(right, f"{source.operand(right)}.T")
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=value))], value=right) if value is ...:
                if _transposed(right) is None and not isinstance(right, ast.Constant):
                    yield source.replace(right, f"{source.operand(right)}.T")


def swap_last_axes(source: Source) -> Iterator[Edits]:
    """An array is taken in with its last two axes exchanged."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and of_numpy(node) and called(node) in ("asarray", "array"):
            yield source.replace(node, f"{source.segment(node)}.swapaxes(-1, -2)")


def swap_elements(source: Source) -> Iterator[Edits]:
    """Two neighbours in a tuple, as in the shape that a reshape asks for. Not in tuples of text."""
    for node in source.nodes:
        if isinstance(node, ast.Tuple):
            for first, second in pairwise(node.elts):
                texts = [isinstance(each, ast.Constant) and isinstance(each.value, str) for each in (first, second)]
                if not any(texts) and source.segment(first) != source.segment(second):
                    yield source.swap(first, second)


def drop_element(source: Source) -> Iterator[Edits]:
    """One of the values that a comparison allows is missing."""
    for node in source.nodes:
        match node:
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Tuple(elts=[_, _, *_] as items)]):
                for i in range(len(items)):
                    yield source.drop_item(items, i)


def interleave_slices(source: Source) -> Iterator[Edits]:
    """Blocks that follow each other are read in turns: every n-th of the whole."""
    for node in source.nodes:
        match node:
            case ast.Tuple(elts=[_, _, *_] as items) if all(_is_block(item) for item in items):
                parts = [f"slice({i}, None, {len(items)})" for i in range(len(items))]
                yield tuple(
                    edit for item, part in zip(items, parts, strict=True) for edit in source.replace(item, part)
                )


def _is_block(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="slice"), args=[_, _]):
            return True
    return False


def column_order(source: Source) -> Iterator[Edits]:
    """np.reshape runs down the columns."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and of_numpy(node) and called(node) == "reshape" and not node.keywords:
            yield source.replace(node, f'{source.segment(node)[:-1]}, order="F")')


def drop_new_axis(source: Source) -> Iterator[Edits]:
    """An array that is given an axis to broadcast along does not get it."""
    for node in source.nodes:
        match node:
            case ast.Subscript(value=value, slice=ast.Tuple(elts=items)) if any(map(_is_none, items)):
                yield source.replace(node, source.operand(value))


def move_new_axis(source: Source) -> Iterator[Edits]:
    """The new axis comes one place earlier or later."""
    for node in source.nodes:
        match node:
            case ast.Subscript(slice=ast.Tuple(elts=items)):
                for first, second in pairwise(items):
                    if _is_none(first) != _is_none(second):
                        yield source.swap(first, second)


def first_for_all(source: Source) -> Iterator[Edits]:
    """Of an axis that is taken whole, the first entry serves for all."""
    for node in source.nodes:
        match node:
            case ast.Subscript(ctx=ast.Load(), slice=ast.Tuple(elts=items)):
                for item in items:
                    if source.segment(item) == ":":
                        yield source.replace(item, ":1")


def _is_none(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=None) | ast.Attribute(attr="newaxis"):
            return True
    return False


def other_reduction(source: Source) -> Iterator[Edits]:
    """A mean for a sum, the least for the largest."""
    others = {"sum": "mean", "mean": "sum", "max": "min", "min": "max", "argmax": "argmin", "argmin": "argmax"}
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and called(node) in others:
            yield source.replace(node.func, f"{source.operand(node.func.value)}.{others[called(node)]}")


OPERATORS = (
    Operator(
        interleave_slices,
        "layout",
        "blocks are read in turns instead of one after the other",
        becomes("rows = (slice(0, d), slice(d, 2 * d))", "rows = (slice(0, None, 2), slice(1, None, 2))")
        + never("slice(0, d)", "(slice(0, d), 1)", "x[0:d]"),
    ),
    Operator(
        add_transpose,
        "layout",
        "a matrix is used the other way round",
        becomes("x @ w", "x @ w.T")
        + becomes("p.data[...] = w[a:b]", "p.data[...] = w[a:b].T")
        + never("x @ w.T", "x * w", "x[0] = w", "x[...] = 0.0"),
    ),
    Operator(
        drop_transpose,
        "layout",
        "two axes stay as they are where they should change places",
        becomes("F.transpose(x, 1, 2)", "x")
        + becomes("x @ w.T", "x @ w")
        + becomes("k.swapaxes(-1, -2)", "k")
        + becomes("(a + b).transpose(0, 2, 1)", "(a + b)")
        + becomes("x.transpose(0, 2, 1, 3)", "x")
        + never("x.reshape(a, b)", "T", "x.t"),
    ),
    Operator(
        swap_last_axes,
        "mask",
        "an array given by the caller is read with rows and columns exchanged",
        becomes("mask = np.asarray(mask)", "mask = np.asarray(mask).swapaxes(-1, -2)")
        + never("asarray(x)", "np.zeros(3)"),
    ),
    Operator(
        drop_new_axis,
        "mask",
        "an array lines up with the wrong axis",
        becomes("mask[:, None, :]", "mask") + becomes("m[np.newaxis, :]", "m") + never("x[:, 1]", "x[None]", "x[:]"),
    ),
    Operator(
        move_new_axis,
        "mask",
        "an array lines up with the wrong axis",
        becomes("mask[:, None, :]", "mask[None, :, :]", "mask[:, :, None]") + never("x[:, 1]", "x[None]", "x[:, :]"),
    ),
    Operator(
        first_for_all,
        "mask",
        "the first of several is used for all",
        becomes("m[:, None, :]", "m[:1, None, :]", "m[:, None, :1]") + never("m[:]", "m[a:, None]", "m[:, 0] = 1"),
    ),
    Operator(
        other_reduction,
        "layout",
        "numbers are put together in the wrong way",
        becomes("x.sum(axis=-1)", "x.mean(axis=-1)")
        + becomes("np.max(x, axis=0)", "np.min(x, axis=0)")
        + never("max(a, b)", "x.std()", "F.softmax(x)"),
    ),
    Operator(
        column_order,
        "layout",
        "numbers are laid out down the columns",
        becomes("np.reshape(x, (a, b))", 'np.reshape(x, (a, b), order="F")') + never("F.reshape(x, s)", "x.reshape(s)"),
    ),
    Operator(
        drop_element,
        "validation",
        "a value that is allowed is refused",
        becomes("n in (2, 3)", "n in (3)", "n in (2)")
        + becomes("n not in (1, 2, m)", "n not in (2, m)", "n not in (1, m)", "n not in (1, 2)")
        + never("n == 2", "n in x", "(1, 2)"),
    ),
    Operator(
        shift_axis,
        "layout",
        "a step works along the wrong axis",
        becomes("softmax(x, axis=-1)", "softmax(x, axis=-2)")
        + becomes(
            "F.transpose(x, 1, 2)",
            "F.transpose(x, 0, 2)",
            "F.transpose(x, 2, 2)",
            "F.transpose(x, 1, 1)",
            "F.transpose(x, 1, 3)",
        )
        + becomes("x.sum(axis=(0, 1))", "x.sum(axis=(1, 1))", "x.sum(axis=(0, 0))", "x.sum(axis=(0, 2))")
        + never("f(x, 1)", "x[1]", "x.sum(axis=axis)", "softmax(x)"),
    ),
    Operator(
        swap_elements,
        "layout",
        "two sizes, or two results, are exchanged",
        becomes("x.reshape((B, T, H))", "x.reshape((T, B, H))", "x.reshape((B, H, T))")
        + becomes("def f():\n    return out, weights", "def f():\n    return weights, out")
        + never("(a, a)", "('a', 'b')", "[a, b]", "f(a, b)"),
    ),
    Operator(
        drop_step,
        "index",
        "items come in the wrong order",
        becomes("x[::-1]", "x[:]") + becomes("x[..., a:b:2]", "x[..., a:b]") + never("x[1:2]", "x[:]"),
    ),
    Operator(
        shift_index,
        "index",
        "a size or an item is taken from the wrong place",
        becomes("T = x.shape[1]", "T = x.shape[0]", "T = x.shape[2]")
        + becomes("d = q.shape[-1]", "d = q.shape[-2]")
        + never("x[i]", "x[0] = y", "if x.shape[0] != n:\n    raise E", "a: list[3]", "x['a']"),
    ),
    Operator(
        shift_slice,
        "index",
        "a block begins or ends at the wrong place",
        becomes("x[1:n]", "x[0:n]", "x[2:n]", "x[1:n - 1]", "x[1:n + 1]")
        + becomes("slice(0, d)", "slice(1, d)", "slice(0, d - 1)", "slice(0, d + 1)")
        + never("x[:]", "x[1]", "x[::2]"),
    ),
)
