"""The unit's oracle agrees with every correct mha.py, disagrees with every wrong one, and gives nothing away."""

import copy
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from grader.comparator import findings, worst_closeness
from tests.course import variants
from tests.course.oracled import Case, Oracle, module_of
from tinyllm.num.rng import PCG32
from tinyllm.prob.rv import normal

SEEDS = (0, 5_3, 2**53 - 1)
MANY_SEEDS = range(100, 130)
MUTANTS = [row["mid"] for row in variants.manifest()]
CORRECT = [name for name in variants.sources() if name not in MUTANTS]

ORACLE = Oracle("L5.3")
live, trial, disagreements = ORACLE.live, ORACLE.trial, ORACLE.disagreements
unit = cache(lambda name: module_of(name, variants.sources()[name]))


def attended(seed: int) -> list[Case]:
    return [case for case in live.cases(seed) if case["kind"] == "attend"]


# --- verdicts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CORRECT)
def test_correct_code_agrees(name: str) -> None:
    for seed in SEEDS:
        assert disagreements(unit(name), seed) == {}


@pytest.mark.parametrize("mid", MUTANTS)
def test_every_mutant_disagrees_whatever_the_seed(mid: str) -> None:
    for seed in SEEDS:
        assert disagreements(unit(mid), seed), f"seed {seed}"


@pytest.mark.full
@pytest.mark.parametrize("name", CORRECT)
def test_correct_code_agrees_with_room_to_spare_on_many_seeds(name: str) -> None:
    for seed in MANY_SEEDS:
        assert disagreements(unit(name), seed) == {}
        worst = max(worst_closeness(live.drive(unit(name), case), expected) for case, expected in trial(seed))
        assert worst < 0.4, "honest rounding comes near the tolerance: some seed will reject correct code"


@pytest.mark.full
@pytest.mark.parametrize("mid", MUTANTS)
def test_every_mutant_disagrees_on_many_seeds(mid: str) -> None:
    for seed in MANY_SEEDS:
        assert disagreements(unit(mid), seed), f"seed {seed}"


def right_only_when(condition: Callable[[Any, Any, Any, Any], bool]) -> Any:
    """The reference where condition(module, x_q, x_kv, mask) holds; elsewhere an output of the right shape."""
    reference = unit("reference").MultiHeadAttention

    class Partly(reference):  # type: ignore[misc,valid-type]
        def attend(self, x_q: Any, x_kv: Any, mask: Any = None) -> Any:
            out, weights = super().attend(x_q, x_kv, mask)
            return (out, weights) if condition(self, x_q, x_kv, mask) else (out * 0.999, weights)

    module = ModuleType("partly")
    module.MultiHeadAttention = Partly  # type: ignore[attr-defined]
    return module


PARTLY_RIGHT = {
    "two heads": lambda m, q, k, mask: m.n_heads == 2,
    "up to two heads": lambda m, q, k, mask: m.n_heads <= 2,
    "not seven heads": lambda m, q, k, mask: m.n_heads != 7,
    "up to six positions": lambda m, q, k, mask: max(q.shape[1], k.shape[1]) <= 6,
    "up to sixteen positions": lambda m, q, k, mask: max(q.shape[1], k.shape[1]) <= 16,
    "more than one query or key": lambda m, q, k, mask: min(q.shape[1], k.shape[1]) > 2,
    "one sequence": lambda m, q, k, mask: q.shape[0] == 1,
    "equal lengths": lambda m, q, k, mask: q.shape[1] == k.shape[1],
    "self-attention": lambda m, q, k, mask: q is k,
    "cross-attention": lambda m, q, k, mask: q is not k,
    "biases": lambda m, q, k, mask: m.q_proj.bias is not None,
    "no biases": lambda m, q, k, mask: m.q_proj.bias is None,
    "float32": lambda m, q, k, mask: q.dtype == np.float32,
    "float64": lambda m, q, k, mask: q.dtype == np.float64,
    "eval": lambda m, q, k, mask: not m.training,
    "training": lambda m, q, k, mask: m.training,
    "no mask": lambda m, q, k, mask: mask is None,
    "masks without an axis of heads": lambda m, q, k, mask: mask is None or mask.ndim < 4,
    "masks without an axis of sequences": lambda m, q, k, mask: mask is None or mask.ndim != 3,
    "no query without keys": lambda m, q, k, mask: mask is None or mask.any(axis=-1).all(),
    "contiguous inputs": lambda m, q, k, mask: q.data.flags.c_contiguous,
    "not B = H": lambda m, q, k, mask: q.shape[0] != m.n_heads,
    "B = H": lambda m, q, k, mask: q.shape[0] == m.n_heads,
}


