"""The oracle of unit L5.1 agrees with every correct sdpa.py, disagrees with every wrong one, and gives nothing away."""

import copy
import json
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from grader.comparator import Expectation, Finding, findings, worst_closeness
from grader.driver import driver_of
from tests.course.whole import SDPA
from tinyllm.autograd.tensor import Tensor
from tinyllm.num.rng import PCG32
from tinyllm.xfmr import sdpa

SEEDS = (0, 2**53 - 1)
MANY_SEEDS = range(100, 130)
SOURCE = (SDPA.course / "oracle/L5.1/live.py").read_bytes()
MUTANTS = [row["mid"] for row in SDPA.manifest]
CORRECT = [name for name in SDPA.sources if name not in MUTANTS]

Case = dict[str, Any]


def module_of(name: str, source: bytes) -> Any:
    module = ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


live = module_of("live", SOURCE)
driver = module_of("driver", driver_of(SOURCE))  # what grading runs, without what knows right answers


@cache
def trial(seed: int) -> list[tuple[Case, dict[str, Expectation]]]:
    """Every case of a seed with what is expected."""
    return [
        (case, {name: Expectation.of(said) for name, said in live.expected(case).items()}) for case in live.cases(seed)
    ]


def driven(module: Any, case: Case) -> Any:
    with np.errstate(all="ignore"):  # wrong code may overflow
        return driver.drive(module, case)


def disagreements(module: Any, seed: int) -> dict[str, tuple[Finding, ...]]:
    """Case ids and what was found there."""
    found = {case["id"]: findings(driven(module, case), expected) for case, expected in trial(seed)}
    return {id: there for id, there in found.items() if there}


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
    first, again, other = live.cases(5), live.cases(5), live.cases(6)
    for one, two in zip(first, again, strict=True):
        assert one["says"] == two["says"]
        assert all(np.array_equal(array, two["arrays"][name]) for name, array in one["arrays"].items())
    assert [case["says"] for case in first] != [case["says"] for case in other]


def test_cases_are_plain_and_the_driver_changes_none() -> None:
    for case in live.cases(2):
        json.dumps({name: value for name, value in case.items() if name != "arrays"}, allow_nan=False)
        kept = copy.deepcopy(case["arrays"])
        driven(SDPA.module("m33"), case)
        driven(SDPA.module("m34"), case)
        assert all(np.array_equal(array, case["arrays"][name]) for name, array in kept.items())


def test_the_oracles_own_numbers_are_those_of_the_course() -> None:
    for seed in (0, 42, 2**31 - 1):
        stream = live._uniforms(live._pcg32(seed, 54))
        assert [next(stream) for _ in range(20)] == PCG32(seed).uniforms(20).tolist()


def test_the_driver_holds_nothing_that_computes_attention() -> None:
    text = driver_of(SOURCE).decode()
    assert "def drive" in text
    assert not [word for word in ("softmax", "torch", "def expected", "einsum", "_pcg32") if word in text]
