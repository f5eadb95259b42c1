"""What may be executed before the fork only imports, defines and names; everything else waits, or is not inert."""

import ast
from collections.abc import Sequence
from types import ModuleType

import numpy.typing  # noqa: F401 (imported where tests are collected)
import pytest

from sandbox.inside.inert import MOST_ITEMS, imported_here, waiting_of

PATH = "suite/test_it.py"


def library(name: str) -> ModuleType:
    """A module that is there before runs are."""
    module = ModuleType(name)
    vars(module)["Layer"] = type("Layer", (), {})
    return module


IMPORTED = {**imported_here(), "library": library("library"), "library.there": library("library.there")}


def waiting(*sources: str, paths: Sequence[str] = (PATH, "suite/helper.py", "suite/conftest.py")) -> list[str] | None:
    """The statements of all files that wait, as text; None if the suite is not inert."""
    trees = {path: ast.parse(source) for path, source in zip(paths, sources, strict=False)}
    found = waiting_of(trees, ["suite", "lib"], IMPORTED)
    return None if found is None else [ast.unparse(each) for statements in found.values() for each in statements]


INERT_FILES = """\
"A file that says something."
import numpy as np
from library.there import Layer
---
from __future__ import annotations
def test_it(x: Anything = 1) -> Whatever: ...
---
import numpy as np
SHAPES = [(1, 2), (3, -4)]
MASK, TOLERANCE, EMPTY = 2**64 - 1, 1e-5 / 2, {'a': None}
X = np.array([[1, 2.0]], dtype=np.float32)
---
import pytest
SIZES = [1, 2]
@pytest.mark.parametrize('n', SIZES)
@pytest.mark.parametrize('m', range(3), ids=['a', 'b', 'c'])
def test_it(n, m): exec('1')
---
import pytest
pytestmark = [pytest.mark.slow, pytest.mark.skipif('1 > 2', reason='no')]
@pytest.fixture(scope='module', params=[1, 2])
def size(request): return request.param
---
from pytest import fixture, mark, param
@mark.parametrize('n', [param(1, marks=mark.xfail), 2])
def test_it(n): ...
---
class Helper:
    def __init__(self, size=1): boom()
    def __call__(self): boom()
---
class TestIt:
    size, width = 1, 2
    def setup_method(self): boom()
    @staticmethod
    def make(): ...
    def test_it(self): ...
---
import unittest
class Base(unittest.TestCase):
    def setUp(self): ...
class TestIt(Base):
    def test_it(self): ...
---
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).resolve().parent / 'more'))
sys.path.append(str(Path(__file__).parent.parent / 'lib' / '..'))
sys.path.append('lib')
HERE = Path(__file__).parent
---
from contextlib import contextmanager
import functools
@contextmanager
def opened(): yield
@functools.lru_cache(maxsize=None)
def made(): ...
---
import pytest
@pytest.mark.xfail(raises=ValueError, reason='known')
@pytest.mark.usefixtures('tmp_path')
@pytest.mark.timeout(5)
def test_it(): ...
---
make = lambda n, width=2: boom(n)
def helper(first, *rest, last=(1, 2), **others) -> int | None: ...
---
def test_it(): ...
if __name__ == '__main__':
    boom()
---
def test_it(): ...
def test_it(): ...
---
from typing import Any
from numpy.typing import NDArray
Array = NDArray[Any]
def helper(x: Array, y: list[int]) -> 'text': ...
"""


@pytest.mark.parametrize("source", INERT_FILES.split("---\n"))
def test_imports_definitions_and_written_values_are_inert(source: str) -> None:
    assert waiting(source) == []


