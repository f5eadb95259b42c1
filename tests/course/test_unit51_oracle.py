"""The oracle of unit L5.1 agrees with every correct sdpa.py, disagrees with every wrong one, and gives nothing away."""

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from grader.comparator import worst_closeness
from tests.course.oracled import Oracle
from tests.course.whole import SDPA
from tinyllm.autograd.tensor import Tensor
from tinyllm.num.rng import PCG32
from tinyllm.xfmr import sdpa

SEEDS = (0, 2**53 - 1)
MANY_SEEDS = range(100, 130)
MUTANTS = [row["mid"] for row in SDPA.manifest]
CORRECT = [name for name in SDPA.sources if name not in MUTANTS]

ORACLE = Oracle("L5.1")
live, trial, driven, disagreements = ORACLE.live, ORACLE.trial, ORACLE.driven, ORACLE.disagreements


def changed(**functions: Callable[..., Any]) -> Any:
    """The reference with other functions in place of some of the three."""
    module: Any = ModuleType("other")
    module.__dict__.update({name: getattr(sdpa, name) for name in NAMES} | functions)
    return module


NAMES = ("sdpa_forward", "sdpa_backward", "scaled_dot_product_attention")


# --- verdicts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CORRECT)
def test_correct_code_agrees(name: str) -> None:
    for seed in SEEDS:
        assert disagreements(SDPA.module(name), seed) == {}


@pytest.mark.parametrize("mid", MUTANTS)
def test_every_mutant_disagrees_whatever_the_seed(mid: str) -> None:
    for seed in SEEDS:
        assert disagreements(SDPA.module(mid), seed), f"seed {seed}"


@pytest.mark.full
@pytest.mark.parametrize("name", CORRECT)
def test_correct_code_agrees_with_room_to_spare_on_many_seeds(name: str) -> None:
    for seed in MANY_SEEDS:
        assert disagreements(SDPA.module(name), seed) == {}
        pairs = [(driven(SDPA.module(name), case), expected) for case, expected in trial(seed)]
        assert max(worst_closeness(*pair) for pair in pairs) < 0.5, "honest rounding comes near the tolerance"


@pytest.mark.full
@pytest.mark.parametrize("mid", MUTANTS)
def test_every_mutant_disagrees_on_many_seeds(mid: str) -> None:
    for seed in MANY_SEEDS:
        assert disagreements(SDPA.module(mid), seed), f"seed {seed}"


PARTLY_RIGHT: dict[str, Callable[[Any, Any], bool]] = {
    "without leading axes": lambda q, mask: q.ndim == 2,
    "with leading axes": lambda q, mask: q.ndim > 2,
    "up to two leading axes": lambda q, mask: q.ndim <= 4,
    "float32": lambda q, mask: q.dtype == np.float32,
    "float64": lambda q, mask: q.dtype == np.float64,
    "contiguous": lambda q, mask: q.flags["C_CONTIGUOUS"],
    "no mask": lambda q, mask: mask is None,
    "masks of two axes or more": lambda q, mask: mask is None or mask.ndim > 1,
    "every query with a key": lambda q, mask: mask is None or bool(mask.any(axis=-1).all()),
    "small scores": lambda q, mask: bool(abs(q).max() < 10),
}


@pytest.mark.parametrize("what", PARTLY_RIGHT)
def test_code_that_is_right_only_for_some_inputs_disagrees(what: str) -> None:
    def forward(q: Any, k: Any, v: Any, mask: Any = None, scale: Any = None) -> Any:
        out, weights = sdpa.sdpa_forward(q, k, v, mask, scale)
        return out * q.dtype.type(1 if PARTLY_RIGHT[what](q, mask) else 0.999), weights

    for seed in SEEDS:
        found = disagreements(changed(sdpa_forward=forward), seed)
        assert found
        assert len(found) < len(trial(seed)) / 2


@pytest.mark.parametrize("name", NAMES)
def test_each_function_is_looked_at(name: str) -> None:
    def scaled(*given: Any, **options: Any) -> Any:
        first, *others = getattr(sdpa, name)(*given, **options)
        return (first * 1.001, *others)

    assert disagreements(changed(**{name: scaled}), SEEDS[0])


WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "float32": lambda out, weights: (Tensor(out.data, requires_grad=True), weights),
    "detached": lambda out, weights: (out.detach(), weights),
    "arrays": lambda out, weights: (out.data, weights.data),
    "the output alone": lambda out, weights: out,
    "nothing": lambda out, weights: None,
    "exchanged": lambda out, weights: (weights, out),
    "not a number": lambda out, weights: (out * float("nan"), weights),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_result_that_is_not_what_was_asked_for_disagrees(what: str) -> None:
    def attend(*given: Any, **options: Any) -> Any:
        return WRONG[what](*sdpa.scaled_dot_product_attention(*given, **options))

    assert disagreements(changed(scaled_dot_product_attention=attend), SEEDS[0])


def test_an_exception_is_told_by_its_kind() -> None:
    def raising(*given: Any, **options: Any) -> Any:
        raise KeyError("x")

    found = disagreements(changed(**dict.fromkeys(NAMES, raising)), SEEDS[0])
    assert len(found) == len(trial(SEEDS[0]))
    assert {there[0].difference.actual for there in found.values()} == {"KeyError"}


# --- what is tried, and what is given away ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_cases_of_every_seed_cover_what_the_contract_names(seed: int) -> None:
    cases = live.cases(seed)
    right = [case for case in cases if case["kind"] != "refused"]
    assert {case["kind"] for case in cases} == {"forward", "backward", "attend", "refused"}
    assert {case["arrays"]["q"].ndim for case in right} == {2, 3, 4, 5}
    assert {case["arrays"]["q"].dtype.name for case in right} == {"float32", "float64"}
    assert {case["params"]["layout"] for case in right} == {"contiguous", "transposed", "strided", "reversed"}
    assert {case["params"]["needs"] for case in right if case["kind"] == "attend"} == set(live.NEEDS)
    masks = [case["arrays"]["mask"] for case in right if "mask" in case["arrays"]]
    assert {mask.ndim for mask in masks} >= {1, 2, 3, 4}
    assert any(not mask.any(axis=-1).all() for mask in masks)
    assert all(not mask.all() for mask in masks), "something is hidden"


def test_the_same_seed_gives_the_same_cases_and_another_seed_others() -> None:
    ORACLE.check_seeds()


def test_cases_are_plain() -> None:
    for case in live.cases(2):
        json.dumps({name: value for name, value in case.items() if name != "arrays"}, allow_nan=False)


def test_driving_leaves_a_case_as_it_was() -> None:
    ORACLE.check_left_alone(SDPA.module("m33"), SDPA.module("m34"))


def test_the_oracles_own_numbers_are_those_of_the_course() -> None:
    for seed in (0, 42, 2**31 - 1):
        stream = live._uniforms(live._pcg32(seed, 54))
        assert [next(stream) for _ in range(20)] == PCG32(seed).uniforms(20).tolist()


def test_the_driver_holds_nothing_that_computes_attention() -> None:
    ORACLE.check_driver("softmax", "torch", "einsum", "_pcg32")
