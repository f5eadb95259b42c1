import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.tests_ast import frozen_names, number_literals
from sandbox.records import File

SUITE = """\
import unittest
import pytest

def test_plain(): ...

async def test_async(): ...

@pytest.mark.parametrize("x", [1, 2])
def test_many(x): ...

def helper_test(): ...

if True:
    def test_inside_if(): ...

class TestGroup:
    def test_a(self): ...
    def helper(self): ...
    class TestInner:
        def test_b(self): ...

class TestWithInit:
    def __init__(self): ...
    def test_never(self): ...

class Other:
    def test_never(self): ...

class OldStyle(unittest.TestCase):
    def setUp(self): ...
    def test_c(self): ...

class OldChild(OldStyle):
    def test_d(self): ...

class TestChild(TestGroup):
    def test_e(self): ...

def test_plain(): ...
"""


def test_names_are_those_pytest_collects(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, cwd=tmp_path, check=True,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    collected = {line.partition("[")[0] for line in found.stdout.splitlines() if "::" in line}
    frozen = {name.id for name in frozen_names([File("test_suite.py", SUITE.encode())])}
    # A class nested in a base is collected again through its child; that alone is not followed.
    assert frozen == collected - {"test_suite.py::TestChild::TestInner::test_b"}


def test_names_carry_path_and_line() -> None:
    files = [File("sub/more_test.py", b"\n\ndef test_a(): ...\n"), File("helper.py", b"def test_b(): ...")]
    (name,) = frozen_names(files)
    assert (name.id, name.path, name.line) == ("sub/more_test.py::test_a", "sub/more_test.py", 3)


def test_files_that_cannot_be_parsed_have_no_names() -> None:
    assert frozen_names([File("test_a.py", b"def test_a(:"), File("test_b.py", b"x = 1" + b"+1" * 50_000)]) == ()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"x = [0.055817, -2]\ny = '0.5'  # 7\n", [("0.055817", 1), ("2", 1)]),
        (b"x = 1_000.5e-3 + 0x1F\n", [("1_000.5e-3", 1), ("0x1F", 1)]),
        (b"x = 1\ny = (2,\n", [("1", 1), ("2", 2)]),
        (b"\xff", []),
        (b"if a:\n        x = 3\n    y = 4\n", [("3", 2)]),
    ],
)
def test_number_literals_are_found_as_written(source: bytes, expected: list[tuple[str, int]]) -> None:
    assert number_literals(source) == expected
