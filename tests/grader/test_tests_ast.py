import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from grader.tests_ast import EQUAL_ALL, MOST_NAMES, frozen_names, number_literals, words
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


def collected(folder: Path) -> set[str]:
    """What pytest collects there, run like the sandbox: without plugins, with the folder itself on the path."""
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(folder)],
        capture_output=True, text=True, cwd=folder, check=True,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(folder)},
    )  # fmt: skip
    return {line.partition("[")[0] for line in found.stdout.splitlines() if "::" in line}


def laid(folder: Path, files: Mapping[str, str]) -> list[File]:
    for path, source in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(source)
    return [File(path, source.encode()) for path, source in sorted(files.items())]


BASE = """\
import unittest

class BaseTests:
    def test_inherited(self): ...
    def test_replaced(self): ...
    class TestInner:
        def test_inner(self): ...

class OldBase(unittest.TestCase):
    def test_old(self): ...

def test_shared(): ...
def check_shared(): ...
def _test_private(): ...
"""
UPLOADS = {
    "one file": {"test_suite.py": SUITE},
    "a base from a helper": {
        "helper_base.py": BASE,
        "test_a.py": "from helper_base import BaseTests\n"
        "class TestMine(BaseTests):\n    def test_replaced(self): ...\n",
    },
    "a module named": {
        "helper_base.py": BASE,
        "test_a.py": "import helper_base\nimport helper_base as hb\n"
        "class TestMine(helper_base.BaseTests): ...\nclass Old(hb.OldBase): ...\ntest_also = hb.check_shared\n",
    },
    "everything of a module": {"shared_tests.py": BASE, "test_a.py": "from shared_tests import *\n"},
    "other names": {
        "shared_tests.py": BASE,
        "test_a.py": "from shared_tests import check_shared as test_renamed, BaseTests as TestRenamed\n",
    },
    "a package, relative": {
        "pkg/__init__.py": "",
        "pkg/base.py": BASE,
        "pkg/sub/__init__.py": "from ..base import BaseTests\n",
        "pkg/sub/test_a.py": "from ..base import test_shared\nfrom . import BaseTests\nfrom .. import base\n"
        "class TestMine(BaseTests): ...\nclass TestToo(base.BaseTests): ...\n",
    },
    "a package, by its name": {
        "tests/__init__.py": "",
        "tests/base.py": BASE,
        "tests/test_a.py": "import tests.base\nfrom tests.base import test_shared\nfrom tests import base\n"
        "class TestMine(tests.base.BaseTests): ...\nclass TestToo(base.BaseTests): ...\n",
    },
    "a folder that is no package": {
        "kit/base.py": BASE,
        "test_a.py": "from kit.base import BaseTests\nclass TestMine(BaseTests): ...\n",
    },
    "beside a conftest": {
        "lib/conftest.py": "",
        "lib/beside.py": BASE,
        "sub/test_a.py": "from beside import test_shared\n",
    },
    "beside the test": {"sub/near.py": BASE, "sub/test_a.py": "from near import BaseTests as TestNear\n"},
    "through others": {
        "one.py": BASE,
        "two.py": "from one import *\nclass Middle(BaseTests):\n    def test_middle(self): ...\n",
        "test_a.py": "from two import Middle, test_shared\nclass TestMine(Middle): ...\n",
    },
    "in a circle": {
        "one.py": "def test_one(): ...\nfrom two import *\n",
        "two.py": "from one import *\ndef test_two(): ...\n",
        "test_a.py": "from one import *\n",
    },
    "under a condition": {
        "shared_tests.py": BASE,
        "test_a.py": "try:\n    from shared_tests import test_shared\nexcept ImportError:\n    pass\n",
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", UPLOADS)
def test_names_are_those_pytest_collects(kind: str, tmp_path: Path) -> None:
    files = laid(tmp_path, UPLOADS[kind])
    assert {name.id for name in frozen_names(files)} == collected(tmp_path)


def test_a_name_from_another_file_says_where_it_stands() -> None:
    source = b"from base import BaseTests\nclass TestMine(BaseTests):\n    def test_own(self): ...\n"
    files = [File("base.py", b"class BaseTests:\n    def test_a(self):\n        pass\n"), File("test_a.py", source)]
    found = {name.id: (name.path, name.line, name.end) for name in frozen_names(files)}
    assert found == {
        "test_a.py::TestMine::test_own": ("test_a.py", 3, 3),
        "test_a.py::TestMine::test_a": ("base.py", 2, 3),
    }


def test_what_is_imported_from_elsewhere_has_no_names() -> None:
    source = b"from tinyllm.demo.double import *\nfrom unittest.mock import test_x\nfrom ..far import test_y\n"
    assert frozen_names([File("test_a.py", source)]) == ()


EXPENSIVE = {
    "a long chain": {
        **{f"m{n}.py": f"from m{n + 1} import *\ndef test_{n}(): ...\n" for n in range(199)},
        "test_a.py": "from m0 import *",
    },
    "all from all": {
        f"test_{n}.py": "".join(f"from test_{m} import *\n" for m in range(100)) + "def test_x(): ...\n" * 50
        for n in range(100)
    },
    "a deep family": {
        "test_a.py": "class C0: ...\n"
        + "".join(f"class C{n + 1}(C{n}):\n  def test_{n}(self): ...\n" for n in range(4000))
    },
    "many heirs": {
        "test_a.py": "class B:\n"
        + "".join(f" def test_{n}(self): ...\n" for n in range(5000))
        + "".join(f"class Test{n}(B): ...\n" for n in range(5000))
    },
    "many imports": {"test_a.py": "import x\n" * 25_000, **{f"d{n}/test_b.py": "" for n in range(199)}},
}


@pytest.mark.parametrize("kind", EXPENSIVE)
def test_sources_made_to_be_expensive_end_soon(kind: str) -> None:
    names = frozen_names([File(path, source.encode()) for path, source in EXPENSIVE[kind].items()])
    assert len(names) <= MOST_NAMES
    assert len(names) == len({name.id for name in names})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("assert (a == b).all()", {EQUAL_ALL, "a", "b", "all"}),
        ("assert np.all(a == b)", {EQUAL_ALL, "np", "a", "b", "all"}),
        ("assert a == b", {"a", "b"}),
        ("hasattr(m, '_rng'); 'two words'", {"hasattr", "m", "_rng"}),
        ("same(a)", {"array_equal", "np", "a", "x"}),
        ("_same(a)", {"array_equal", "np", "a", "x"}),
        ("f(match='x y')", {"f", "match"}),
    ],
)
def test_words_are_those_of_a_test_and_of_what_it_calls_in_its_file(body: str, expected: set[str]) -> None:
    helpers = "def same(x): return _same(x)\ndef _same(x): np.array_equal(x, x)\ndef other(): flags\n"
    source = f"{helpers}def test_it():\n    {body}\n".encode()
    assert words(source, 4) == expected


def test_a_file_that_cannot_be_parsed_has_no_words() -> None:
    assert words(b"def test_it(:", 1) == frozenset()


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
    assert number_literals(source) == tuple(expected)