ACTIVE_FILES = """\
# a call
boom()
# a call for a value
X = boom()
# a call of something imported
import numpy as np
X = np.random.default_rng(0)
# an array as large as it likes
import numpy as np
X = np.array(range(9))
# an array of a dtype as large as it likes
import numpy as np
X = np.array(['a'], dtype='U999999999')
# an array of names, which double
import numpy as np
A = [1, 2]
B = [A, A]
X = np.array(B)
# keys of names, which double
A = (1, 2)
B = (A, A)
X = {B: 1}
# members of names, which double
A = (1, 2)
X = {(A, A)}
# a power
X = 9 ** 9 ** 9
# a power of something large
X = 9999 ** 64
# a repetition
X = [0] * 10
# a long range
X = range(1001)
# a comprehension
X = [n for n in (1, 2)]
# an f-string
X = f'{1}'
# an index
A = [1]
X = A[0]
# a loop
for n in (1, 2): pass
# a condition
if 1 > 2: pass
# an attempt
try:
    import numpy
except ImportError: pass
# a context
with open('x'): pass
# an assertion
assert True
# a deletion
x = 1
del x
# an addition
x = 1
x += 1
# a place inside something
class A: pass
A.x = 1
# a walrus in a default
def f(x=(y := 1)): ...
# a call in a default
def f(x=boom()): ...
# a call in an annotation
def f(x: boom()): ...
# a call in what is returned
def f() -> boom(): ...
# a decorator of its own
def mine(f): return f
@mine
def test_it(): ...
# a decorator under a known name
def staticmethod(f): boom()
@staticmethod
def test_it(): ...
# a decorator under an imported name
import pytest
def pytest(f): boom()
@pytest
def test_it(): ...
# a decorator of a class's own
def f(x): boom()
class A:
    staticmethod = f
    @staticmethod
    def g(): ...
# a decorator from the suite
from helper import pytest
@pytest.fixture
def f(): ...
# a decorator that waits
from unit import staticmethod
@staticmethod
def f(): ...
# a mark that is called on
import pytest
@pytest.mark.a.b(1)
def test_it(): ...
# a function for ids
import pytest
def f(x): boom()
@pytest.mark.parametrize('n', [1], ids=f)
def test_it(n): ...
# a lambda for ids
import pytest
@pytest.mark.parametrize('n', [1], ids=lambda n: 'x')
def test_it(n): ...
# ids by position
import pytest
@pytest.mark.parametrize('n', [1], False, str)
def test_it(n): ...
# a function for a scope
import pytest
def f(**x): boom()
@pytest.fixture(scope=f)
def g(): ...
# values without a length
import pytest
from helper import SIZES
@pytest.mark.parametrize('n', SIZES)
def test_it(n): ...
# keywords from nowhere
import pytest
@pytest.fixture(**{})
def f(): ...
# a hook
def pytest_generate_tests(metafunc): ...
# a hook by import
from helper import f as pytest_configure
# a hook by name
pytest_collection_modifyitems = 1
# plugins
pytest_plugins = ['helper']
# a function for missing names
def __getattr__(name): ...
# a class that hears of its subclasses
class A:
    def __init_subclass__(cls): boom()
# a test class that hears of its making
import unittest
class A(unittest.TestCase):
    def __init__(self, *names): boom()
# a test class that hears of its making elsewhere
import unittest
class A:
    def __init__(self, *names): boom()
class TestIt(A, unittest.TestCase):
    def test_it(self): ...
# a class of a class
class A(metaclass=type): ...
# a class of something imported
from library import Layer
class A(Layer): ...
# a class of something that waits
from unit import Layer
class A(Layer): ...
# a class in a class
class A:
    class B: ...
# a property
class TestIt:
    @property
    def x(self): boom()
# what unittest calls
import unittest
class A(unittest.TestCase):
    def addTypeEqualityFunc(self, *x): boom()
# a value that waits
from unit import LIMIT
X = LIMIT
# a default that waits
from unit import Layer
def f(kind=Layer): ...
# a parameter that waits
import pytest
from unit import Layer
@pytest.mark.parametrize('kind', [Layer])
def test_it(kind): ...
# a name that waits and is a test's
from unit import Layer as TestLayer
# a name that waits and is given away
from unit import Layer
Layer = 1
# a name that is given to what waits
Layer = 1
from unit import Layer
# half a statement that waits
from library import Layer, missing
# a star
from library import *
# something beside it
from . import helper
# an evaluation for ids
import pytest
@pytest.mark.parametrize('n', ['boom()'], ids=eval)
def test_it(n): ...
# an evaluation for a fixture's ids
import pytest
@pytest.fixture(params=['boom()'], ids=eval)
def f(request): ...
# a command for ids
import os
import pytest
@pytest.mark.parametrize('n', ['boom'], ids=os.system)
def test_it(n): ...
# a function that is cached, then called with what it decorates
import functools
def f(x): boom()
@functools.lru_cache(f)
def g(): ...
# a function that is cached for ever, then called
import functools
def f(x): boom()
@functools.cache(f)
def g(): ...
# a context that is made and entered
import contextlib
def f(x): boom()
@contextlib.contextmanager(f)
def g(): ...
# a static method that is called
def f(x): boom()
@staticmethod(f)
def g(): ...
# a mark of a function, which it then is
import pytest
def f(x): boom()
@pytest.mark.a(f)
def test_it(): ...
# a mark of a class
import pytest
class A:
    def __init__(self, x): boom()
@pytest.mark.a(A)
def test_it(): ...
# a place without a value
boom().x: int
# an index without a value
boom()[0]: int
# an index that makes arrays grow
import numpy as np
A = np.array([1])
B = np.r_[A, A]
# an index of something that is no type
import os
X = os.environ['PATH']
# an attribute that is imported when it is asked for
import numpy as np
X = np.f2py
# types of types, which double
from typing import List, Tuple
A0 = List[int]
A1 = Tuple[A0, A0, A0, A0, A0, A0, A0, A0, A0, A0]
A2 = Tuple[A1, A1, A1, A1, A1, A1, A1, A1, A1, A1]
A3 = Tuple[A2, A2, A2, A2, A2, A2, A2, A2, A2, A2]
A4 = Tuple[A3, A3, A3, A3, A3, A3, A3, A3, A3, A3]
# arrays whose alternative is their product
import numpy as np
A = np.array([[1], [2]])
B = np.array([[1, 2]])
def f(x: A | B): ...
# texts in an array, each as large as the longest
import numpy as np
X = np.array(['a', 'bb'])
# a path to somewhere else
import sys
sys.path.insert(0, '/usr/lib')
# a path to somewhere else from here
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent / '../../../usr'))
# a path that leads up
import os, sys
sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
# a path that starts anew
import os, sys
sys.path.append(os.path.join(os.path.dirname(__file__), '/usr'))
# parameters that are inherited
import pytest
@pytest.mark.parametrize('a', range(100))
class TestA:
    def test_it(self): ...
@pytest.mark.parametrize('b', range(100))
class TestB(TestA): ...
# parameters under a second name
import pytest
@pytest.mark.parametrize('a', range(100))
def test_it(a): ...
test_again = test_it
# a fixture under a second name
import pytest
@pytest.fixture(params=range(10))
def f(request): ...
g = f
# a fixture of a class under a second name
import pytest
class TestIt:
    @pytest.fixture(params=range(10))
    def f(self, request): ...
    g = f
# a class under a second name
class TestIt:
    def test_it(self): ...
TestAgain = TestIt
# a class under a third name
class A:
    def test_it(self): ...
B = A
TestAgain = B
# a test from elsewhere under a second name
from helper import f
test_it = f
# marks from elsewhere
from helper import pytestmark
# tests from elsewhere
from helper import test_it
# a set-up that waits
from unit import setup_module
# hypothesis, whose settings are those of its making
from hypothesis import given
@given()
def test_it(): ...
"""


