import ast

import pytest

from grader.blackbox import uncontracted
from grader.unit import Unit


def uses(unit: Unit, source: str) -> list[tuple[str, int]]:
    return [(use.code, use.line) for use in uncontracted(ast.parse(source), unit.contracts)]


@pytest.mark.parametrize(
    "source",
    [
        "import tinyllm",
        "import tinyllm.demo",
        "import tinyllm.demo.double as d\nd.Double, d.halve, d.__file__",
        "from tinyllm.demo.double import Double as D, halve",
        "from tinyllm.demo import double\ndouble.Double",
        "from tinyllm.demo import double as alias\nalias.halve(1)",
        "from tinyllm.demo.double import *",
        "import tinyllm.demo.double\ntinyllm.demo.double.Double",
        "from . import helper\nfrom .tinyllm.x import y",
        "import numpy, helper\nfrom helper import _x",
        "importlib.import_module('tinyllm.demo.double')",
        "import tinyllm.demo.double as d\ndef f(d):\n    return d._x",  # the alias may mean something else
        "import tinyllm_extra",
        "Double()._private",
    ],
)
def test_what_has_a_contract_may_be_used(unit: Unit, source: str) -> None:
    assert uses(unit, source) == []


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("import tinyllm.demo.deep", "blackbox_module"),
        ("import tinyllm.demo.deep as d", "blackbox_module"),
        ("import tinyllm.other", "blackbox_module"),
        ("from tinyllm import other", "blackbox_module"),
        ("from tinyllm.demo import deep", "blackbox_module"),
        ("from tinyllm.demo.deep import x", "blackbox_module"),
        ("from tinyllm.demo.deep import *", "blackbox_module"),
        ("from tinyllm.demo.double import _hidden", "blackbox_name"),
        ("from tinyllm.demo.double import Base", "blackbox_name"),  # imported there, not promised
        ("from tinyllm.demo import double as d; d._hidden", "blackbox_name"),
        ("import tinyllm.demo.double; tinyllm.demo.double._hidden.x", "blackbox_name"),
        ("import tinyllm; tinyllm.demo.deep.x", "blackbox_module"),
        ("importlib.import_module('tinyllm.demo.deep')", "blackbox_module"),
        ("__import__('tinyllm.demo.deep')", "blackbox_module"),
        ("pytest.importorskip('tinyllm.demo.deep')", "blackbox_module"),
        ("def f(): from tinyllm.demo.double import _hidden", "blackbox_name"),
    ],
)
def test_what_has_none_may_not(unit: Unit, source: str, code: str) -> None:
    assert uses(unit, f"\n{source}\n") == [(code, 2)]
