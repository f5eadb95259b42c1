"""A module's source and a salt arrive; the same module, written another way, leaves.

The tests of a student could tell variants apart by their code instead of their behaviour. So every run gets another
rendering of its variant: what it computes is the same to the last bit, hardly a line of its code is. Which ways of
writing there are, and what they leave alone, stands in `grader.rewritings`. `autograder course check` proves, for the
salts that grading draws from, that every rendering behaves as its variant does.
"""

import ast
import sys
from functools import cache, lru_cache
from pathlib import Path

from grader.rewritings import REWRITINGS, Choices
from sandbox.kept import made_once

SALTS = range(16)
"""The renderings that are proved, and used in grading."""


def render(source: bytes, salt: int) -> bytes:
    """Write a module another way: a pure function of its arguments, and of the version of Python's `ast.unparse`.

    Source that is not Python comes back as it is: it fails alike in every rendering.
    """
    try:
        tree, text = ast.parse(source), source.decode()
    except (SyntaxError, ValueError):
        return source
    choices = Choices(f"rendering {salt}", text)
    for rewriting in REWRITINGS:
        rewriting.apply(tree, choices)
    return (ast.unparse(ast.fix_missing_locations(tree)) + "\n").encode()


@lru_cache(maxsize=4096)  # variants are the same for every submission
def rendered(source: bytes, salt: int) -> bytes:
    """`render`, remembered, and kept where things are kept."""
    return made_once("rendering", (_writer(), b"%d" % salt, source), lambda: render(source, salt))


@cache
def _writer() -> bytes:
    """What decides how a module is written, beside its source: this code, and Python's `ast.unparse`."""
    names = ("renderings.py", "rewritings.py", "scopes.py")
    code = [Path(__file__).with_name(name).read_bytes() for name in names]
    return sys.version.encode() + b"\0".join(code)
