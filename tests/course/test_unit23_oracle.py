"""The oracle of unit 2.3 agrees with every correct mha.py, disagrees with every wrong one, and gives nothing away."""

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from grader.comparator import worst_closeness
from tests.course import unit23
from tests.course.oracled import Oracle

SEEDS = (0, 2_3, 2**53 - 1)
MANY_SEEDS = range(100, 130)
MUTANTS = [row["mid"] for row in unit23.manifest()]
CORRECT = [name for name in unit23.sources() if name not in MUTANTS]
ARGUMENTS = ("in_features", "q_proj_weight", "k_proj_weight", "v_proj_weight", "o_proj_weight")

Function = Callable[..., Any]

ORACLE = Oracle("2.3")
live, trial, driven, disagreements = ORACLE.live, ORACLE.trial, ORACLE.driven, ORACLE.disagreements


def as_module(function: Function) -> Any:
    module: Any = ModuleType("other")
    module.run_multihead_self_attention = function
    return module


reference: Function = unit23.module("reference").run_multihead_self_attention


# --- verdicts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CORRECT)
def test_correct_code_agrees(name: str) -> None:
    for seed in SEEDS:
        assert disagreements(unit23.module(name), seed) == {}


@pytest.mark.parametrize("mid", MUTANTS)
def test_every_mutant_disagrees_whatever_the_seed(mid: str) -> None:
    for seed in SEEDS:
        assert disagreements(unit23.module(mid), seed), f"seed {seed}"


@pytest.mark.full
@pytest.mark.parametrize("name", CORRECT)
def test_correct_code_agrees_with_room_to_spare_on_many_seeds(name: str) -> None:
    for seed in MANY_SEEDS:
        assert disagreements(unit23.module(name), seed) == {}
        pairs = [(driven(unit23.module(name), case), expected) for case, expected in trial(seed)]
        assert max(worst_closeness(*pair) for pair in pairs) < 0.3, "honest rounding comes near the tolerance"


@pytest.mark.full
@pytest.mark.parametrize("mid", MUTANTS)
def test_every_mutant_disagrees_on_many_seeds(mid: str) -> None:
    for seed in MANY_SEEDS:
        assert disagreements(unit23.module(mid), seed), f"seed {seed}"


PARTLY_RIGHT: dict[str, Callable[[int, torch.Tensor], bool]] = {
    "one head": lambda H, x: H == 1,
    "several heads": lambda H, x: H > 1,
    "not seven heads": lambda H, x: H != 7,
    "up to nine positions": lambda H, x: x.shape[-2] <= 9,
    "more than one position": lambda H, x: x.shape[-2] > 1,
    "heads of two features or more": lambda H, x: x.shape[-1] > H,
    "three axes": lambda H, x: x.ndim == 3,
    "a batch": lambda H, x: x.ndim > 2,
    "up to three axes": lambda H, x: x.ndim <= 3,
    "float32": lambda H, x: x.dtype == torch.float32,
    "float64": lambda H, x: x.dtype == torch.float64,
    "contiguous inputs": lambda H, x: x.is_contiguous(),
    "not H = d": lambda H, x: x.shape[-1] != H * H,
}


@pytest.mark.parametrize("what", PARTLY_RIGHT)
def test_code_that_is_right_only_for_some_inputs_disagrees(what: str) -> None:
    def partly(d_model: int, num_heads: int, *tensors: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = reference(d_model, num_heads, *tensors)
        return out if PARTLY_RIGHT[what](num_heads, tensors[-1]) else out * 0.999

    for seed in SEEDS:
        found = disagreements(as_module(partly), seed)
        assert found
        assert len(found) < len(trial(seed))


WRONG: dict[str, Callable[[torch.Tensor], Any]] = {
    "float32": lambda out: out.float(),
    "rounded to float32": lambda out: out.float().double(),
    "detached": lambda out: out.detach(),
    "an array": lambda out: out.detach().numpy(),
    "nothing": lambda out: None,
    "a tuple": lambda out: (out, None),
    "one axis more": lambda out: out[None],
    "not a number": lambda out: out * float("nan"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_result_that_is_not_what_was_asked_for_disagrees(what: str) -> None:
    changed = as_module(lambda *given: WRONG[what](reference(*given)))
    assert disagreements(changed, SEEDS[0])


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_gradient_that_does_not_arrive_is_missing_and_named(name: str) -> None:
    place = ("q_proj_weight", "k_proj_weight", "v_proj_weight", "o_proj_weight", "in_features").index(name)

    def without(d_model: int, num_heads: int, *tensors: torch.Tensor) -> Any:
        given = [tensor.detach() if i == place else tensor for i, tensor in enumerate(tensors)]
        return reference(d_model, num_heads, *given)

    for there in disagreements(as_module(without), SEEDS[0]).values():
        assert [finding.says for finding in there] == [f"the gradient of {name}"]


def test_a_function_that_answers_differently_the_second_time_disagrees() -> None:
    calls: list[int] = []

    def tired(*given: Any) -> Any:
        calls.append(1)
        return reference(*given) * (1 if len(calls) % 2 else 1.01)

    for there in disagreements(as_module(tired), SEEDS[0]).values():
        assert [finding.name for finding in there] == ["again"]


def test_an_exception_is_told_by_its_kind() -> None:
    def raising(*given: Any) -> Any:
        raise KeyError("x")

    found = disagreements(as_module(raising), SEEDS[0])
    assert len(found) == len(trial(SEEDS[0]))
    assert {there[0].difference.actual for there in found.values()} == {"KeyError"}


# --- what is tried, and what is given away ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_cases_of_every_seed_cover_what_the_criterion_names(seed: int) -> None:
    cases = live.cases(seed)
    shapes = [case["arrays"]["in_features"].shape for case in cases]
    heads = [case["params"]["num_heads"] for case in cases]
    assert set(heads) == set(range(1, 9))
    assert {len(shape) for shape in shapes} == {2, 3, 4, 5}
    assert len({shape[-2] for shape in shapes}) >= 4
    assert {case["arrays"]["in_features"].dtype.name for case in cases} == {"float32", "float64"}
    assert {case["params"]["layout"] for case in cases} == {"contiguous", "swapped", "strided", "offset"}
    assert {case["params"]["turned"] for case in cases} == {True, False}


def test_the_same_seed_gives_the_same_cases_and_another_seed_others() -> None:
    ORACLE.check_seeds()


def test_cases_are_plain_and_say_nothing_of_what_is_expected() -> None:
    for case in live.cases(1):
        json.dumps({name: value for name, value in case.items() if name != "arrays"}, allow_nan=False)
        assert set(case["arrays"]) == {*ARGUMENTS, "cotangent"}
        assert case["says"].startswith("with ")


def test_driving_leaves_a_case_as_it_was() -> None:
    ORACLE.check_left_alone(unit23.module("m32"))


@pytest.mark.parametrize("layout", ["swapped", "strided", "offset"])
def test_another_layout_has_the_same_numbers_in_another_order(layout: str) -> None:
    array = np.arange(24.0).reshape(2, 3, 4)
    laid = live._laid(array, layout)
    assert np.array_equal(laid, array)
    assert not torch.from_numpy(laid).is_contiguous()


def test_the_driver_holds_nothing_that_computes_attention() -> None:
    ORACLE.check_driver("softmax", "_head_by_head", "einsum")
