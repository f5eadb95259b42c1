"""Sources of the reference library are read without marks, in the order in which they are needed."""

import ast
from collections.abc import Mapping

import pytest

from grader import library


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("a\n# SOLUTION-BEGIN\nb\n# SOLUTION-END\nc\n", "a\nb\nc\n"),
        ("    # SOLUTION-BEGIN the stable form\n    b\n\t# SOLUTION-END \n", "    b\n"),
        ("a\n# SOLUTION-END", "a\n"),
        ("a  # SOLUTION-BEGIN\n", "a  # SOLUTION-BEGIN\n"),
        ("# SOLUTION-BEGINNING\n# SOLUTION-END of it\n", "# SOLUTION-BEGINNING\n# SOLUTION-END of it\n"),
        ("\n# SOLUTION-BEGIN\n\nb\n", "\n\nb\n"),
    ],
)
def test_lines_that_only_mark_a_solution_are_left_out(source: str, left: str) -> None:
    assert library.without_marks(source) == left


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("python/tinyllm/xfmr/mha.py", "tinyllm.xfmr.mha"),
        ("tinyllm/xfmr/mha.pyi", "tinyllm.xfmr.mha"),
        ("tinyllm/num/__init__.pyi", "tinyllm.num"),
        ("python/mha.py", "mha"),
    ],
)
def test_a_package_is_named_by_its_folder(path: str, module: str) -> None:
    assert library.module_of(path) == module


def companions(sources: Mapping[str, str], own: str, *contracted: str) -> list[str]:
    """Names of the companions of a unit with one module in a library of these sources, by path in python/."""
    files = {f"python/{path}": text for path, text in sources.items()}

    def path_of(module: str) -> str:
        return next((path for path in library.paths_of(module) if path in files), "")

    def read(path: str) -> tuple[bytes, ast.Module]:
        return files[path].encode(), ast.parse(files[path])

    return list(library.companions([own], contracted, path_of, read))


def test_a_module_comes_behind_what_it_imports_relatively_or_from_a_package() -> None:
    sources = {
        "t/own.py": "from t.a import x\nimport json",
        "t/a/__init__.py": "from .b import x",
        "t/a/b.py": "from ..c import y",
        "t/c.py": "",
    }
    assert companions(sources, "t.own") == ["t.c", "t.a.b", "t.a"]


def test_what_imports_the_unit_is_left_out_and_so_is_a_package_with_nothing_left_in_it() -> None:
    sources = {
        "t/__init__.py": "version = 1",
        "t/n/__init__.py": "width = 2",
        "t/n/own.py": "",
        "t/n/user.py": "from .own import x",
        "t/m/__init__.py": "",
        "t/m/b.py": "",
    }
    assert companions(sources, "t.n.own", "t.n.user", "t.m.b") == ["t", "t.m", "t.m.b"]


def test_a_module_that_a_contract_names_and_nobody_wrote_is_asked_for() -> None:
    with pytest.raises(KeyError, match=r"python/t/b\.py"):
        companions({"t/own.py": ""}, "t.own", "t.b")
