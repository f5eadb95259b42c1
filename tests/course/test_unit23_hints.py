"""Every mutant of unit 2.3 has hints from vague to concrete without code, and the sizes they name are those that hide
the fault."""

import tomllib
from collections.abc import Sequence
from functools import cache

import pytest
import torch
from torch import Tensor

from tests.course import hinted, unit23
from tests.course.hinted import Sizes, configurations

MUTANTS = {mutant.id: mutant for mutant in unit23.unit().mutants}
WRITTEN = tomllib.loads((unit23.COURSE / "mutants/2.3/hints.toml").read_text())
DISTINCT = {"B": 2, "H": 3, "T": 4, "d": 5}

Seen = tuple[object, Sequence[Tensor]]  # a shape or the kind of error, and the numbers


# -- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_mutant_has_hints_of_its_own_beyond_the_first(mid: str) -> None:
    hinted.check_number(MUTANTS[mid], WRITTEN)


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_trap_begins_with_its_own_words_and_others_with_what_their_category_shares(mid: str) -> None:
    hinted.check_beginning(MUTANTS[mid], WRITTEN)


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_hint_shows_no_code_of_the_reference_nor_of_the_mutant(mid: str) -> None:
    hinted.check_without_code(MUTANTS[mid], unit23.REFERENCE.read_text(), unit23.sources()[mid], r"torch\.|F\.")


# -- sizes -----------------------------------------------------------------------------------------------------------


def observed(name: str, sizes: Sizes) -> Seen:
    """What a test sees that calls a variant with these sizes and goes backward: the output, the gradients, and the
    arguments afterwards; in float64, contiguous, with one batch axis."""
    B, H, T, d = (sizes[letter] for letter in ("B", "H", "T", "d"))
    random = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64).requires_grad_()

    x, weights = drawn(B, T, H * d), [drawn(H * d, H * d) for _ in range(4)]
    try:
        out = unit23.module(name).run_multihead_self_attention(H * d, H, *weights, x)
        cotangent = torch.randn(out.shape, generator=random, dtype=torch.float64)
        grads = torch.autograd.grad((out * cotangent).sum(), [x, *weights], allow_unused=True)
    except Exception as error:
        return type(error), []
    numbers = [torch.zeros(1) if grad is None else grad for grad in grads]
    return (out.shape, out.dtype), [out, *numbers, x, *weights]


@cache
def reference_saw(said: str) -> Seen:
    return observed("reference", {"": DISTINCT, **dict(configurations(DISTINCT))}[said])


def differences(mid: str, said: str, sizes: Sizes) -> tuple[bool, bool]:
    """Whether the mutant differs from the reference in shape, dtype or error, and whether it does in anything."""
    ours, theirs = reference_saw(said), observed(mid, sizes)
    shapes = ours[0] != theirs[0]
    numbers = shapes or any(
        mine.shape != other.shape or not torch.allclose(mine, other, rtol=1e-6, atol=1e-8)
        for mine, other in zip(ours[1], theirs[1], strict=True)
    )
    return shapes, numbers


@pytest.mark.parametrize("mid", MUTANTS)
def test_the_sizes_that_hide_a_fault_are_exactly_those_that_its_hint_names(mid: str) -> None:
    hinted.check_sizes(mid, WRITTEN, DISTINCT, differences)


def test_a_survivor_whose_sizes_may_have_been_equal_is_told_so_second() -> None:
    marked = hinted.told_of_sizes(MUTANTS, WRITTEN)
    assert {"s01", "s04", "s06", "m02", "m09"} <= marked