def without_bias_by_default() -> Any:
    class Odd(unit("reference").MultiHeadAttention):  # type: ignore[misc]
        def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0, bias: bool = False, rng: Any = None):
            super().__init__(d_model, n_heads, dropout, bias, rng)

    return Odd


def with_float_masks_in_head_mask() -> Any:
    class Odd(unit("reference").MultiHeadAttention):  # type: ignore[misc]
        def head_mask(self, mask: Any, *sizes: int) -> Any:
            return mask if mask is not None and mask.dtype.kind == "f" else super().head_mask(mask, *sizes)

        def attend(self, x_q: Any, x_kv: Any, mask: Any = None) -> Any:
            if mask is not None and mask.dtype.kind == "f":
                raise ValueError
            return super().attend(x_q, x_kv, mask)

    return Odd


@pytest.mark.parametrize("make", [without_bias_by_default, with_float_masks_in_head_mask])
def test_code_that_is_right_but_for_one_rule_disagrees(make: Callable[[], Any]) -> None:
    module = ModuleType("odd")
    module.MultiHeadAttention = make()  # type: ignore[attr-defined]
    for seed in SEEDS:
        assert len(disagreements(module, seed)) == 1


@pytest.mark.parametrize("what", PARTLY_RIGHT)
def test_code_that_is_right_only_for_some_inputs_disagrees(what: str) -> None:
    module = right_only_when(PARTLY_RIGHT[what])
    for seed in SEEDS:
        found = disagreements(module, seed)
        assert found
        assert len(found) < len(trial(seed))


@pytest.mark.full
@pytest.mark.parametrize("what", PARTLY_RIGHT)
def test_code_that_is_right_only_for_some_inputs_disagrees_on_many_seeds(what: str) -> None:
    module = right_only_when(PARTLY_RIGHT[what])
    for seed in MANY_SEEDS:
        assert disagreements(module, seed), f"seed {seed}"


def test_code_that_remembers_every_answer_of_one_seed_disagrees_on_another() -> None:
    remembered: set[bytes] = set()
    reference = unit("reference").MultiHeadAttention

    class Remembering(reference):  # type: ignore[misc,valid-type]
        def attend(self, x_q: Any, x_kv: Any, mask: Any = None) -> Any:
            out, weights = super().attend(x_q, x_kv, mask)
            if self.learning:
                remembered.add(x_q.data.tobytes())
            return (out, weights) if x_q.data.tobytes() in remembered else (out * 0, weights)

    module: Any = ModuleType("remembering")
    module.MultiHeadAttention = Remembering
    Remembering.learning = True
    assert disagreements(module, SEEDS[0]) == {}
    Remembering.learning = False
    assert disagreements(module, SEEDS[0]) == {}
    assert disagreements(module, SEEDS[1])


def returning(change: Callable[[Any], Any]) -> Any:
    """The reference with its output's array changed after the gradients' graph was made."""
    reference = unit("reference").MultiHeadAttention

    class Changed(reference):  # type: ignore[misc,valid-type]
        def attend(self, x_q: Any, x_kv: Any, mask: Any = None) -> Any:
            out, weights = super().attend(x_q, x_kv, mask)
            out.data = change(out.data)
            return out, weights

    module: Any = ModuleType("changed")
    module.MultiHeadAttention = Changed
    return module


