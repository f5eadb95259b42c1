"""Unit 2.3: every correct mha.py passes both suites, every mutant fails both, and the course tests say truly what they
catch. A few variants of each kind are tried with every change, all of them in the full run."""

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
from tests.course import unit23, variants

MODULE = tomllib.loads((unit23.COURSE / "modules/2.3.toml").read_text())
MUTANTS = [row["mid"] for row in unit23.manifest()]
GENERATED = [row["mid"] for row in unit23.manifest() if row.get("signed_off")]
BY_HAND = [mid for mid in MUTANTS if mid not in GENERATED]
CORRECT = [name for name in unit23.sources() if name not in MUTANTS]
TESTS = {test.name: test for test in unit23.unit().course_tests}
TRAPS = {"s01": "layout", "s02": "dropout", "s03": "softmax", "s04": "scale", "s05": "mask", "s06": "layout"}


def tried(names: list[str]) -> list[Any]:
    """The names as parameters; those that are not among the few belong to the full run."""
    return [pytest.param(name, marks=[] if name in unit23.FEW else [pytest.mark.full]) for name in names]


def course_run(name: str) -> variants.Run:
    return unit23.course_run(unit23.FEW if name in unit23.FEW else tuple(unit23.sources()))[name]


def staff_run(name: str) -> variants.Run:
    return unit23.staff_run(unit23.FEW if name in unit23.FEW else tuple(unit23.sources()))[name]


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
    assert len(run.passed) >= 8


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


def test_a_step_in_float32_is_told_to_fail_the_float64_criterion() -> None:
    for mid in ("m29", "m30"):
        run = course_run(mid)
        told = [message for message in run.messages.values() if "float32" in message and "atol 1e-08" in message]
        assert len(told) >= len(run.failed) - 1, mid  # that in_features of float32 give float32 is another matter


@pytest.mark.full
def test_course_tests_do_not_depend_on_their_order() -> None:
    backwards = tuple(f"test_mha.py::{name}" for name in reversed(TESTS))
    run = unit23.runs_of(unit23.COURSE_TESTS, ("reference",), backwards)["reference"]
    assert run.passed == set(TESTS)


# -- finished attention ------------------------------------------------------------------------------------------------

FINISHED = {
    "the function": "import torch.nn.functional as F\nf = F.scaled_dot_product_attention\n",
    "an import": "from torch.nn.functional import scaled_dot_product_attention as f\n",
    "by text": "import torch\nf = getattr(torch.nn.functional, 'scaled_dot_product_' + 'attention')\n",
}
CALLS = """
def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    q, k, v = (
        (in_features @ w.T).unflatten(-1, (num_heads, -1)).transpose(-3, -2)
        for w in (q_proj_weight, k_proj_weight, v_proj_weight)
    )
    return f(q, k, v, is_causal=True).transpose(-3, -2).flatten(-2) @ o_proj_weight.T
"""


@cache
def finished_runs() -> dict[str, variants.Run]:
    sources = {way.replace(" ", "-"): source + CALLS for way, source in FINISHED.items()}
    return variants.run_suite(unit23.COURSE_TESTS, sources, place="mha.py", preloaded=unit23.PRELOADED)


@pytest.mark.parametrize("way", FINISHED)
def test_finished_attention_is_caught_when_it_runs_by_whatever_name(way: str) -> None:
    found = finished_runs()[way.replace(" ", "-")]
    assert "test_no_finished_attention_is_called" in found.failed
    assert "test_outputs_agree_with_a_loop_over_heads" in found.passed
    assert "scaled_dot_product_attention" in found.messages["test_no_finished_attention_is_called"]


@pytest.mark.parametrize("way", ["the function", "an import"])
def test_finished_attention_is_a_problem_of_the_contract(way: str) -> None:
    files = {unit23.PATH: (FINISHED[way] + CALLS).encode()}
    problems = check(unit23.unit(), Submission(unit23.ID, files, ()))
    assert {problem.code for problem in problems} == {"forbidden_name"}


def test_a_function_of_ones_own_may_have_the_name_of_a_finished_one() -> None:
    source = unit23.sources()["reference"].replace("attend(", "scaled_dot_product_attention(")
    assert check(unit23.unit(), Submission(unit23.ID, {unit23.PATH: source.encode()}, ())) == ()


# -- the folder --------------------------------------------------------------------------------------------------------


def test_the_unit_stands_alone() -> None:
    unit = unit23.unit()
    assert unit.runtime == "torch"
    assert set(unit.contracts) == {"mha"}
    assert unit.companions == {}


def test_every_correct_implementation_keeps_the_contract() -> None:
    unit = unit23.unit()
    correct = [{file.path: file.reference for file in unit.files}, *(wheat.files for wheat in unit.wheats)]
    assert len(correct) >= 6
    assert [check(unit, Submission(unit.id, files, ())) for files in correct] == [()] * len(correct)


def test_the_staff_suite_imports_only_what_has_a_contract() -> None:
    suite = tuple(File(path.name, path.read_bytes()) for path in sorted(unit23.STAFF_SUITE.glob("*.py")))
    files = {unit23.PATH: unit23.REFERENCE.read_bytes()}
    assert len(suite) == 3
    assert check(unit23.unit(), Submission(unit23.ID, files, suite)) == ()


