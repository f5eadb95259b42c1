"""Blocks are marked where they begin, and a variant is known by the blocks that it changes."""

import ast
from pathlib import Path

import pytest

from grader import blocks
from grader.renderings import SALTS, render

SOURCE = '''\
"""A module."""
from __future__ import annotations
import math

LIMIT = 3


class Kept:
    """A class."""

    size = 1

    def grow(self, by=1):
        """Grow."""
        if by > LIMIT:
            raise ValueError("much")
        elif by < 0:
            by = 0
        for step in range(by):
            self.size += 1
        else:
            self.size += 0
        return self.size


def halve(x):
    try:
        half = 1 / x
    except ZeroDivisionError:
        return math.inf
    finally:
        x = 0
    while x:
        x -= 1
    with open(__file__):
        pass
    match x:
        case 1:
            return half
        case _:
            return (lambda y: y / 2)(x)


def outer(x):
    def inner(y):
        return y

    return inner
'''
BLOCKS = 16


def entered(source: bytes, call: str) -> set[int]:
    """The marks that importing a marked module and a call in it set."""
    found = blocks.marked(source)
    assert found is not None
    marks = bytearray(found.blocks)
    text = found.source.decode().replace(f"from {blocks.MARKS_MODULE} import {blocks.NAME}", "")
    exec(compile(text, __file__, "exec", dont_inherit=True), names := {blocks.NAME: marks, "__file__": __file__})
    exec(call, names)
    return {number for number, mark in enumerate(marks) if mark}


def changed(old: str, new: str) -> frozenset[int] | None:
    assert SOURCE.count(old) == 1
    return blocks.changed(SOURCE.encode(), SOURCE.replace(old, new).encode())


def block_of(call: str, *others: str) -> int:
    """The one block that a call enters and the others do not."""
    [number] = entered(SOURCE.encode(), call) - set().union(*(entered(SOURCE.encode(), other) for other in others))
    return number


def test_every_block_of_a_function_has_a_mark_and_nothing_else() -> None:
    assert blocks.count(SOURCE.encode()) == BLOCKS
    assert entered(SOURCE.encode(), "") == set()
    assert len(entered(SOURCE.encode(), "Kept().grow()")) == 4  # the body, what is no raise, the loop, and its else
    assert len(entered(SOURCE.encode(), "Kept().grow(-1)")) == 4  # the elif instead of the loop
    every = ["Kept().grow(2)", "Kept().grow(-1)", "try: Kept().grow(9)\nexcept ValueError: pass", "halve(2)"]
    every += ["halve(0)", "outer(1)(2)"]
    assert len(set().union(*(entered(SOURCE.encode(), call) for call in every))) == BLOCKS - 2  # while, case 1


def test_marks_begin_at_the_number_given() -> None:
    found = blocks.marked(b"def f():\n    pass\n", 7)
    assert found == blocks.Marked(b"from _reached import _reached\n\ndef f():\n    _reached[7] = 1\n    pass\n", 1)


@pytest.mark.parametrize("source", [b"def f(:", b"_reached = 1\n"])
def test_what_cannot_be_marked_is_not(source: bytes) -> None:
    assert blocks.marked(source) is None


@pytest.mark.parametrize("salt", SALTS)
def test_every_rendering_of_a_marked_module_sets_the_same_marks(salt: int) -> None:
    source = (Path(__file__).parents[2] / "tinyllm/xfmr/masks.py").read_bytes()
    found = blocks.marked(source)
    assert found is not None
    rendering = ast.unparse(ast.parse(render(found.source, salt)))
    assert sorted(rendering.count(f"_reached[{number}] = 1") for number in range(found.blocks)) == [1] * found.blocks


def test_a_change_belongs_to_the_innermost_block_that_it_lies_in() -> None:
    assert changed("by = 0", "by = 1") == {block_of("Kept().grow(-1)", "Kept().grow(0)")}
    assert changed("self.size += 1", "self.size += 2") == {block_of("Kept().grow(1)", "Kept().grow(0)")}
    raising = block_of("try: Kept().grow(9)\nexcept ValueError: pass", "Kept().grow(0)")
    assert changed('raise ValueError("much")', "pass") == {raising}
    handler = block_of("halve(0)", "halve(1)")
    assert changed("return math.inf", "return 0.0") == {handler}
    assert changed("return y", "return -y") == {block_of("outer(1)(2)", "outer(1)")}


def test_a_condition_belongs_to_the_block_around_it() -> None:
    found = changed("by > LIMIT", "by >= LIMIT")
    assert found is not None and found <= entered(SOURCE.encode(), "Kept().grow(0)")
    assert changed("except ZeroDivisionError", "except ValueError") == changed("open(__file__)", "open(__name__)")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("size = 1\n", "size = 2\n"),
        ("import math", "import cmath as math"),
        ("by=1", "by=2"),
        ("def halve(x)", "def halve(x, y=1)"),
        ("class Kept:", "class Kept(object):"),
        ("def outer(x):", "@staticmethod\ndef outer(x):"),
        ("\n\ndef outer", "\n\ndef more(x):\n    return x\n\n\ndef outer"),
        ("return self.size\n", "yield self.size\n"),
    ],
)
def test_what_is_changed_outside_of_functions_or_in_their_kind_cannot_be_said(old: str, new: str) -> None:
    assert changed(old, new) is None


def test_a_name_bound_in_one_block_changes_the_whole_function() -> None:
    """LIMIT would be local everywhere in `grow`, and its first condition fail."""
    in_branch = changed("by = 0", "by = LIMIT = 0")
    assert in_branch is not None and in_branch & entered(SOURCE.encode(), "Kept().grow(0)")


@pytest.mark.parametrize("variant", [b"def f(:", SOURCE.encode() + b"("])
def test_of_what_is_no_python_nothing_can_be_said(variant: bytes) -> None:
    assert blocks.changed(SOURCE.encode(), variant) is None
