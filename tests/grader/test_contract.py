from dataclasses import replace

import pytest

from grader.contract import Problem, check
from grader.submission import Submission
from grader.unit import Unit
from sandbox.records import File
from tests.grader.small_course import REFERENCE

PATH = "python/tinyllm/demo/double.py"


def problems(unit: Unit, source: str = REFERENCE, **tests: str) -> list[Problem]:
    files = tuple(File(f"{name}.py", text.encode()) for name, text in tests.items())
    return list(check(unit, Submission(unit.id, {PATH: source.encode()}, files)))


def codes(unit: Unit, source: str) -> list[tuple[str, int]]:
    return [(problem.code, problem.line) for problem in problems(unit, source)]


def changed(old: str, new: str) -> str:
    assert old in REFERENCE
    return REFERENCE.replace(old, new)


def test_the_reference_its_wheats_and_mutants_keep_the_contract(unit: Unit) -> None:
    for files in [wheat.files for wheat in unit.wheats] + [mutant.files for mutant in unit.mutants]:
        assert check(unit, Submission(unit.id, files, ())) == ()
    assert problems(unit) == []


def test_a_syntax_error_is_the_only_problem_of_its_file(unit: Unit) -> None:
    (problem,) = problems(unit, "import torch\ndef f(:\n")
    assert (problem.code, problem.file, problem.line) == ("syntax_error", PATH, 2)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", [("missing_function", 1), ("missing_class", 1)]),
        (changed("class Double", "class Triple"), [("missing_class", 1)]),
        (changed("def halve", "def half"), [("missing_function", 1)]),
        (changed("def forward", "def fwd"), [("missing_method", 4)]),
        (changed("def __init__", "def init"), [("missing_method", 4)]),
        ("def halve(x): ...\ndef Double(): ...\n", [("not_a_class", 2)]),
        (changed("x, times=1", "y, times=1"), [("parameter_renamed", 10)]),
        (changed("x, times=1", "times=1, x=0"), [("parameter_order", 10), ("parameter_order", 10)]),
        (changed("x, times=1", "x"), [("parameter_missing", 10)]),
        (changed("x, times=1", "x, times"), [("parameter_default", 10)]),
        (changed("x, times=1", "x, *, times=1"), [("parameter_kind", 10)]),
        (changed("x, times=1", "x, /, times=1"), [("parameter_kind", 10)]),
        (changed("x, times=1", "x, times=1, *, extra"), [("parameter_extra", 10)]),
        (changed("x, times=1", "x, *args"), [("parameter_missing", 10)]),
        (changed("x, times=1", "x, **kwargs"), [("parameter_missing", 10)]),
        (changed("*, offset=0", "*, shift=0"), [("parameter_missing", 5)]),
    ],
)  # fmt: skip
def test_what_is_missing_or_named_otherwise_is_found_with_its_line(
    unit: Unit, source: str, expected: list[tuple[str, int]]
) -> None:
    assert sorted(codes(unit, source)) == sorted(expected)


def test_a_renamed_parameter_says_what_is_expected_and_what_is_there(unit: Unit) -> None:
    (problem,) = problems(unit, changed("x, times=1", "y, times=1"))
    assert "Parameter 1 of Double.forward must be named x; here it is y" in problem.message


@pytest.mark.parametrize(
    "source",
    [
        changed("x, times=1", "x, times=1, extra=None, *, more=2"),
        changed("x, times=1", "*args, **kwargs"),
        changed("x, times=1", "x, *args, **kwargs"),
        changed("factor=2, *, offset=0", "factor=2, offset=0"),
        changed("    def forward", "    @staticmethod\n    def forward").replace("(self, x, times", "(x, times"),
        changed("class Double(Base):", "class Parent(Base):") + "\n\nclass Double(Parent):\n    pass\n",
        changed("class Double(Base):", "class Double:\n    forward = print\n\n\nclass Other(Base):")
        .replace("forward = print", "forward = print\n    __init__ = print"),
        "from elsewhere import Double, halve\n",
        "Double = halve = None\n",
        "(Double, [halve, *rest]) = make()\n",
        "try:\n    import numpy\nexcept ImportError:\n    pass\nelse:\n    class Double:\n"
        "        def __init__(self, factor=2, *, offset=0): ...\n        def forward(self, x, times=1): ...\n"
        "    halve = lambda x: x\n",
        changed("class Double(Base):", "@decorated\nclass Double(Base):").replace("forward", "other"),
        "class Double(Double):\n    __init__ = forward = None\n\ndef halve(x): ...\n",
    ],
)  # fmt: skip
def test_what_may_differ_from_the_stub_does(unit: Unit, source: str) -> None:
    assert problems(unit, source) == []