class Equal:
    def __eq__(self, other: object) -> bool:
        return True


@pytest.mark.parametrize(
    "change",
    [
        lambda out: np.full_like(out, np.nan),
        lambda out: np.full_like(out, np.inf),
        lambda out: np.zeros((), out.dtype),
        lambda out: out[:0],
        lambda out: out[None],
        lambda out: out.astype(np.float16),
        lambda out: out.astype(out.dtype.newbyteorder(">")),
        lambda out: out.astype(object),
        lambda out: out + 0j,
        lambda out: Equal(),
        lambda out: None,
        lambda out: "nothing",
    ],
)
def test_what_is_no_finite_array_of_the_right_kind_disagrees(change: Callable[[Any], Any]) -> None:
    found = disagreements(returning(change), SEEDS[0])
    assert set(found) == {case["id"] for case in attended(SEEDS[0])}


@pytest.mark.parametrize("error", [ValueError, TypeError, ZeroDivisionError, MemoryError, StopIteration])
def test_an_exception_where_there_should_be_an_answer_is_named(error: type[Exception]) -> None:
    def fail(out: Any) -> Any:
        raise error("\x1b[31mhello")

    found = disagreements(returning(fail), SEEDS[0])
    told = {there[0].difference.actual for there in found.values()}
    assert told == {error.__name__ if error.__name__ in live.OUTCOMES else "another exception"}


def test_a_gradient_of_the_keys_bias_may_be_missing_or_zero_but_not_another() -> None:
    case, expected = next((c, e) for c, e in trial(0) if "grad.k_proj.bias" in e)
    result = live.drive(unit("reference"), case)
    assert findings(result, expected) == ()
    for allowed in ({}, {"grad.k_proj.bias": np.zeros_like(result["grad.k_proj.bias"])}):
        rest = {name: array for name, array in result.items() if name != "grad.k_proj.bias"}
        assert findings(rest | allowed, expected) == ()
    wrong = result | {"grad.k_proj.bias": np.full_like(result["grad.k_proj.bias"], 0.1)}
    assert [finding.name for finding in findings(wrong, expected)] == ["grad.k_proj.bias"]
    missing = {name: array for name, array in result.items() if name != "grad.q_proj.bias"}
    assert [finding.name for finding in findings(missing, expected)] == ["grad.q_proj.bias"]


# --- cases ---------------------------------------------------------------------------------------------------------


def test_a_seed_makes_the_same_cases_again_and_another_seed_others() -> None:
    def told(seed: int) -> list[Any]:
        return [
            (
                {key: value for key, value in case.items() if key != "arrays"},
                {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in case["arrays"].items()},
            )
            for case in live.cases(seed)
        ]

    assert told(7) == told(7)
    one, other = told(7), told(8)
    assert [case["kind"] for case, _ in one] == [case["kind"] for case, _ in other]
    for (case, mine), (_, theirs) in zip(one, other, strict=True):
        if case["kind"] == "attend":
            assert mine["x_q"] != theirs["x_q"]


