"""The course's test files go in; each test with what its comments say about it comes out, or LoadError.

# WHY: what it is good for, over one or
# more lines
# KIND: property
# CATCHES: s01, m02
# CHAPTER: section 2.2
# SHOWS: s01
def test_split_and_merge_layout() -> None: ...

SHOWS may be missing: the faults that this test shows best of all that catch them. A student whose code has such a fault
is led to this test first.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from grader.course_file import text_of, tree_of
from grader.errors import LoadError
from grader.source import statements
from grader.unit import CourseTest

LABELS = ("WHY", "KIND", "CATCHES", "CHAPTER")  # that every test has
_LABEL = re.compile(r"(WHY|KIND|CATCHES|CHAPTER|SHOWS)\b\s*:?\s*(.*)")

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def read(files: Mapping[str, bytes], folder: str) -> tuple[CourseTest, ...]:
    """The tests of all files, in order. `folder` names the files' place in errors. Names are unique over all files, and
    tests are functions of their module: each is run and reported by its name alone."""
    found: dict[str, CourseTest] = {}
    for path, source in files.items():
        file = f"{folder}/{path}"
        lines = text_of(file, source).split("\n")
        for function in _tests(file, tree_of(file, source)):
            if function.name in found:
                other = found[function.name].path
                raise LoadError(file, function.lineno, f"a test named {function.name} stands already in {other}")
            found[function.name] = _described(function, lines, file, path)
    return tuple(found.values())


def _tests(file: str, tree: ast.Module) -> Iterator[_Function]:
    for node in statements(tree.body):
        if isinstance(node, ast.ClassDef):
            for inner in filter(_is_test, statements(node.body)):
                what = f"{inner.name} stands in the class {node.name}; a course test is a function of its module"
                raise LoadError(file, inner.lineno, what)
        elif _is_test(node):
            yield node


def _is_test(node: ast.stmt) -> TypeGuard[_Function]:
    return isinstance(node, _Function) and node.name.startswith("test_")


def _described(function: _Function, lines: list[str], file: str, path: str) -> CourseTest:
    said: dict[str, str] = {}
    label = ""
    for number, text in _comments(function, lines):
        if match := _LABEL.match(text):
            label = match[1]
            if label in said:
                raise LoadError(file, number, f"{function.name} has two {label} comments")
            said[label] = match[2].strip()
        elif label:
            said[label] = f"{said[label]} {text}".strip()
    for name in LABELS:
        if name not in said or (name != "CATCHES" and not said[name]):
            raise LoadError(file, function.lineno, f"{function.name} has no {name} comment directly above it")
    catches, shows = _listed(said["CATCHES"]), _listed(said.get("SHOWS", ""))
    if len(set(catches)) < len(catches):
        raise LoadError(file, function.lineno, f"{function.name} names a mutant twice in CATCHES")
    if not set(shows) <= set(catches):
        raise LoadError(file, function.lineno, f"{function.name} names a mutant in SHOWS that CATCHES does not name")
    return CourseTest(function.name, path, said["KIND"], said["WHY"], catches, said["CHAPTER"], shows)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name for name in re.split(r"[,;\s]+", text) if name and name not in ("-", "none"))


def _comments(function: _Function, lines: list[str]) -> Iterator[tuple[int, str]]:
    """Comment lines directly above the decorators and between them and the def, with their line numbers."""
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    start = first
    while start > 1 and lines[start - 2].lstrip().startswith("#"):
        start -= 1
    for number in range(start, function.lineno):
        text = lines[number - 1].strip()
        if text.startswith("#"):
            yield number, text.lstrip("#").strip()
