"""Units L5.1 and L5.2: every correct file passes both suites, every mutant fails both, and the course tests say truly
what they catch."""

import ast
import importlib.util
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grader import proof
from grader.candidates import code_of
from grader.contract import check
from grader.renderings import SALTS
from grader.submission import Submission
from sandbox.records import File
from tests.course.whole import MASKS, SDPA, Whole

UNITS = [SDPA, MASKS]
each_unit = pytest.mark.parametrize("whole", UNITS, ids=lambda whole: whole.id)


def each(names: Callable[[Whole], list[str]]) -> pytest.MarkDecorator:
    """Units and names as parameters; names that are not among the unit's few belong to the full run."""
    return pytest.mark.parametrize(
        ("whole", "name"),
        [
            pytest.param(whole, name, marks=[] if name in whole.few else [pytest.mark.full], id=f"{whole.id}-{name}")
            for whole in UNITS
            for name in names(whole)
        ],
    )


def names_of_course_tests(whole: Whole) -> set[str]:
    return {test.name for test in whole.unit.course_tests}


# -- suites and variants ----------------------------------------------------------------------------------------------


@each(lambda whole: whole.correct)
def test_correct_code_passes_every_course_test(whole: Whole, name: str) -> None:
    run = whole.course_run(name)
    assert not run.messages
    assert run.passed == names_of_course_tests(whole)


@each(lambda whole: whole.correct)
def test_correct_code_passes_the_staff_suite(whole: Whole, name: str) -> None:
    run = whole.staff_run(name)
    assert not run.messages
    assert len(run.passed) >= 15


@each(lambda whole: whole.by_hand)
def test_a_mutant_written_by_hand_fails_exactly_the_course_tests_that_say_they_catch_it(
    whole: Whole, name: str
) -> None:
    catching = {test.name for test in whole.unit.course_tests if name in test.catches}
    assert whole.course_run(name).failed == catching
    assert catching, "a mutant that no course test catches is none"


@each(lambda whole: whole.mutants)
def test_a_mutant_fails_the_staff_suite(whole: Whole, name: str) -> None:
    assert whole.staff_run(name).failed - {"collection"}


@each(lambda whole: whole.mutants)
def test_messages_on_mutants_are_sentences_without_addresses(whole: Whole, name: str) -> None:
    for test, message in whole.course_run(name).messages.items():
        assert message.startswith("AssertionError: "), (test, message)
        assert len(message) > 60, (test, message)
        assert not re.search(r"0x[0-9a-f]{6,}", message), (test, message)


@pytest.mark.full
@each_unit
def test_course_tests_do_not_depend_on_their_order(whole: Whole) -> None:
    order = [test.name for test in whole.unit.course_tests]
    backwards = tuple(f"test_{whole.reference.stem}.py::{name}" for name in reversed(order))
    assert whole.runs_of(whole.course_tests, ("reference",), backwards)["reference"].passed == set(order)


# -- the folder --------------------------------------------------------------------------------------------------------


@each_unit
def test_every_correct_implementation_keeps_the_contract(whole: Whole) -> None:
    unit = whole.unit
    correct = [{file.path: file.reference for file in unit.files}, *(wheat.files for wheat in unit.wheats)]
    assert len(correct) >= 7
    assert [check(unit, Submission(unit.id, files, ())) for files in correct] == [()] * len(correct)


@each_unit
def test_the_staff_suite_imports_only_what_has_a_contract(whole: Whole) -> None:
    suite = tuple(File(path.name, path.read_bytes()) for path in sorted(whole.staff_suite.glob("*.py")))
    assert len(suite) == 4
    assert check(whole.unit, Submission(whole.id, {whole.path: whole.reference.read_bytes()}, suite)) == ()


@each_unit
def test_required_mutants_are_the_pitfalls(whole: Whole) -> None:
    required = [row["mid"] for row in whole.manifest if row["required"] == "true"]
    assert whole.module_file["learner_tests"]["required_mutants"] == required
    assert required == [row["mid"] for row in whole.manifest if row["tier"] == "semantic"]
    assert len(required) == 8


@each_unit
def test_there_are_enough_mutants_of_every_category_to_make_the_threshold_mean_something(whole: Whole) -> None:
    counted = Counter(row["category"] for row in whole.manifest)
    assert 30 <= counted.total() <= 45
    assert min(counted.values()) >= 2, counted