@pytest.mark.parametrize(("title", "source"), [each.split("\n", 1) for each in ACTIVE_FILES.split("# ")[1:]])
def test_whatever_could_do_more_is_not_inert(title: str, source: str) -> None:
    assert waiting(source, "f = Layer = 1\n") is None, title


@pytest.mark.parametrize(
    "statement",
    [
        "from unit import Layer",
        "import unit.layers as layers",
        "import library.missing",
        "from library import missing",
        "import a_module_that_nobody_has_imported",
    ],
)
def test_an_import_of_what_is_not_there_waits(statement: str) -> None:
    source = f"import library.there\n{statement}\ndef test_it(): ...\n"
    assert waiting(source) == [statement]


def test_imports_within_the_suite_do_not_wait_and_every_file_counts() -> None:
    test, helper = "from helper import make\nimport lib_of_course.close\n", "from unit import Layer\ndef make(): ...\n"
    paths = (PATH, "suite/helper.py", "lib/lib_of_course/close.py")
    assert waiting(test, helper, "", paths=paths) == ["from unit import Layer"]
    assert waiting(test, helper, "boom()", paths=paths) is None


@pytest.mark.parametrize("name", ["antigravity", "numpy", "library", "hypothesis"])
def test_a_file_of_the_name_of_something_else_is_not_inert(name: str) -> None:
    """That may be what is imported, and itself import files of the suite, and call what they define."""
    assert waiting(f"import {name}\n", "", paths=(PATH, f"suite/folder/{name}.py")) is None


def test_what_is_collected_to_several_items_is_not_imported_elsewhere() -> None:
    fixture = "import pytest\n@pytest.fixture{}\ndef f(request): ...\n"
    assert waiting("from helper import f as g\n", fixture.format("(params=[1, 2])")) is None
    assert waiting("from helper import f as g\n", fixture.format("")) == []
    case = "import unittest\nclass Base(unittest.TestCase):\n    def test_it(self): ...\n"
    assert waiting("from helper import Base as Again\n", case) is None


def test_what_waits_in_a_package_has_no_name_of_a_file_in_it() -> None:
    paths = (PATH, "suite/package/__init__.py", "suite/package/part.py")
    assert waiting("from package import part\n", "from unit import part\n", "", paths=paths) is None


def test_a_suite_of_very_many_tests_is_not_inert() -> None:
    def suite(*counts: int) -> str:
        marks = "".join(f"@pytest.mark.parametrize('p{place}', range({n}))\n" for place, n in enumerate(counts))
        return f"import pytest\n{marks}def test_it(): ...\n"

    fixture = "import pytest\n@pytest.fixture(params=range(20))\ndef f(request): ...\n"
    assert waiting(suite(10, MOST_ITEMS // 10)) == []
    assert waiting(suite(11, MOST_ITEMS // 10)) is None
    assert waiting(suite(10, 10), "", fixture) is None


def test_long_parameters_of_many_tests_are_not_inert() -> None:
    def suite(characters: int) -> str:
        text = f"import pytest\n@pytest.mark.parametrize('a', ['{'x' * characters}'])\n"
        return f"{text}@pytest.mark.parametrize('b', range({MOST_ITEMS}))\ndef test_it(a, b): ...\n"

    assert waiting(suite(1000)) == []
    assert waiting(suite(100_000)) is None


def test_a_file_nested_too_deeply_is_not_inert() -> None:
    assert waiting("X = " + "(" * 90 + "1" + ",)" * 90) is not None
    deep: ast.expr = ast.Constant(1)
    for _ in range(100_000):
        deep = ast.Tuple([deep], ast.Load())
    tree = ast.Module([ast.Assign([ast.Name("X", ast.Store())], deep)], [])
    assert waiting_of({PATH: tree}, ["suite"], IMPORTED) is None
