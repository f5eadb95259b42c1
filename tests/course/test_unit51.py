"""Unit L5.1: every correct sdpa.py passes both suites, every mutant fails both, and the course tests say truly what
they catch. A few variants of each kind are tried with every change, all of them in the full run."""

import ast
import importlib.util
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader import proof
from grader.candidates import code_of
from grader.contract import check
from grader.renderings import SALTS
from grader.submission import Submission
from grader.units import load_course
from sandbox.records import File
from tests.course import unit51, variants

MODULE = tomllib.loads((unit51.COURSE / "modules/L5.1.toml").read_text())
MUTANTS = [row["mid"] for row in unit51.manifest()]
CORRECT = [name for name in unit51.sources() if name not in MUTANTS]
TESTS = {test.name: test for test in unit51.unit().course_tests}
FEW = ("reference", "w03", "w06", "s02", "s04", "s05", "s07", "s08", "m07", "m13", "m27", "m31", "m33")
KINDS = {"unit", "snapshot", "golden", "differential", "property", "boundary", "gradcheck"}


def tried(names: list[str]) -> list[Any]:
    """The names as parameters; those that are not among the few belong to the full run."""
    return [pytest.param(name, marks=[] if name in FEW else [pytest.mark.full]) for name in names]


def beside(name: str) -> tuple[str, ...]:
    """The variants that run together with one."""
    return FEW if name in FEW else tuple(unit51.sources())


def course_run(name: str) -> variants.Run:
    return unit51.course_runs(beside(name))[name]


def staff_run(name: str) -> variants.Run:
    return unit51.staff_runs(beside(name))[name]


# -- suites and variants ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", tried(CORRECT))
def test_correct_code_passes_every_course_test(name: str) -> None:
    run = course_run(name)
    assert not run.messages
    assert run.passed == set(TESTS)


@pytest.mark.parametrize("name", tried(CORRECT))
def test_correct_code_passes_the_staff_suite(name: str) -> None:
    run = staff_run(name)
    assert not run.messages
    assert len(run.passed) >= 15


@pytest.mark.parametrize("mid", tried(MUTANTS))
def test_a_mutant_fails_exactly_the_course_tests_that_say_they_catch_it(mid: str) -> None:
    catching = {name for name, test in TESTS.items() if mid in test.catches}
    assert course_run(mid).failed == catching
    assert catching, "a mutant that no course test catches is none"


@pytest.mark.parametrize("mid", tried(MUTANTS))
def test_a_mutant_fails_the_staff_suite(mid: str) -> None:
    assert staff_run(mid).failed - {"collection"}


@pytest.mark.parametrize("mid", tried(MUTANTS))
def test_messages_on_mutants_are_sentences_without_addresses(mid: str) -> None:
    for test, message in course_run(mid).messages.items():
        assert message.startswith("AssertionError: "), (test, message)
        assert len(message) > 60, (test, message)
        assert not re.search(r"0x[0-9a-f]{6,}", message), (test, message)


@pytest.mark.full
def test_course_tests_do_not_depend_on_their_order() -> None:
    backwards = tuple(f"test_sdpa.py::{name}" for name in reversed(TESTS))
    run = unit51.runs_of(unit51.COURSE_TESTS, ("reference",), backwards)["reference"]
    assert run.passed == set(TESTS)


# -- the folder --------------------------------------------------------------------------------------------------------


def test_course_tests_are_of_every_kind_and_list_mutants_in_order() -> None:
    assert {test.kind for test in TESTS.values()} == KINDS
    for name, test in TESTS.items():
        assert test.why and test.chapter.startswith("L5.1 section"), name
        assert list(test.catches) == [mid for mid in MUTANTS if mid in test.catches], name


def test_the_unit_stands_below_multi_head_attention() -> None:
    above = load_course(unit51.COURSE).units["L5.3"]
    assert [file.path for dep in above.deps if dep.id == "L5.1" for file in dep.files] == [unit51.PATH]
    assert [dep.id for dep in unit51.unit().deps] == ["L0.1", "M06.3"]


def test_every_correct_implementation_keeps_the_contract() -> None:
    unit = unit51.unit()
    correct = [{file.path: file.reference for file in unit.files}, *(wheat.files for wheat in unit.wheats)]
    assert len(correct) >= 7
    assert [check(unit, Submission(unit.id, files, ())) for files in correct] == [()] * len(correct)


def test_the_staff_suite_imports_only_what_has_a_contract() -> None:
    suite = tuple(File(path.name, path.read_bytes()) for path in sorted(unit51.STAFF_SUITE.glob("*.py")))
    files = {unit51.PATH: unit51.REFERENCE.read_bytes()}
    assert len(suite) == 4
    assert check(unit51.unit(), Submission(unit51.ID, files, suite)) == ()


