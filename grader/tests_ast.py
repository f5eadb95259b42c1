"""A student's test files go in; the names and numbers that stand in them, read without running anything, come out.

What students are shown during a mutation run comes from here only: names and literals frozen from their own upload can
carry nothing of the reference.
"""

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

from grader.source import Unparsed, last_name, parse, statements
from sandbox.records import File

TEST_CASES = ("TestCase", "IsolatedAsyncioTestCase")


@dataclass(frozen=True)
class TestName:
    """A test as its file spells it. `id` is path::[Class::]function, `line` that of its def."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    id: str
    path: str
    line: int


def frozen_names(tests: Iterable[File]) -> tuple[TestName, ...]:
    """Every test pytest would collect by its default rules, in file order. Files that cannot be parsed have none.

    Tests that only exist at run time (made in a loop, inherited from another file) are not found.
    """
    found: dict[str, TestName] = {}
    for file in tests:
        if is_test_file(file.path):
            tree = parse(file.data)
            if not isinstance(tree, Unparsed):
                for name in _names(file.path, tree):
                    found[name.id] = name  # a later definition of the same name replaces the earlier, as in Python
    return tuple(found.values())


def is_test_file(path: str) -> bool:
    """pytest's default python_files."""
    name = path.rpartition("/")[2]
    return fnmatch(name, "test_*.py") or fnmatch(name, "*_test.py")


def _names(path: str, tree: ast.Module) -> Iterator[TestName]:
    classes: dict[str, ast.ClassDef] = {}
    for node in statements(tree.body):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test"):
                yield TestName(f"{path}::{node.name}", path, node.lineno)
            case ast.ClassDef():
                classes[node.name] = node
                yield from _class_names(f"{path}::{node.name}", path, node, classes)


def _class_names(prefix: str, path: str, node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[TestName]:
    family = _family(node, classes)
    unittest_style = any(last_name(base) in TEST_CASES for member in family for base in member.bases)
    if not unittest_style and (not node.name.startswith("Test") or any(_has_init(member) for member in family)):
        return
    seen: set[str] = set()
    for member in family:  # the class itself first, then bases in the same file
        for inner in statements(member.body):
            match inner:
                case ast.FunctionDef() | ast.AsyncFunctionDef() if inner.name.startswith("test"):
                    if inner.name not in seen:
                        seen.add(inner.name)
                        yield TestName(f"{prefix}::{inner.name}", path, inner.lineno)
                case ast.ClassDef() if not unittest_style and member is node and inner is not node:
                    yield from _class_names(f"{prefix}::{inner.name}", path, inner, classes)


def _family(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    family = [node]
    for member in family:
        for base in member.bases:
            if isinstance(base, ast.Name) and (known := classes.get(base.id)) and known not in family:
                family.append(known)
    return family


def _has_init(node: ast.ClassDef) -> bool:
    return any(isinstance(inner, ast.FunctionDef) and inner.name in ("__init__", "__new__") for inner in node.body)


def number_literals(source: bytes) -> list[tuple[str, int]]:
    """Number literals as written ("0.055817"), each with its line, as far as the source can be tokenised."""
    found: list[tuple[str, int]] = []
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            if token.type == tokenize.NUMBER:
                found.append((token.string, token.start[0]))
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass  # what stands before the fault has been read
    return found
