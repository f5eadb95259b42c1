"""The module file of L5.3 names things that exist, and its errata are right."""

import ast
import math
import tomllib

import pytest

from tests.course import variants

MODULE = tomllib.loads((variants.COURSE / "modules/L5.3.toml").read_text())


def test_every_path_in_the_module_file_exists() -> None:
    root = variants.ROOT
    assert (root / MODULE["contract"]).is_file()
    assert (root / MODULE["tests"]["dir"]).is_dir()
    assert all((variants.COURSE / "fixtures" / name).is_file() for name in MODULE["fixtures"]["files"])
    assert all((root / unit.removeprefix("python/")).is_file() for unit in MODULE["units"])
    assert (variants.COURSE / "ref/learner-tests/L5.3" / MODULE["learner_tests"]["path"]).is_dir()


def test_smoke_tests_are_course_tests() -> None:
    tree = ast.parse((variants.COURSE_TESTS / "test_mha.py").read_text())
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert set(MODULE["tests"]["smoke"]) <= set(names)


def test_required_mutants_are_those_the_manifest_requires() -> None:
    required = [row["mid"] for row in variants.manifest() if row["required"] == "true"]
    assert MODULE["learner_tests"]["required_mutants"] == required == [f"s0{i}" for i in range(1, 8)]


@pytest.mark.parametrize("erratum", MODULE["errata"], ids=lambda erratum: erratum["printed"])
def test_an_erratum_gives_the_number_that_the_printed_one_should_round(erratum: dict[str, str]) -> None:
    first = 1 / (1 + math.exp(4 / math.sqrt(2)))
    true = min((first, 1 - first, 2 * (1 - first)), key=lambda value: abs(value - float(erratum["correct"])))
    correct, printed = erratum["correct"], erratum["printed"]
    assert correct == f"{true:.{len(correct) - 2}f}"
    assert printed != f"{true:.{len(printed) - 2}f}"
    assert correct in erratum["note"] and printed in erratum["note"]


def test_forbidden_names_are_not_used_by_any_correct_implementation() -> None:
    for name, source in variants.sources().items():
        if name[0] in "rw":
            tree = ast.parse(source)
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    used |= {part for alias in node.names for part in alias.name.split(".")}
                    used |= set((getattr(node, "module", None) or "").split("."))
            assert used.isdisjoint(MODULE["forbidden"]), name
