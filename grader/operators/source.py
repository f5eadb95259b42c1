"""The text of a module arrives; its syntax tree, places in the text, and the text with some places replaced leave.

Nothing is ever printed from the tree: an edit replaces characters of the original, so that everything else keeps its
formatting and its comments.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

Function = ast.FunctionDef | ast.AsyncFunctionDef
# What draws starting values: another constant there is another taste, not a fault.
DRAWS = re.compile(r"(^|_)(init|normal|uniform|uniforms|rand|randn)($|_)")
ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)


@dataclass(frozen=True)
class Edit:
    """Characters `start` to `end` of the text become `text`."""

    start: int
    end: int
    text: str


Edits = tuple[Edit, ...]
"""One mutation: edits that do not overlap."""


class Source:
    """A module's text and tree. ValueError or SyntaxError for text that is no Python."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    # -- places in the text

    def span(self, node: ast.AST) -> tuple[int, int]:
        """First character of a node and the one behind it, without parentheses around it."""
        located: ast.expr = node  # type: ignore[assignment]  # of statements the same attributes are read
        if located.end_lineno is None or located.end_col_offset is None:
            raise ValueError("a node without a place")
        return self._at(located.lineno, located.col_offset), self._at(located.end_lineno, located.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        # The tree counts bytes of UTF-8.
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def outer_span(self, node: ast.expr) -> tuple[int, int]:
        """The same with the parentheses around an operand, if it has any."""
        start, end = self.span(node)
        first, last = self.span(self.parent(node))
        while True:
            before = self.text[first:start].rstrip()
            after = self.text[end:last].lstrip()
            if not (before.endswith("(") and after.startswith(")")):
                return start, end
            start, end = first + len(before) - 1, last - len(after) + 1

    def segment(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def operand(self, node: ast.expr) -> str:
        """The text of an expression, in parentheses where another operator next to it could take it apart."""
        return self.segment(node) if isinstance(node, ATOMS) else f"({self.segment(node)})"

    # -- edits

    def replace(self, node: ast.AST, text: str) -> Edits:
        return (Edit(*self.span(node), text),)

    def between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> Edits:
        """Replace the operator between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        at = self.text.index(old, start, end)
        return (Edit(at, at + len(old), new),)

    def drop_item(self, items: Sequence[ast.expr | ast.keyword], i: int) -> Edits:
        """Take one out of a list of items with something between them."""
        start, end = self.span(items[i])
        if i + 1 < len(items):
            end = self.span(items[i + 1])[0]
        elif i > 0:
            start = self.span(items[i - 1])[1]
        return (Edit(start, end, ""),)

    def swap(self, first: ast.AST, second: ast.AST) -> Edits:
        return self.replace(first, self.segment(second)) + self.replace(second, self.segment(first))

    def lines_of(self, node: ast.stmt) -> tuple[int, int] | None:
        """The whole lines of a statement, with its comment; None if it shares them with another."""
        start, end = self.span(node)
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", end)
        last = len(self.text) if last < 0 else last + 1
        alone = not self.text[first:start].strip() and re.fullmatch(r"\s*(#.*)?\n?", self.text[end:last])
        return (first, last) if alone else None

    def delete(self, node: ast.stmt) -> Edits:
        """Take a statement out, its lines with it; a body's only statement becomes `pass`."""
        lines = self.lines_of(node)
        if lines is None or len(self.body_of(node)) == 1:
            return self.replace(node, "pass")
        return (Edit(*lines, ""),)

    def swap_lines(self, first: ast.stmt, second: ast.stmt) -> Edits:
        """Exchange two statements with their lines; nothing if they share some."""
        one, two = self.lines_of(first), self.lines_of(second)
        if one is None or two is None:
            return ()
        texts = [self.text[slice(*lines)].removesuffix("\n") + "\n" for lines in (two, one)]
        return (Edit(*one, texts[0]), Edit(*two, texts[1]))

    def edited(self, edits: Edits) -> str:
        text = self.text
        for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text

    # -- the tree

    def parent(self, node: ast.AST) -> ast.AST:
        return self._parents[node]

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self._parents:
            node = self._parents[node]
            yield node

    def body_of(self, node: ast.stmt) -> list[ast.stmt]:
        """The statements among which this one stands."""
        parent = self.parent(node)
        return next(body for body in bodies(parent) if node in body)

    def neighbours(self) -> Iterator[tuple[ast.stmt, ast.stmt]]:
        """Statements that follow each other in one body, in the order of the text."""
        found = [pair for node in (self.tree, *self.nodes) for body in bodies(node) for pair in pairwise(body)]
        yield from sorted(found, key=lambda pair: self.span(pair[0]))

    def function_of(self, node: ast.AST) -> Function | None:
        return next((each for each in self.ancestors(node) if isinstance(each, Function)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        return next((each for each in self.ancestors(node) if isinstance(each, ast.ClassDef)), None)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """What may be mutated, in the order of the text: no docstrings, annotations, imports, decorators, texts, what
        is raised, or how starting values are drawn."""
        found = [node for node in self._walk(self.tree) if hasattr(node, "lineno")]
        return tuple(sorted(found, key=lambda node: (self.span(node)[0], -self.span(node)[1])))

    def _walk(self, node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "bases"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _left_alone(child):
                    yield from self._walk(child)

    @cached_property
    def module_names(self) -> frozenset[str]:
        """Names that the module's imports, definitions and assignments bind."""
        found: set[str] = set()
        for node in self.tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            elif isinstance(node, Function | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Assign):
                found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        return frozenset(found)

    def qualified(self, at: int) -> str:
        """The innermost function or class whose lines hold this character: "Class.method"."""
        inside = [
            (self.span(node)[0], node.name)
            for node in ast.walk(self.tree)
            if isinstance(node, Function | ast.ClassDef) and self.span(node)[0] <= at < self.span(node)[1]
        ]
        return ".".join(name for _, name in sorted(inside))


def _left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Assert():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Call():
            return bool(DRAWS.search(called(node)))
    return False


def bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements directly below a node."""
    for name in ("body", "orelse", "finalbody"):
        value = getattr(node, name, None)
        if isinstance(value, list):
            yield value


def called(node: ast.AST) -> str:
    """The last name of what a call calls, or ""."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""


def handed(call: ast.Call) -> tuple[ast.expr, ...]:
    """The values of a call's arguments, those given by name last."""
    return (*call.args, *(keyword.value for keyword in call.keywords))


def of_numpy(node: ast.AST) -> bool:
    """np.something, called or not."""
    match node:
        case ast.Call(func=func):
            return of_numpy(func)
        case ast.Attribute(value=ast.Name(id="np" | "numpy")):
            return True
    return False


def own_attribute(node: ast.AST) -> str:
    """The name in self.name, or ""."""
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name
    return ""


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def is_check(node: ast.AST) -> bool:
    """An if that only raises."""
    return isinstance(node, ast.If) and not node.orelse and len(node.body) == 1 and isinstance(node.body[0], ast.Raise)


def whole_number(node: ast.AST) -> int | None:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))) if not isinstance(value, bool):
            return -value
    return None


def parameters(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