@pytest.mark.parametrize("seed", SEEDS)
def test_cases_cover_what_the_design_asks_for(seed: int) -> None:
    cases = live.cases(seed)
    assert len(cases) >= 40
    assert len({case["id"] for case in cases}) == len(cases)
    assert len({case["says"] for case in cases}) >= len(cases) - 2, "a description tells its case from the others"
    found = attended(seed)
    assert {case["params"]["n_heads"] for case in found} == set(range(1, 9))
    x_q, x_kv = (
        [case["arrays"]["x_q"] for case in found],
        [case["arrays"].get("x_kv", case["arrays"]["x_q"]) for case in found],
    )
    sizes = [(*q.shape[:2], k.shape[1]) for q, k in zip(x_q, x_kv, strict=True)]
    assert {B for B, _, _ in sizes} == {1, 2, 3, 4}
    assert min(min(Tq, Tk) for _, Tq, Tk in sizes) == 1
    assert max(max(Tq, Tk) for _, Tq, Tk in sizes) == 17
    assert {Tq < Tk for _, Tq, Tk in sizes if Tq != Tk} == {True, False}
    assert {case["params"]["layout"] for case in found} == set(live.LAYOUTS)
    assert {case["params"]["bias"] for case in found} == {True, False}
    assert {case["arrays"]["x_q"].dtype.name for case in found} == {"float32", "float64"}
    assert {mode for case in found for mode, _ in case["params"]["calls"]} == {"eval", "train"}
    masks = [case["arrays"].get("mask") for case in found]
    assert {None if mask is None else mask.ndim for mask in masks} == {None, 2, 3, 4}
    assert any(mask is not None and not mask.any(axis=-1).all() for mask in masks)
    refused = [case for case in cases if case["kind"] == "refused" or case["params"].get("refused")]
    assert len(refused) >= 30


@pytest.mark.parametrize("seed", SEEDS)
def test_cases_are_json_and_plain_arrays(seed: int) -> None:
    for case in live.cases(seed):
        assert set(case) == {"id", "kind", "says", "params", "arrays"}
        rest = {key: value for key, value in case.items() if key != "arrays"}
        assert json.loads(json.dumps(rest, allow_nan=False)) == rest
        for name, array in case["arrays"].items():
            assert type(array) is np.ndarray, name
            assert array.dtype.name in live.RETURNED
            assert array.dtype.isnative


def test_cases_hold_nothing_that_was_expected_of_the_unit() -> None:
    inputs = {"x", "x_q", "x_kv", "mask", "weight", "bias", "cotangent", "cotangent.0", "cotangent.1", "cotangent.2"}
    for case, expected in trial(SEEDS[0]):
        assert set(case["arrays"]) <= inputs | set(live.NAMES)
        given = [array for _, array in case["arrays"].items()]
        for name, what in expected.items():
            if name.startswith(("out.", "grad.x_", "grad.q_proj", "grad.v_proj", "grad.out_proj")) and what.array.any():
                assert not any(a.shape == what.array.shape and np.allclose(a, what.array) for a in given), name


def test_cotangents_say_nothing_about_the_expected_output() -> None:
    """A cotangent made from expected minus actual would give the answer away."""
    pairs = [
        (case["arrays"]["cotangent.0"].ravel(), expected["out.0"].array.ravel())
        for case, expected in trial(SEEDS[0])
        if case["kind"] == "attend"
    ]
    cotangents, outputs = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
    assert len(cotangents) > 5000
    assert abs(np.corrcoef(cotangents, outputs)[0, 1]) < 0.06


# --- expected and returned values ----------------------------------------------------------------------------------


def test_expected_values_are_plain_and_finite_and_say_what_they_are() -> None:
    for case in live.cases(SEEDS[1]):
        for name, what in live.expected(case).items():
            assert set(what) == {"array", "rtol", "atol", "scaled", "says", "optional", "values"}
            assert what["array"].dtype.name in live.RETURNED
            assert np.isfinite(what["array"]).all()
            assert what["says"], name
            rest = {key: value for key, value in what.items() if key != "array"}
            json.dumps(rest, allow_nan=False)


def test_torchs_module_and_the_formula_are_two_sources_that_agree() -> None:
    import torch

    compared = 0
    for case in attended(SEEDS[2]):
        arrays, params = case["arrays"], case["params"]
        leaves = {name: torch.tensor(array, dtype=torch.float64) for name, array in arrays.items() if name != "mask"}
        x_q, x_kv = leaves["x_q"], leaves.get("x_kv", leaves["x_q"])
        B, Tq, Tk = x_q.shape[0], x_q.shape[1], x_kv.shape[1]
        mask = live._full_mask(arrays["mask"], B, params["n_heads"], Tq, Tk) if "mask" in arrays else None
        if mask is not None and not mask.any(axis=-1).all():
            continue
        one = live._by_module(leaves, x_q, x_kv, mask, params)
        other = live._by_formula(leaves, x_q, x_kv, mask, None, params)
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-13)
        compared += 1
    assert compared >= 15


