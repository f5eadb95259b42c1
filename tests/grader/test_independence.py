"""Tests that could leave something for each other are told from those that plainly do not."""

import pytest

from grader.independence import are_independent

HEAD = """\
import math
import numpy as np
import pytest
from tinyllm.xfmr import mha
from tinyllm.xfmr.mha import MultiHeadAttention

"""
HARMLESS = {
    "plain": "def test_it():\n    assert MultiHeadAttention(4, 2).n_heads == 2",
    "constants": "A = 1\nB = (A, -2.0, None)\nC: float = np.pi\n\ndef test_it():\n    x = A\n    x += 1",
    "lists that are read": """
SIZES = [(4, 2), (8, 2)]
@pytest.mark.parametrize("d, h", SIZES)
def test_it(d, h):
    for a, b in SIZES:
        assert a > b
    assert SIZES[0] and len(SIZES) == 2 and (d, h) in SIZES
""",
    "parameters": """
@pytest.mark.parametrize("x", [1, np.float64(2), slice(0, 1), pytest.param([1, 2], id="two"), lambda: 3])
@pytest.mark.slow
def test_it(x):
    pass
""",
    "fixtures": """
@pytest.fixture
def draw():
    return np.random.default_rng(3)
@pytest.fixture(params=[1, 2], ids=["a", "b"])
def number(request):
    return request.param
@pytest.fixture(scope="function", autouse=True)
def patched(monkeypatch):
    monkeypatch.setattr(mha, "scale", 1)
    yield
def test_it(draw, number, tmp_path, capsys):
    pass
""",
    "what a test made": """
def test_it():
    layer = MultiHeadAttention(4, 2)
    layer.dropout = 0.5
    layer.q_proj.weight.data[0] += 1
    for name, p in layer.named_parameters():
        p.data = np.zeros(3)
    seen = []
    seen.append(np.sort(p.data))
    def inner(x):
        seen.append(x)
        return layer
    inner(p)
    del seen[0]
""",
    "a fixture of the same name": """
@pytest.fixture
def layer():
    return MultiHeadAttention(4, 2)
def test_it(layer):
    layer.dropout = 1
""",
    "classes": """
class TestIt:
    size = 3
    def setup_method(self):
        self.seen = []
    @staticmethod
    def twice(x):
        return 2 * x
    def test_it(self):
        self.seen.append(self.twice(self.size))
""",
    "errors": """
def test_it():
    with pytest.raises(ValueError, match="size") as caught:
        MultiHeadAttention(0, 1)
    assert isinstance(caught.value, (ValueError, TypeError))
if __name__ == "__main__":
    pytest.main()
""",
}
DOUBTFUL = {
    "no Python": "def test_it(:",
    "global": "N = 0\ndef test_it():\n    global N\n    N = 1",
    "a list that grows": "SEEN = []\ndef test_it():\n    SEEN.append(1)",
    "a list handed on": "SEEN = [1]\ndef test_it():\n    MultiHeadAttention(SEEN)",
    "a list by another name": "SEEN = [1]\ndef test_it():\n    seen = SEEN",
    "an array": "X = np.zeros(3)\ndef test_it():\n    pass",
    "an array among parameters": "@pytest.mark.parametrize('x', [np.zeros(3)])\ndef test_it(x):\n    pass",
    "a class among parameters": "@pytest.mark.parametrize('c', [MultiHeadAttention])\ndef test_it(c):\n    c.size = 3",
    "work at import": "MultiHeadAttention(4, 2)",
    "a loop at import": "for i in range(3):\n    pass",
    "a wide fixture": "@pytest.fixture(scope='module')\ndef layer():\n    return 1",
    "a scope by name": "S = 'session'\n@pytest.fixture(scope=S)\ndef layer():\n    return 1",
    "a fixture that hands out a class": "@pytest.fixture\ndef cls():\n    return MultiHeadAttention",
    "xunit": "def setup_module():\n    pass",
    "set-up of a class": "class TestIt:\n    @classmethod\n    def setup_class(cls):\n        cls.x = 1",
    "a cache": "import functools\n@functools.cache\ndef made():\n    return 1",
    "a cache by name": "from functools import lru_cache",
    "a cache inside": "import functools\ndef test_it():\n    f = functools.lru_cache(abs)",
    "another decorator": "@mha.traced\ndef test_it():\n    pass",
    "a default that grows": "def made(x=[]):\n    return x",
    "a default that is shared": "def made(x=mha):\n    x.a = 1",
    "a mark on a class": "def test_it():\n    MultiHeadAttention.size = 3",
    "a mark on a module": "def test_it():\n    np.was_here = 1",
    "a mark on a function": "def made():\n    made.calls = 1",
    "a mark by another name": "def test_it():\n    it = mha\n    it.x = 1",
    "a mark in a loop": "def test_it():\n    for it in (mha, 3):\n        it.x = 1",
    "a mark through a constant": "ALL = (mha, 3)\ndef test_it():\n    for it in ALL:\n        it.x = 1",
    "a mark on a type": "def test_it():\n    it = type(MultiHeadAttention(4, 2))\n    it.x = 1",
    "a mark through what was made": "def test_it():\n    x = MultiHeadAttention(4, 2)\n    x.__class__.size = 3",
    "a mark in a function": "def mark(x):\n    x.a = 1\ndef test_it():\n    mark(mha)",
    "a class's own list": "class TestIt:\n    seen = []\n    def test_it(self):\n        self.seen.append(1)",
    "a class's method": "class TestIt:\n    @classmethod\n    def mark(cls):\n        cls.seen = 1",
    "adding in place": "def test_it():\n    x = mha.TABLE\n    x += 1",
    "setattr": "def test_it():\n    setattr(mha, 'x', 1)",
    "globals": "def test_it():\n    globals()['x'] = 1",
    "exec": "def test_it():\n    exec('x = 1')",
    "a dunder": "def test_it():\n    MultiHeadAttention.__dict__",
    "pytest's session": "def test_it(request):\n    request.session.seen = 1",
    "pytest's cache": "def test_it(cache):\n    cache.set('x', 1)",
    "one folder for all": "def test_it(tmp_path_factory):\n    pass",
    "a hook": "def pytest_collection_finish(session):\n    pass",
    "plugins": "pytest_plugins = ('more',)",
    "chance for all": "def test_it():\n    np.random.rand()",
    "chance by name": "from numpy.random import rand",
    "chance by another name": "def test_it():\n    r = np.random\n    r.rand()",
    "a module of chance": "import random",
    "a setting": "def test_it():\n    np.seterr(all='raise')",
    "a setting of the library": "from tinyllm.autograd import set_mode\ndef test_it():\n    set_mode(1)",
    "a file": "def test_it():\n    open('x', 'w')",
    "an array's file": "def test_it():\n    np.save('x.npy', np.ones(3))",
    "another module": "import os",
    "a late import": "def test_it():\n    from tinyllm.xfmr import sdpa",
    "a late import by pytest": "def test_it():\n    pytest.importorskip('tinyllm.xfmr.sdpa')",
    "a star": "from math import *",
}


@pytest.mark.parametrize("source", HARMLESS.values(), ids=list(HARMLESS))
def test_tests_that_plainly_leave_nothing_are_independent(source: str) -> None:
    assert are_independent({"suite/test_it.py": (HEAD + source).encode()}, {"tinyllm"})


@pytest.mark.parametrize("source", DOUBTFUL.values(), ids=list(DOUBTFUL))
def test_doubt_is_no(source: str) -> None:
    assert not are_independent({"suite/test_it.py": (HEAD + source).encode()}, {"tinyllm"})


def test_files_of_the_suite_may_import_each_other_and_each_of_them_counts() -> None:
    files = {"suite/test_it.py": b"from near.helper import made\nimport conftest", "suite/near/helper.py": b""}
    files["suite/conftest.py"] = b"x = 1"
    assert are_independent(files, ())
    assert not are_independent({**files, "suite/near/helper.py": b"import os"}, ())
    assert not are_independent({"suite/test_it.py": b"from near.helper import made"}, ())
