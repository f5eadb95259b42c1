"""A module's source arrives; where its blocks begin, and which of them another version of the module changes, leave.

A block is a list of statements that may run or not: the body of a function, a branch, a loop, a handler. Lines say
nothing of a variant, all of whose code lies on one; so the reference itself is made to say which of its blocks a test
enters (decision 0235).
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from grader.scopes import Function, bound_names, functions, own_nodes, words
from grader.source import Unparsed, parse

MARKS_MODULE = "_reached"
"""what a marked module imports its marks from: a bytearray of this name, which has one byte for each block"""
NAME = "_reached"


@dataclass(frozen=True)
class Marked:
    """A module that sets a mark wherever one of its `blocks` begins, the first of them the mark of number `start`."""

    source: bytes
    blocks: int


def marked(source: bytes, start: int = 0) -> Marked | None:
    """None for a module in which no marks can be set: it is no Python, or uses our name."""
    tree = parse(source)
    if isinstance(tree, Unparsed) or NAME in words(source.decode()):
        return None
    number = start
    for block in list(_blocks(tree)):
        at = 1 if block.of_function and _is_docstring(block.body[0]) else 0
        block.body.insert(at, _mark(number))
        number += 1
    first = 1 if tree.body and _is_docstring(tree.body[0]) else 0
    while first < len(tree.body) and _is_future(tree.body[first]):
        first += 1
    names = [ast.alias(NAME)]
    tree.body.insert(first, ast.ImportFrom(module=MARKS_MODULE, names=names, level=0))
    return Marked((ast.unparse(ast.fix_missing_locations(tree)) + "\n").encode(), number - start)


@lru_cache(maxsize=64)
def count(source: bytes) -> int:
    tree = parse(source)
    return 0 if isinstance(tree, Unparsed) else sum(1 for _ in _blocks(tree))


def marks_source(blocks: int) -> bytes:
    """The module that marked ones import."""
    return f"{NAME} = bytearray({blocks})\n".encode()


def _mark(number: int) -> ast.stmt:
    target = ast.Subscript(value=ast.Name(NAME, ast.Load()), slice=ast.Constant(number), ctx=ast.Store())
    return ast.Assign(targets=[target], value=ast.Constant(1))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


# -- blocks ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Block:
    body: list[ast.stmt]
    of_function: bool


def _blocks(node: ast.AST, inside: bool = False) -> Iterator[_Block]:
    """Every block that lies in a function, in one order."""
    inside = inside or isinstance(node, Function)
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        body = getattr(node, name, None)
        if not isinstance(body, list) or not body:  # a lambda's body is none
            continue
        if inside and isinstance(body[0], ast.stmt) and not isinstance(node, ast.ClassDef):
            yield _Block(body, isinstance(node, Function))
        for statement in body:
            yield from _blocks(statement, inside)


# -- what a variant changes --------------------------------------------------------------------------------------------


class _Elsewhere(Exception):
    """The versions differ outside of functions, or in what their functions are."""


@dataclass
class _Changes:
    numbers: Mapping[int, int]
    """of the reference's blocks, by the id of their lists"""
    found: set[int] = field(default_factory=set)

    def compare(self, one: ast.AST, other: ast.AST, block: int | None) -> None:
        """Note the innermost blocks in which two trees differ; `block` is the one that they lie in."""
        if type(one) is not type(other):
            self._differ(block)
            return
        before = len(self.found)
        for name in one._fields:
            mine, theirs = getattr(one, name, None), getattr(other, name, None)
            if isinstance(mine, list) and isinstance(theirs, list):
                self._lists(mine, theirs, self.numbers.get(id(mine), block))
            elif isinstance(mine, ast.AST) and isinstance(theirs, ast.AST):
                self.compare(mine, theirs, block)
            elif type(mine) is not type(theirs) or repr(mine) != repr(theirs):  # 0.0 equals -0.0
                self._differ(block)
        if block is None and isinstance(one, Function) and isinstance(other, Function) and len(self.found) > before:
            self._scopes(one, other)

    def _lists(self, mine: Sequence[object], theirs: Sequence[object], block: int | None) -> None:
        if len(mine) != len(theirs):
            self._differ(block)
            return
        for one, other in zip(mine, theirs, strict=True):
            if isinstance(one, ast.AST) and isinstance(other, ast.AST):
                self.compare(one, other, block)
            elif one != other:
                self._differ(block)

    def _differ(self, block: int | None) -> None:
        if block is None:
            raise _Elsewhere
        self.found.add(block)

    def _scopes(self, one: Function, other: Function) -> None:
        """What a change in one block does to the others: a name that is bound anywhere in a function is local
        everywhere, and a function that yields anywhere is a generator."""
        if _is_generator(one) != _is_generator(other):
            raise _Elsewhere
        if _frames(one) != _frames(other):
            self.found.add(self.numbers[id(one.body)])


@lru_cache(maxsize=4096)  # variants are the same for every submission
def changed(reference: bytes, variant: bytes) -> frozenset[int] | None:
    """The blocks of the reference that run otherwise in the variant, by number: a test that enters none of them does
    on the variant what it does on the reference. None where that cannot be said."""
    one, other = parse(reference), parse(variant)
    if isinstance(one, Unparsed) or isinstance(other, Unparsed):
        return None
    changes = _Changes({id(block.body): number for number, block in enumerate(_blocks(one))})
    try:
        changes.compare(one, other, None)
    except _Elsewhere:
        return None
    return frozenset(changes.found)


def _frames(function: Function) -> list[set[str]]:
    """The names that the function binds, and those that each function in it does."""
    return [bound_names(each) for each in (function, *functions(function))]


def _is_generator(function: Function) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(function))