@pytest.mark.parametrize(
    "line",
    [
        "from tinyllm.xfmr.mha import MultiHeadAttention",
        "import torch",
        "from tinyllm.num.gradcheck import numerical_grad",
    ],
)
def test_what_would_do_the_work_is_forbidden(line: str) -> None:
    files = {unit51.PATH: f"{line}\n".encode() + unit51.REFERENCE.read_bytes()}
    (problem,) = check(unit51.unit(), Submission(unit51.ID, files, ()))
    assert (problem.code, problem.line) == ("forbidden_name", 1)


def test_required_mutants_are_the_pitfalls() -> None:
    required = [row["mid"] for row in unit51.manifest() if row["required"] == "true"]
    assert MODULE["learner_tests"]["required_mutants"] == required == [f"s0{i}" for i in range(1, 9)]


def test_there_are_enough_mutants_of_every_category_to_make_the_threshold_mean_something() -> None:
    counted = Counter(row["category"] for row in unit51.manifest())
    assert 30 <= counted.total() <= 45
    assert min(counted.values()) >= 2, counted


def test_mutant_line_is_the_first_changed_line_of_the_reference() -> None:
    reference = unit51.REFERENCE.read_text().splitlines()
    for row in unit51.manifest():
        mutant = unit51.sources()[row["mid"]].splitlines()
        first = next(i for i, (a, b) in enumerate(zip(reference, mutant, strict=False), 1) if a != b)
        assert int(row["line"]) == first, row["mid"]


def test_patches_and_manifest_list_the_same_mutants_all_different() -> None:
    assert {path.stem for path in (unit51.COURSE / "mutants/L5.1").glob("*.patch")} == set(MUTANTS)
    code = [code_of({"sdpa.py": source.encode()}) for source in unit51.sources().values()]
    assert len(set(code)) == len(code)


def test_manifest_is_well_formed() -> None:
    for row in unit51.manifest():
        assert row["unit"] == unit51.ID
        assert row["tier"] == {"s": "semantic", "m": "auto"}[row["mid"][0]]
        assert re.fullmatch(r"[a-z_]+", row["operator"])
        assert row["category"] and row["private"]
        assert "Test" in row["public"], "a hint says what test to write next"


# -- fixture and renderings --------------------------------------------------------------------------------------------


@cache
def fixture_script() -> Any:
    spec = importlib.util.spec_from_file_location("sdpa_torch", unit51.COURSE / "oracle/L5.1/sdpa_torch.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fixture_made_again_has_the_same_names_shapes_and_values() -> None:
    made = fixture_script().make_fixture()
    with np.load(unit51.COURSE / "fixtures" / MODULE["fixtures"]["files"][0]) as kept:
        assert sorted(kept.files) == sorted(made)
        for name, array in made.items():
            assert (kept[name].shape, kept[name].dtype) == (array.shape, array.dtype), name
            np.testing.assert_allclose(kept[name], array, rtol=1e-12, atol=1e-13, err_msg=name)


KEPT = unit51.COURSE / "renderings/L5.1.sha256"
AGAIN = "run `autograder course check L5.1`: a variant or a rewriting has changed since renderings were proved"


def test_a_rendering_of_every_variant_is_the_one_proved() -> None:
    kept = KEPT.read_text().splitlines(keepends=True)
    found = proof.variants_of(unit51.unit())
    assert len(kept) == len(found) * len(SALTS), AGAIN
    for number, variant in enumerate(found):
        assert proof.digest_line(variant, number % len(SALTS)) in kept, AGAIN


# -- freedoms ----------------------------------------------------------------------------------------------------------

OVER_STRICT = Path(__file__).parent / "over_strict51.py"
FREEDOMS = {freedom.id: {name.partition("_")[0] for name in freedom.wheats} for freedom in unit51.unit().freedoms}


@cache
def over_strict_runs() -> dict[str, variants.Run]:
    return unit51.runs_of(OVER_STRICT, tuple(CORRECT))


def test_each_wheat_uses_a_freedom_and_no_two_freedoms_are_told_by_the_same_wheats() -> None:
    assert set().union(*FREEDOMS.values()) == {name for name in CORRECT if name != "reference"}
    assert len({frozenset(wheats) for wheats in FREEDOMS.values()}) == len(FREEDOMS)
    tests = [node.name for node in ast.parse(OVER_STRICT.read_text()).body if isinstance(node, ast.FunctionDef)]
    assert {f"test_{name.replace('-', '_')}" for name in FREEDOMS} == {name for name in tests if name[:5] == "test_"}


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_a_test_that_denies_a_freedom_passes_on_the_reference_and_fails_on_its_wheats(freedom: str) -> None:
    runs, name = over_strict_runs(), f"test_{freedom.replace('-', '_')}"
    assert name in runs["reference"].passed, runs["reference"].messages
    rejected = {wheat for wheat in CORRECT if name in runs[wheat].failed}
    if freedom == "rounding":  # which last digits differ depends on the machine
        assert rejected and rejected <= FREEDOMS[freedom]
    else:
        assert rejected == FREEDOMS[freedom]
