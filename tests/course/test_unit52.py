"""Unit L5.2: every correct masks.py passes both suites, every mutant fails both, and the course tests say truly what
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
from sandbox.records import File
from tests.course import unit52, variants

MODULE = tomllib.loads((unit52.COURSE / "modules/L5.2.toml").read_text())
MUTANTS = [row["mid"] for row in unit52.manifest()]
GENERATED = [row["mid"] for row in unit52.manifest() if row.get("signed_off")]
BY_HAND = [mid for mid in MUTANTS if mid not in GENERATED]
CORRECT = [name for name in unit52.sources() if name not in MUTANTS]
TESTS = {test.name: test for test in unit52.unit().course_tests}


def tried(names: list[str]) -> list[Any]:
    """The names as parameters; those that are not among the few belong to the full run."""
    return [pytest.param(name, marks=[] if name in unit52.FEW else [pytest.mark.full]) for name in names]


def course_run(name: str) -> variants.Run:
    return unit52.course_run(unit52.FEW if name in unit52.FEW else tuple(unit52.sources()))[name]


def staff_run(name: str) -> variants.Run:
    return unit52.staff_run(unit52.FEW if name in unit52.FEW else tuple(unit52.sources()))[name]


# -- suites and variants ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", tried(CORRECT))
def test_correct_code_passes_both_suites(name: str) -> None:
    assert not course_run(name).messages
    assert course_run(name).passed == set(TESTS)
    assert not staff_run(name).messages
    assert len(staff_run(name).passed) >= 15


@pytest.mark.parametrize("mid", tried(BY_HAND))
def test_a_mutant_written_by_hand_fails_exactly_the_course_tests_that_say_they_catch_it(mid: str) -> None:
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
    backwards = tuple(f"test_masks.py::{name}" for name in reversed(TESTS))
    run = unit52.runs_of(unit52.COURSE_TESTS, ("reference",), backwards)["reference"]
    assert run.passed == set(TESTS)


# -- the folder --------------------------------------------------------------------------------------------------------


def test_every_correct_implementation_keeps_the_contract() -> None:
    unit = unit52.unit()
    correct = [{file.path: file.reference for file in unit.files}, *(wheat.files for wheat in unit.wheats)]
    assert len(correct) >= 7
    assert [check(unit, Submission(unit.id, files, ())) for files in correct] == [()] * len(correct)


def test_the_staff_suite_imports_only_what_has_a_contract() -> None:
    suite = tuple(File(path.name, path.read_bytes()) for path in sorted(unit52.STAFF_SUITE.glob("*.py")))
    files = {unit52.PATH: unit52.REFERENCE.read_bytes()}
    assert len(suite) == 4
    assert check(unit52.unit(), Submission(unit52.ID, files, suite)) == ()


def test_required_mutants_are_the_pitfalls() -> None:
    required = [row["mid"] for row in unit52.manifest() if row["required"] == "true"]
    assert MODULE["learner_tests"]["required_mutants"] == required
    assert required == [row["mid"] for row in unit52.manifest() if row["tier"] == "semantic"]


def test_there_are_enough_mutants_of_every_category() -> None:
    counted = Counter(row["category"] for row in unit52.manifest())
    assert counted.total() >= 25
    assert min(counted.values()) >= 3, counted


def test_mutant_line_is_the_first_changed_line_of_the_reference() -> None:
    reference = unit52.REFERENCE.read_text().splitlines()
    for row in unit52.manifest():
        mutant = unit52.sources()[row["mid"]].splitlines()
        first = next(i for i, (a, b) in enumerate(zip(reference, mutant, strict=False), 1) if a != b)
        assert int(row["line"]) == first, row["mid"]


def test_patches_and_manifest_list_the_same_mutants_all_different() -> None:
    assert {path.stem for path in (unit52.COURSE / "mutants/L5.2").glob("*.patch")} == set(MUTANTS)
    code = [code_of({"masks.py": source.encode()}) for source in unit52.sources().values()]
    assert len(set(code)) == len(code)


def test_manifest_is_well_formed() -> None:
    for row in unit52.manifest():
        assert row["unit"] == unit52.ID
        assert row["tier"] == {"s": "semantic", "m": "auto"}[row["mid"][0]]
        assert re.fullmatch(r"[a-z_]+", row["operator"])
        assert row["category"] and row["private"]
        assert "Test" in row["public"], "a hint says what test to write next"


def test_catches_lists_mutants_in_order() -> None:
    for name, test in TESTS.items():
        assert list(test.catches) == [mid for mid in BY_HAND if mid in test.catches], name


# -- fixture and renderings --------------------------------------------------------------------------------------------


@cache
def fixture_script() -> Any:
    spec = importlib.util.spec_from_file_location("masks_torch", unit52.COURSE / "oracle/L5.2/masks_torch.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fixture_made_again_has_the_same_names_shapes_and_values() -> None:
    made = fixture_script().make_fixture()
    with np.load(unit52.COURSE / "fixtures" / MODULE["fixtures"]["files"][0]) as kept:
        assert sorted(kept.files) == sorted(made)
        for name, array in made.items():
            assert (kept[name].shape, kept[name].dtype) == (array.shape, array.dtype), name
            np.testing.assert_allclose(kept[name], array, rtol=1e-12, atol=1e-13, err_msg=name)


def test_every_query_of_the_fixture_has_a_key() -> None:
    with np.load(unit52.COURSE / "fixtures" / MODULE["fixtures"]["files"][0]) as kept:
        for case in ("decoder", "window"):
            assert kept[f"{case}.mask"].any(axis=-1).all(), "torch gives NaN for a query without keys"
            assert not kept[f"{case}.mask"].all(), "a mask that hides nothing shows nothing"


KEPT = unit52.COURSE / "renderings/L5.2.sha256"
AGAIN = "run `autograder course check L5.2`: a variant or a rewriting has changed since renderings were proved"


def test_a_rendering_of_every_variant_is_the_one_proved() -> None:
    kept = KEPT.read_text().splitlines(keepends=True)
    found = proof.variants_of(unit52.unit())
    assert len(kept) == len(found) * len(SALTS), AGAIN
    for number, variant in enumerate(found):
        assert proof.digest_line(variant, number % len(SALTS)) in kept, AGAIN


# -- freedoms ----------------------------------------------------------------------------------------------------------

OVER_STRICT = Path(__file__).parent / "over_strict52.py"
FREEDOMS = {freedom.id: freedom for freedom in unit52.unit().freedoms}


@cache
def over_strict_runs() -> dict[str, variants.Run]:
    return unit52.runs_of(OVER_STRICT, tuple(CORRECT))


def test_each_wheat_uses_a_freedom_and_each_freedom_is_denied_by_a_test() -> None:
    used = {wheat.partition("_")[0] for freedom in FREEDOMS.values() for wheat in freedom.wheats}
    assert used == {name for name in CORRECT if name != "reference"}
    tests = [node.name for node in ast.parse(OVER_STRICT.read_text()).body if isinstance(node, ast.FunctionDef)]
    assert tests == [f"test_{name.replace('-', '_')}" for name in FREEDOMS]


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_a_test_that_denies_a_freedom_passes_on_the_reference_and_fails_on_its_wheats(freedom: str) -> None:
    runs, name = over_strict_runs(), f"test_{freedom.replace('-', '_')}"
    assert name in runs["reference"].passed, runs["reference"].messages
    rejected = {wheat for wheat in CORRECT if name in runs[wheat].failed}
    assert rejected == {wheat.partition("_")[0] for wheat in FREEDOMS[freedom].wheats}
