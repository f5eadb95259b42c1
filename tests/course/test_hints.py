"""Every mutant has hints from vague to concrete without code, and the sizes they name are those that hide the fault."""

import re
import tomllib
import types
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from grader.units import load_course
from tests.course import hinted, variants
from tests.course.hinted import Sizes, configurations
from tinyllm.autograd.tensor import Tensor
from tinyllm.num.rng import PCG32

FILE = variants.COURSE / "mutants/L5.3/hints.toml"
MUTANTS = {mutant.id: mutant for mutant in load_course(variants.COURSE).units["L5.3"].mutants}
WRITTEN = tomllib.loads(FILE.read_text())
DISTINCT = {"B": 2, "H": 3, "Tq": 4, "Tk": 5, "dh": 6}

Seen = tuple[object, Sequence[NDArray[Any]]]  # shapes or the kind of error, and the numbers


# -- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_mutant_has_hints_of_its_own_beyond_the_first(mid: str) -> None:
    hinted.check_number(MUTANTS[mid], WRITTEN)


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_pitfall_begins_with_the_chapters_words_and_others_with_what_their_category_shares(mid: str) -> None:
    hinted.check_beginning(MUTANTS[mid], WRITTEN)


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_hint_names_its_section_of_the_chapter(mid: str) -> None:
    for hint in MUTANTS[mid].hints:
        assert re.search(r" \(L5\.3 section (2\.[1-5]|[34])\)$", hint) or hint.startswith("Use distinct sizes"), hint


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_hint_shows_no_code_of_the_reference_nor_of_the_mutant(mid: str) -> None:
    hinted.check_without_code(MUTANTS[mid], variants.REFERENCE.read_text(), variants.sources()[mid], r"np\.|F\.|self\.")


# -- sizes -----------------------------------------------------------------------------------------------------------


@cache
def module(name: str) -> types.ModuleType:
    made = types.ModuleType(f"mha_{name}")
    exec(compile(variants.sources()[name], name, "exec", dont_inherit=True), made.__dict__)
    return made


def observed(variant: types.ModuleType, sizes: Sizes) -> list[Seen]:
    """What tests see that call the module with these sizes: each time, shapes or an error, and numbers.

    Every weight, bias and input is random; masks differ between sequences, heads and queries.
    """
    B, H, Tq, Tk, dh = (sizes[name] for name in ("B", "H", "Tq", "Tk", "dh"))
    d = H * dh
    random = np.random.default_rng(0)
    mha = variant.MultiHeadAttention(d, H, rng=PCG32(0))
    for projection in (mha.q_proj, mha.k_proj, mha.v_proj, mha.out_proj):
        projection.weight.data[...] = random.normal(size=(d, d)) / 2
        bias = random.normal(size=d)
        if projection.bias is not None:
            projection.bias.data[...] = bias
    x_q, x_kv = (Tensor(random.normal(size=(B, T, d))) for T in (Tq, Tk))
    b, h, i, j = np.ogrid[:B, :H, :Tq, :Tk]
    per_head = (j == 0) | ((b + h + i + j) % 2 == 0)  # [B, H, Tq, Tk]; every query sees a key
    seen = []
    for mask in (None, per_head[0, 0], per_head[:, 0], per_head):
        seen += [_seen(mha.attend, x_q, x_kv, mask), _seen(mha.forward, x_q, x_kv, mask)]
    seen.append(_seen(mha.split_heads, x_q))
    seen.append(_seen(mha.merge_heads, Tensor(random.normal(size=(B, H, Tq, dh)))))
    return seen


def _seen(call: Callable[..., Any], *args: Any) -> Seen:
    try:
        result = call(*args)
    except Exception as error:
        return type(error), []
    numbers = [each.data for each in (result if isinstance(result, tuple) else (result,))]
    return [each.shape for each in numbers], numbers


@cache
def reference_saw() -> dict[str, list[Seen]]:
    return {said: observed(module("reference"), sizes) for said, sizes in (("", DISTINCT), *configurations(DISTINCT))}


def differences(mid: str, said: str, sizes: Sizes) -> tuple[bool, bool]:
    """Whether the mutant differs from the reference in shapes or errors, and whether it does in anything."""
    return hinted.differ(
        reference_saw()[said], observed(module(mid), sizes), partial(np.allclose, rtol=1e-4, atol=1e-5)
    )


@pytest.mark.parametrize("mid", MUTANTS)
def test_the_sizes_that_hide_a_fault_are_exactly_those_that_its_hint_names(mid: str) -> None:
    hinted.check_sizes(mid, WRITTEN, DISTINCT, differences)


def test_a_survivor_whose_sizes_may_have_been_equal_is_told_so_second() -> None:
    marked = hinted.told_of_sizes(MUTANTS, WRITTEN)
    assert {"s01", "s03", "s04", "s05", "m29"} <= marked
    assert "the query length (Tq) equals the key length (Tk)" in MUTANTS["m29"].hints[1]