def test_random_numbers_of_the_oracle_are_those_of_the_contract() -> None:
    words = live._pcg32(42, 54)
    assert [next(words), next(words)] == [0xA15C02B7, 0x7B47F409]
    np.testing.assert_allclose(live._normal(live._init_stream(0), 2), [-0.809237, 0.054875], atol=1e-6)
    for purpose in ("init", "dropout"):
        stream = live._substream(0, purpose)
        np.testing.assert_array_equal([next(stream) for _ in range(50)], PCG32(0).substream(purpose).uniforms(50))
    np.testing.assert_allclose(live._normal(live._init_stream(3), 5), normal(PCG32(3), 5), rtol=1e-15)
    factor = live._dropout_factor(0.25, 4, (1, 2, 3, 1))
    drawn = PCG32(0).substream("dropout").uniforms(10)[4:].reshape(1, 2, 3, 1)
    np.testing.assert_array_equal(factor, (drawn >= 0.25) / 0.75)


def test_drive_returns_allowed_dtypes_alone_and_leaves_the_case_as_it_was() -> None:
    for case in live.cases(SEEDS[1]):
        before = copy.deepcopy(case)
        for array in case["arrays"].values():
            array.flags.writeable = False  # as arrays made from received bytes are
        result = live.drive(unit("w01"), case)
        for name, array in result.items():
            assert type(array) is np.ndarray, name
            assert array.dtype.name in live.RETURNED
            assert array.flags.c_contiguous
        for name, array in before["arrays"].items():
            np.testing.assert_array_equal(case["arrays"][name], array)


def test_code_that_changes_its_inputs_disagrees() -> None:
    def changing(what: str) -> Any:
        reference = unit("reference").MultiHeadAttention

        class Changing(reference):  # type: ignore[misc,valid-type]
            def attend(self, x_q: Any, x_kv: Any, mask: Any = None) -> Any:
                result = super().attend(x_q, x_kv, mask)
                if what == "x_kv":
                    x_kv.data[...] = 0
                elif what == "mask" and mask is not None:
                    mask[...] = False
                elif what == "weight":
                    self.k_proj.weight.data *= 2
                return result

        module: Any = ModuleType("changing")
        module.MultiHeadAttention = Changing
        return module

    for what in ("x_kv", "mask", "weight"):
        found = disagreements(changing(what), SEEDS[0])
        said = {finding.says for there in found.values() for finding in there}
        assert any("after the call" in text for text in said), what


# --- two sides -----------------------------------------------------------------------------------------------------


def run_without(missing: str, script: str) -> None:
    """Run a script where this package cannot be imported."""
    prelude = f"""
        import sys
        from types import ModuleType
        sys.modules[{missing!r}] = None
        live = ModuleType("live")
        exec(compile(open({str(ORACLE.file)!r}).read(), "live.py", "exec"), live.__dict__)
        loaded = {{name.partition(".")[0] for name in sys.modules}}
        assert not loaded & ({{"torch", "tinyllm"}} - {{{missing!r}}}), loaded
    """
    code = textwrap.dedent(prelude) + textwrap.dedent(script)
    subprocess.run([sys.executable, "-c", code], check=True, cwd=variants.ROOT)


def test_sandbox_side_needs_no_torch() -> None:
    run_without(
        "torch",
        """
        sys.path.insert(0, ".")
        import tinyllm.xfmr.mha as unit
        assert all("outcome" in live.drive(unit, case) for case in live.cases(1))
        """,
    )


def test_trusted_side_needs_no_tinyllm() -> None:
    run_without("tinyllm", "assert all(live.expected(case) for case in live.cases(1))")