def test_tests_use_of_the_module_what_its_contract_promises_and_nothing_else() -> None:
    files = {unit23.PATH: unit23.REFERENCE.read_bytes()}
    uses = {
        "import mha\n\ndef test_a(): mha.run_multihead_self_attention\n": [],
        "import mha\n\ndef test_a(): mha.split_heads\n": ["blackbox_name"],
        "from mha import merge_heads\n": ["blackbox_name"],
        "import torch\nimport torch.nn.functional as F\n\ndef test_a(): F.softmax(torch.ones(2), -1)\n": [],
    }
    for source, codes in uses.items():
        found = check(unit23.unit(), Submission(unit23.ID, files, (File("test_a.py", source.encode()),)))
        assert [problem.code for problem in found] == codes, source


def test_required_mutants_are_the_traps_each_of_its_category() -> None:
    required = {row["mid"]: row["category"] for row in unit23.manifest() if row["required"] == "true"}
    assert MODULE["learner_tests"]["required_mutants"] == list(required)
    assert required == TRAPS


def test_there_are_enough_mutants_of_the_matters_that_the_unit_is_about() -> None:
    counted = Counter(row["category"] for row in unit23.manifest())
    assert counted.total() >= 30
    assert min(counted[name] for name in ("layout", "scale", "mask", "projection", "gradient")) >= 4, counted


def test_mutant_line_is_the_first_changed_line_of_the_reference() -> None:
    reference = unit23.REFERENCE.read_text().splitlines()
    for row in unit23.manifest():
        mutant = unit23.sources()[row["mid"]].splitlines()
        first = next(i for i, (a, b) in enumerate(zip(reference, mutant, strict=False), 1) if a != b)
        assert int(row["line"]) == first, row["mid"]


def test_patches_and_manifest_list_the_same_mutants_all_different() -> None:
    assert {path.stem for path in (unit23.COURSE / "mutants/2.3").glob("*.patch")} == set(MUTANTS)
    code = [code_of({"mha.py": source.encode()}) for source in unit23.sources().values()]
    assert len(set(code)) == len(code)


def test_manifest_is_well_formed() -> None:
    for row in unit23.manifest():
        assert row["unit"] == unit23.ID
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
    spec = importlib.util.spec_from_file_location("mha_torch_23", unit23.COURSE / "oracle/2.3/mha_torch.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fixture_made_again_has_the_same_names_shapes_and_values() -> None:
    made = fixture_script().make_fixture()
    with np.load(unit23.COURSE / "fixtures" / MODULE["fixtures"]["files"][0]) as kept:
        assert sorted(kept.files) == sorted(made)
        for name, array in made.items():
            assert (kept[name].shape, kept[name].dtype) == (array.shape, array.dtype), name
            exact = array.dtype == np.float64
            np.testing.assert_allclose(kept[name], array, rtol=1e-12 if exact else 1e-6, atol=1e-13, err_msg=name)


def test_the_closed_book_case_has_the_sizes_of_the_unit_and_numbers_that_can_be_typed() -> None:
    with np.load(unit23.COURSE / "fixtures" / MODULE["fixtures"]["files"][0]) as kept:
        assert kept["closed.in_features"].shape == (2, 3, 8)
        for name in ("in_features", "q_proj_weight", "k_proj_weight", "v_proj_weight", "o_proj_weight", "cotangent"):
            np.testing.assert_array_equal(kept[f"closed.{name}"], kept[f"closed.{name}"].round(2))


KEPT = unit23.COURSE / "renderings/2.3.sha256"
AGAIN = "run `autograder course check 2.3`: a variant or a rewriting has changed since renderings were proved"


def test_a_rendering_of_every_variant_is_the_one_proved() -> None:
    kept = KEPT.read_text().splitlines(keepends=True)
    found = proof.variants_of(unit23.unit())
    assert len(kept) == len(found) * len(SALTS), AGAIN
    for number, variant in enumerate(found):
        assert proof.digest_line(variant, number % len(SALTS)) in kept, AGAIN


# -- freedoms ----------------------------------------------------------------------------------------------------------

OVER_STRICT = Path(__file__).parent / "over_strict23.py"
DENIED = ["inner-calls", "further-names", "graph", "rounding", "uneven-heads"]  # by a test of ours for each


@cache
def over_strict_runs() -> dict[str, variants.Run]:
    return unit23.runs_of(OVER_STRICT, tuple(CORRECT))


def test_each_wheat_uses_a_freedom_and_tests_deny_those_that_a_test_can() -> None:
    freedoms = {freedom.id: freedom for freedom in unit23.unit().freedoms}
    assert {wheat.partition("_")[0] for freedom in freedoms.values() for wheat in freedom.wheats} == {
        name for name in CORRECT if name != "reference"
    }
    tests = [node.name for node in ast.parse(OVER_STRICT.read_text()).body if isinstance(node, ast.FunctionDef)]
    assert [f"test_{name.replace('-', '_')}" for name in DENIED] == [name for name in tests if name.startswith("test_")]
    assert set(DENIED) < set(freedoms)


@pytest.mark.parametrize("freedom", DENIED)
def test_a_test_that_denies_a_freedom_passes_on_the_reference_and_fails_on_its_wheats(freedom: str) -> None:
    runs, name = over_strict_runs(), f"test_{freedom.replace('-', '_')}"
    assert name in runs["reference"].passed, runs["reference"].messages
    rejected = {wheat for wheat in CORRECT if name in runs[wheat].failed}
    (wheats,) = (one.wheats for one in unit23.unit().freedoms if one.id == freedom)
    told = {wheat.partition("_")[0] for wheat in wheats}
    if freedom == "rounding":  # which last digits differ depends on the machine
        assert rejected and rejected <= told
    else:
        assert rejected == told
