"""Every mutant of unit L5.1 has hints from vague to concrete without code, and the sizes they name are those that hide
the fault."""

import tomllib
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.course import hinted
from tests.course.hinted import Sizes, configurations
from tests.course.whole import SDPA
from tinyllm.autograd.tensor import Tensor
from tinyllm.num.rng import PCG32

MUTANTS = {mutant.id: mutant for mutant in SDPA.unit.mutants}
WRITTEN = tomllib.loads((SDPA.course / "mutants/L5.1/hints.toml").read_text())
DISTINCT = {"B": 2, "Tq": 3, "Tk": 5, "d": 4, "dv": 6}

Seen = tuple[object, list[NDArray[Any]]]  # shapes and dtypes, or the kind of error; and the numbers


# -- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_mutant_has_hints_of_its_own_beyond_the_first(mid: str) -> None:
    hinted.check_number(MUTANTS[mid], WRITTEN)


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_pitfall_begins_with_its_own_words_and_others_with_what_their_category_shares(mid: str) -> None:
    hinted.check_beginning(MUTANTS[mid], WRITTEN)


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_hint_shows_no_code_of_the_reference_nor_of_the_mutant(mid: str) -> None:
    hinted.check_without_code(MUTANTS[mid], SDPA.reference.read_text(), SDPA.sources[mid], r"np\.|swapaxes")


# -- sizes -----------------------------------------------------------------------------------------------------------


def observed(name: str, sizes: Sizes) -> list[Seen]:
    """What tests see that call the three functions with these sizes: each time, shapes and dtypes or an error, and
    numbers. Every array is random and of float64; masks differ between sequences and queries."""
    sdpa = SDPA.module(name)
    B, Tq, Tk, d, dv = (sizes[letter] for letter in ("B", "Tq", "Tk", "d", "dv"))
    random = np.random.default_rng(0)
    q, k, v, dout = (random.normal(size=(B, *shape)) for shape in ((Tq, d), (Tk, d), (Tk, dv), (Tq, dv)))
    b, i, j = np.ogrid[:B, :Tq, :Tk]
    each = (j == 0) | ((b + i + j) % 2 == 0)  # [B, Tq, Tk]; every query sees a key
    p = random.dirichlet(np.ones(Tk), size=(B, Tq))
    mult = np.round(random.uniform(0, 2, size=(B, Tq, Tk)), 1)
    seen = []
    for mask, scale in ((None, None), (each[0], None), (each, 0.3), (each & (i > 0), None)):
        arrays = [array.copy() for array in (q, k, v)]
        seen.append(_seen(sdpa.sdpa_forward, *arrays, mask, scale))
    for scale, factor in ((None, None), (0.3, mult)):
        seen.append(_seen(sdpa.sdpa_backward, *(array.copy() for array in (q, k, v, p, dout)), scale, factor))
    for mask, rate, scale in ((None, 0.0, None), (each, 0.4, None), (None, 0.4, 0.3), (None, 1.0, None)):
        seen.append(_seen(_through_the_graph, sdpa, (q, k, v), dout, mask, rate, scale))
    for wrong in (np.ones((Tk, Tq), dtype=bool), np.ones((Tq, Tk)), np.ones((7, B, Tq, Tk), dtype=bool)):
        seen.append(_seen(sdpa.sdpa_forward, q.copy(), k, v, wrong))
    return seen


def _through_the_graph(
    sdpa: Any, arrays: tuple[NDArray[Any], ...], dout: NDArray[Any], mask: Any, rate: float, scale: Any
) -> list[Any]:
    leaves = [Tensor(array, requires_grad=True, dtype=np.float64) for array in arrays]
    rng = PCG32(3)
    out, weights = sdpa.scaled_dot_product_attention(*leaves, mask, rate, scale, rng)
    out.backward(dout)
    gradients = [np.zeros(1) if leaf.grad is None else leaf.grad for leaf in leaves]
    return [out.data, weights.data, *gradients, np.array([rng.uniform()]), np.array([weights.requires_grad])]


def _seen(call: Callable[..., Any], *args: Any) -> Seen:
    with np.errstate(all="ignore"):
        try:
            results = call(*args)
        except Exception as error:
            return type(error), []
    after = [arg for arg in args if isinstance(arg, np.ndarray)]
    return [(each.shape, each.dtype) for each in results], [*results, *after]


@cache
def reference_saw(said: str) -> list[Seen]:
    return observed("reference", {"": DISTINCT, **dict(configurations(DISTINCT))}[said])


def differences(mid: str, said: str, sizes: Sizes) -> tuple[bool, bool]:
    """Whether the mutant differs from the reference in shapes or errors, and whether it does in anything."""
    return hinted.differ(reference_saw(said), observed(mid, sizes), partial(np.allclose, rtol=1e-9, atol=1e-11))


@pytest.mark.parametrize("mid", MUTANTS)
def test_the_sizes_that_hide_a_fault_are_exactly_those_that_its_hint_names(mid: str) -> None:
    hinted.check_sizes(mid, WRITTEN, DISTINCT, differences)


def test_a_survivor_whose_sizes_may_have_been_equal_is_told_so_second() -> None:
    marked = hinted.told_of_sizes(MUTANTS, WRITTEN)
    assert {"s01", "m19", "m24"} <= marked