@each_unit
def test_mutant_line_is_the_first_changed_line_of_the_reference(whole: Whole) -> None:
    reference = whole.reference.read_text().splitlines()
    for row in whole.manifest:
        mutant = whole.sources[row["mid"]].splitlines()
        first = next(i for i, (a, b) in enumerate(zip(reference, mutant, strict=False), 1) if a != b)
        assert int(row["line"]) == first, row["mid"]


@each_unit
def test_patches_and_manifest_list_the_same_mutants_all_different(whole: Whole) -> None:
    assert {path.stem for path in (whole.course / "mutants" / whole.id).glob("*.patch")} == set(whole.mutants)
    code = [code_of({whole.reference.name: source.encode()}) for source in whole.sources.values()]
    assert len(set(code)) == len(code)


@each_unit
def test_manifest_is_well_formed(whole: Whole) -> None:
    for row in whole.manifest:
        assert row["unit"] == whole.id
        assert row["tier"] == {"s": "semantic", "m": "auto"}[row["mid"][0]]
        assert re.fullmatch(r"[a-z_]+", row["operator"])
        assert row["category"] and row["private"]
        assert "Test" in row["public"], "a hint says what test to write next"


@each_unit
def test_course_tests_say_why_and_list_mutants_in_order(whole: Whole) -> None:
    for test in whole.unit.course_tests:
        assert test.why and test.chapter.startswith(f"{whole.id} section"), test.name
        assert list(test.catches) == [mid for mid in whole.by_hand if mid in test.catches], test.name


# -- fixture and renderings --------------------------------------------------------------------------------------------


@each_unit
def test_fixture_made_again_has_the_same_names_shapes_and_values(whole: Whole) -> None:
    name = f"{whole.reference.stem}_torch"
    spec = importlib.util.spec_from_file_location(name, whole.course / "oracle" / whole.id / f"{name}.py")
    assert spec is not None and spec.loader is not None
    script: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    made = script.make_fixture()
    with np.load(whole.course / "fixtures" / whole.module_file["fixtures"]["files"][0]) as kept:
        assert sorted(kept.files) == sorted(made)
        for key, array in made.items():
            assert (kept[key].shape, kept[key].dtype) == (array.shape, array.dtype), key
            np.testing.assert_allclose(kept[key], array, rtol=1e-12, atol=1e-13, err_msg=key)


@each_unit
def test_a_rendering_of_every_variant_is_the_one_proved(whole: Whole) -> None:
    again = (
        f"run `autograder course check {whole.id}`: a variant or a rewriting has changed since renderings were proved"
    )
    kept = (whole.course / "renderings" / f"{whole.id}.sha256").read_text().splitlines(keepends=True)
    found = proof.variants_of(whole.unit)
    assert len(kept) == len(found) * len(SALTS), again
    for number, variant in enumerate(found):
        assert proof.digest_line(variant, number % len(SALTS)) in kept, again


# -- freedoms ----------------------------------------------------------------------------------------------------------


def freedoms(whole: Whole) -> dict[str, set[str]]:
    """The wheats that use each."""
    return {each.id: {name.partition("_")[0] for name in each.wheats} for each in whole.unit.freedoms}


@each_unit
def test_each_wheat_uses_a_freedom_and_each_freedom_is_denied_by_a_test(whole: Whole) -> None:
    assert set().union(*freedoms(whole).values()) == {name for name in whole.correct if name != "reference"}
    body = ast.parse(whole.over_strict.read_text()).body
    tests = {node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}
    assert tests == {f"test_{name.replace('-', '_')}" for name in freedoms(whole)}


def test_no_two_freedoms_of_attention_are_told_by_the_same_wheats() -> None:
    found = freedoms(SDPA)
    assert len({frozenset(wheats) for wheats in found.values()}) == len(found)


@pytest.mark.parametrize(
    ("whole", "freedom"),
    [pytest.param(whole, freedom, id=f"{whole.id}-{freedom}") for whole in UNITS for freedom in freedoms(whole)],
)
def test_a_test_that_denies_a_freedom_passes_on_the_reference_and_fails_on_its_wheats(
    whole: Whole, freedom: str
) -> None:
    runs, name = whole.runs_of(whole.over_strict, tuple(whole.correct)), f"test_{freedom.replace('-', '_')}"
    assert name in runs["reference"].passed, runs["reference"].messages
    rejected = {wheat for wheat in whole.correct if name in runs[wheat].failed}
    if freedom == "rounding":  # which last digits differ depends on the machine
        assert rejected and rejected <= freedoms(whole)[freedom]
    else:
        assert rejected == freedoms(whole)[freedom]
