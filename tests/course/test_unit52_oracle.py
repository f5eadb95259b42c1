"""The oracle of unit L5.2 agrees with every correct masks.py, disagrees with wrong ones, and gives nothing away."""

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.course.oracled import Oracle
from tests.course.whole import MASKS

SEEDS = (0, 52, 2**53 - 1)
MANY_SEEDS = range(100, 130)
MUTANTS = [row["mid"] for row in MASKS.manifest]
CORRECT = [name for name in MASKS.sources if name not in MUTANTS]

ORACLE = Oracle("L5.2", by="says")
live, trial, disagreements = ORACLE.live, ORACLE.trial, ORACLE.disagreements


def with_result(change: Callable[[Any], Any], *names: str) -> Any:
    """The reference with other results of the functions named, or of all."""
    module: Any = ModuleType("other")
    for name in ("causal_mask", "padding_mask", "sliding_window_mask", "combine", "to_additive"):
        right = getattr(MASKS.module("reference"), name)
        setattr(module, name, changed(right, change) if name in names or not names else right)
    return module


def changed(function: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *given, **named: change(function(*given, **named))


# --- verdicts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CORRECT)
def test_correct_code_agrees(name: str) -> None:
    for seed in SEEDS:
        assert disagreements(MASKS.module(name), seed) == {}


@pytest.mark.parametrize("mid", MUTANTS)
def test_every_mutant_disagrees_whatever_the_seed(mid: str) -> None:
    for seed in SEEDS:
        assert disagreements(MASKS.module(mid), seed), f"seed {seed}"


@pytest.mark.full
@pytest.mark.parametrize("name", MASKS.sources)
def test_verdicts_do_not_depend_on_the_seed(name: str) -> None:
    for seed in MANY_SEEDS:
        assert bool(disagreements(MASKS.module(name), seed)) == (name in MUTANTS), f"seed {seed}"


WRONG: dict[str, Callable[[Any], Any]] = {
    "a list": lambda mask: mask.tolist(),
    "nothing": lambda mask: None,
    "one axis more": lambda mask: mask[None],
    "numbers": lambda mask: mask.astype(np.int64),
    "read-only": lambda mask: np.broadcast_to(mask, mask.shape),
    "a matrix": lambda mask: np.ma.masked_array(mask),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_result_that_is_not_what_was_asked_for_disagrees_wherever_there_is_one(what: str) -> None:
    found = disagreements(with_result(WRONG[what]), SEEDS[0])
    assert len(found) == sum(case["kind"] != "refused" for case, _ in trial(SEEDS[0]))


def test_an_additive_mask_of_another_dtype_is_told_so() -> None:
    found = disagreements(with_result(lambda added: added.astype(np.float64), "to_additive"), SEEDS[0])
    assert len(found) == 3  # of four, one is asked for in float64
    for there in found.values():
        assert [finding.name for finding in there] == ["first.dtype", "again.dtype"]
        assert there[0].difference.actual == "float64"


def test_a_result_that_is_remembered_disagrees_in_the_second_call() -> None:
    kept: dict[tuple[Any, ...], Any] = {}
    module = with_result(lambda mask: mask)
    right = module.causal_mask
    module.causal_mask = lambda *given, **named: kept.setdefault((*given, *named.values()), right(*given, **named))
    found = disagreements(module, SEEDS[0])
    assert found
    assert {"again"} <= {finding.name for there in found.values() for finding in there}
    assert all(says.startswith("causal_mask") for says in found)


def test_an_exception_is_told_by_its_kind() -> None:
    def raising(mask: Any) -> Any:
        raise KeyError("x")

    found = disagreements(with_result(raising, "padding_mask"), SEEDS[0])
    assert {there[0].difference.actual for there in found.values()} == {"KeyError"}
    assert all(says.startswith("padding_mask") for says in found)


# --- what is tried, and what is given away ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_cases_of_every_seed_cover_what_the_contract_names(seed: int) -> None:
    cases = [case for case, _ in trial(seed)]
    sizes = [case["params"] for case in cases if case["kind"] == "causal"]
    assert any(each["Tk"] is None for each in sizes)
    assert any(each["Tk"] and each["Tk"] < each["Tq"] for each in sizes)
    assert any(each["Tk"] and each["Tk"] > each["Tq"] and each["q_offset"] for each in sizes)
    lengths = [(case["arrays"]["lengths"], case["params"]["T"]) for case in cases if case["kind"] == "padding"]
    assert any(0 in each and T in each for each, T in lengths)
    assert {case["params"]["dtype"] for case in cases if case["kind"] == "additive"} == {
        None,
        "float16",
        "float32",
        "float64",
    }
    refused = {case["params"]["of"] for case in cases if case["kind"] == "refused"}
    assert refused == {"causal", "window", "padding", "combine", "additive"}


def test_the_same_seed_gives_the_same_cases_and_another_seed_others() -> None:
    ORACLE.check_seeds()


def test_cases_are_plain() -> None:
    for case in live.cases(1):
        json.dumps({name: value for name, value in case.items() if name != "arrays"}, allow_nan=False)
        assert all(array.dtype.name in ("bool", "int64", "float32") for array in case["arrays"].values())


def test_driving_leaves_a_case_as_it_was() -> None:
    ORACLE.check_left_alone(MASKS.module("m12"), MASKS.module("m15"))


def test_the_driver_holds_nothing_that_knows_masks() -> None:
    ORACLE.check_driver("tril", "_band", "broadcast_arrays", "RIGHT")