@pytest.mark.parametrize(
    "line",
    [
        "import torch",
        "import torch.nn as nn",
        "from torch.nn import functional",
        "from layers import DoubleLayer",
        "from layers import DoubleLayer as D",
        "nn.DoubleLayer(3)",
        "layers.deep.DoubleLayer",
        "DoubleLayer()",
        "torch.ones(3)",
        "getattr(nn, 'DoubleLayer')",
        "importlib.import_module('torch')",
        "import_module('torch.nn')",
        "__import__('torch')",
        "def inner():\n    import torch",
    ],
)
def test_forbidden_names_are_found_where_they_are_used(unit: Unit, line: str) -> None:
    found = problems(unit, f"{REFERENCE}\n{line}\n")
    assert [problem.code for problem in found] == ["forbidden_name"]
    assert found[0].line == REFERENCE.count("\n") + 1 + line.count("\n") + 1


@pytest.mark.parametrize(
    "line",
    [
        "# import torch",
        "'torch'",
        "torch_like = 1",
        "import mytorch",
        "self.torch = 1",
        "torch = None\ntorch",
        "def f(torch):\n    return torch",
        "torchvision.x",
    ],
)
def test_names_that_only_look_forbidden_are_not(unit: Unit, line: str) -> None:
    assert problems(unit, f"{REFERENCE}\n{line}\n") == []


def test_tests_that_use_what_has_no_contract_are_named_with_file_and_line(unit: Unit) -> None:
    found = problems(unit, test_a="import numpy\nfrom tinyllm.demo.double import Double, _hidden\n", test_b="def f(:\n")
    assert [(problem.code, problem.file, problem.line) for problem in found] == [
        ("blackbox_name", "tests/test_a.py", 2)
    ]


@pytest.mark.parametrize(
    "source",
    [
        b"x = a" + b"+a" * 100_000,
        b"x = " + b"(" * 100_000,
        b"x = " + b"-" * 100_000 + b"1",
        b"x = a" + b".a" * 100_000,
        b"x = a" + b"**a" * 80_000,
        b"x = a" + b"()" * 100_000,
        b"lambda:" * 30_000 + b"1",
        b"if a:\n pass\n" + b"elif a:\n pass\n" * 15_000,
        b"x = " + b"9" * 200_000,
        b"x = f'" + b"{a}" * 80_000 + b"'",
        b"x = f'''\n" + b"{a}\n" * 60_000 + b"'''",
        b"x = '\0'",
    ],
    ids=lambda source: source[:12].decode("latin-1").encode("unicode_escape").decode(),
)
def test_source_that_explodes_a_parser_is_one_problem(unit: Unit, source: bytes) -> None:
    unit_file = check(unit, Submission(unit.id, {PATH: source}, ()))
    assert [problem.code for problem in unit_file] in (["too_complex"], ["syntax_error"])
    as_test = Submission(unit.id, {PATH: REFERENCE.encode()}, (File("test_a.py", source),))
    assert check(unit, as_test) == ()


def test_a_deep_but_readable_expression_is_no_problem(unit: Unit) -> None:
    deep = f"{REFERENCE}\nx = {'(' * 50}1{')' * 50} + {' + '.join('1' for _ in range(150))}\ny = '{'(' * 500}'\n"
    assert problems(unit, deep) == []


def test_every_file_of_a_unit_is_checked(unit: Unit) -> None:
    second = replace(unit.files[0], path="python/tinyllm/demo/base.py", module="tinyllm.demo.base")
    two = replace(unit, files=(*unit.files, second), contract=unit.contracts)
    found = check(two, Submission(unit.id, {PATH: b"import torch\n" + REFERENCE.encode(), second.path: b""}, ()))
    assert [(problem.code, problem.file) for problem in found] == [
        ("forbidden_name", PATH),
        ("missing_class", second.path),
    ]
