"""Every mutant of unit L5.2 has hints from vague to concrete without code, the sizes they name are those that hide the
fault, and whoever does what the last one says catches the mutant and accepts all correct code."""

import re
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.course import hinted
from tests.course.hinted import Sizes, configurations
from tests.course.whole import MASKS

MUTANTS = {mutant.id: mutant for mutant in MASKS.unit.mutants}
CORRECT = [name for name in MASKS.sources if name not in MUTANTS]
WRITTEN = tomllib.loads((MASKS.course / "mutants/L5.2/hints.toml").read_text())
DISTINCT = {"B": 2, "Tq": 4, "Tk": 6, "window": 3}

Array = NDArray[Any]
Seen = tuple[object, Sequence[Array]]  # shape, dtype and what is left of the arguments, or the kind of error; numbers


# -- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_mutant_has_hints_of_its_own_beyond_the_first(mid: str) -> None:
    hinted.check_number(MUTANTS[mid], WRITTEN)


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_pitfall_begins_with_its_own_words_and_others_with_what_their_category_shares(mid: str) -> None:
    hinted.check_beginning(MUTANTS[mid], WRITTEN)


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_hint_names_its_section_of_the_chapter(mid: str) -> None:
    for hint in MUTANTS[mid].hints:
        assert re.search(r" \(L5\.2 section [2-7]\)$", hint) or hint.startswith("Use distinct sizes"), hint


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_hint_shows_no_code_of_the_reference_nor_of_the_mutant(mid: str) -> None:
    hinted.check_without_code(MUTANTS[mid], MASKS.reference.read_text(), MASKS.sources[mid], r"np\.|numpy\.")


# -- sizes -----------------------------------------------------------------------------------------------------------


def observed(name: str, sizes: Sizes) -> list[Seen]:
    """What tests see that call a variant with these sizes: queries at the first key and three keys later, sequences of
    different lengths in two orders, masks of every shape that is combined in the chapter."""
    masks = MASKS.module(name)
    B, Tq, Tk, window = (sizes[size] for size in ("B", "Tq", "Tk", "window"))
    lengths = np.minimum([1, 0, 2, 3, 4, 5][:B], Tk)
    swapped = np.minimum([0, 1, 3, 2, 5, 4][:B], Tk)
    b, i, j = np.ogrid[:B, :Tq, :Tk]
    each = (b + i + 2 * j) % 3 > 0  # [B, Tq, Tk]
    keys = (j <= b + 1)[:, 0]  # [B, Tk]
    seen = [_seen(masks.padding_mask, lengths, Tk), _seen(masks.padding_mask, swapped, Tk)]
    for q_offset in (0, 3):
        seen.append(_seen(masks.causal_mask, Tq, Tk, q_offset))
        seen.append(_seen(masks.sliding_window_mask, Tq, Tk, window, q_offset))
    checks = (i + j) % 2 == 0  # [1, Tq, Tk]
    for given in ((each[0], keys[0]), (each[0], keys[:, None, :]), (each, keys[:, None, :], checks)):
        seen.append(_seen(masks.combine, *given))
    seen.append(_seen(masks.to_additive, each, np.float64))
    return seen


def _seen(call: Callable[..., Any], *given: Any) -> Seen:
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in given]
    try:
        result = call(*copies)
    except Exception as error:
        return type(error), []
    return (result.shape, result.dtype), [result, *(each for each in copies if isinstance(each, np.ndarray))]


@cache
def reference_saw(said: str) -> list[Seen]:
    return observed("reference", {"": DISTINCT, **dict(configurations(DISTINCT))}[said])


def differences(mid: str, said: str, sizes: Sizes) -> tuple[bool, bool]:
    """Whether the mutant differs from the reference in shape, dtype or error, and whether it does in anything."""
    return hinted.differ(reference_saw(said), observed(mid, sizes), np.array_equal)


@pytest.mark.parametrize("mid", MUTANTS)
def test_the_sizes_that_hide_a_fault_are_exactly_those_that_its_hint_names(mid: str) -> None:
    hinted.check_sizes(mid, WRITTEN, DISTINCT, differences)


def test_a_survivor_whose_sizes_may_have_been_equal_is_told_so_second() -> None:
    assert {"m02", "m04", "m11"} <= hinted.told_of_sizes(MUTANTS, WRITTEN)


# -- the last hint, as a test ------------------------------------------------------------------------------------------


def true(*shape: int) -> Array:
    return np.ones(shape, dtype=bool)


def causal(n: int) -> Array:
    return np.tril(true(n, n))


def refused(call: Callable[..., Any], *given: Any, **named: Any) -> None:
    with pytest.raises(ValueError):
        call(*given, **named)


def equal(found: Array, expected: Any) -> None:
    assert np.array_equal(found, np.array(expected))


def unchanged(call: Callable[..., Any], *given: Array) -> None:
    before = [each.copy() for each in given]
    call(*given)
    assert all(map(np.array_equal, given, before))


def hidden_is_infinite(masks: Any) -> None:
    assert (masks.to_additive(causal(3), np.float64)[~causal(3)] == -np.inf).all()


def result_is_its_own(masks: Any) -> None:
    mask = causal(3)
    masks.combine(mask)[...] = False
    equal(mask, causal(3))


def next_result_is_whole(masks: Any) -> None:
    masks.causal_mask(3)[...] = False
    equal(masks.causal_mask(3), causal(3))


def shortest_and_longest(masks: Any) -> None:
    equal(masks.padding_mask([0, 2], 2), [[False, False], [True, True]])


def narrowest(masks: Any) -> None:
    refused(masks.sliding_window_mask, 2, 2, 0)
    masks.sliding_window_mask(2, 2, 1)


def numbers_refused(masks: Any) -> None:
    refused(masks.combine, true(2, 2), np.eye(2, dtype=int))
    refused(masks.combine, np.eye(2, dtype=int), true(2, 2))


CHECKS: dict[str, Callable[[Any], None]] = {
    "s01": lambda masks: equal(masks.causal_mask(3), causal(3)),
    "s02": lambda masks: equal(masks.causal_mask(4).diagonal(), [True] * 4),
    "s03": lambda masks: equal(masks.causal_mask(2, 4, 2), masks.causal_mask(4)[2:]),
    "s04": lambda masks: equal(masks.sliding_window_mask(6, 6, 3)[-1].sum(), 3),
    "s05": lambda masks: equal(masks.padding_mask([0], 3), [[False] * 3]),
    "s06": lambda masks: equal(masks.combine(causal(3), np.array([False, True, True]))[0], [False] * 3),
    "s07": hidden_is_infinite,
    "s08": lambda masks: equal(masks.padding_mask([1, 3], 3), [[True, False, False], [True] * 3]),
    "m01": lambda masks: equal(masks.causal_mask(1, 4, 2).sum(), 3),
    "m02": lambda masks: equal(masks.causal_mask(2, 5).shape, (2, 5)),
    "m03": lambda masks: equal(masks.causal_mask(3, q_offset=2).shape, (3, 3)),
    "m04": lambda masks: equal(masks.causal_mask(2, 5)[0], [True, False, False, False, False]),
    "m05": lambda masks: equal(masks.sliding_window_mask(3, 3, 2)[0], [True, False, False]),
    "m06": lambda masks: equal(masks.sliding_window_mask(3, 3, 2).diagonal(), [True] * 3),
    "m07": lambda masks: equal(masks.sliding_window_mask(4, 4, 2)[3, 0], False),
    "m08": lambda masks: equal(masks.sliding_window_mask(1, 5, 2, 3)[0], [False, False, True, True, False]),
    "m09": lambda masks: equal(masks.padding_mask([1], 3)[0, [0, 2]], [True, False]),
    "m10": lambda masks: equal(masks.combine(true(2, 2), true(2, 2), causal(2)), causal(2)),
    "m11": lambda masks: equal(masks.combine(true(3, 3), np.array([False, True, True]))[:, 0], [False] * 3),
    "m12": lambda masks: unchanged(masks.combine, causal(3), ~true(3, 3)),
    "m13": result_is_its_own,
    "m14": next_result_is_whole,
    "m15": lambda masks: unchanged(masks.to_additive, causal(3)),
    "m16": hidden_is_infinite,
    "m17": lambda masks: equal(masks.to_additive(true(2, 2)), np.zeros((2, 2))),
    "m18": lambda masks: equal(masks.to_additive(causal(2), np.float64).dtype == np.float64, True),
    "m19": lambda masks: equal(masks.to_additive(causal(2)).dtype == np.float32, True),
    "m20": hidden_is_infinite,
    "m21": lambda masks: equal(masks.causal_mask(2).dtype == np.bool_, True),
    "m22": lambda masks: equal(masks.padding_mask([1, 2], 3).dtype == np.bool_, True),
    "m23": lambda masks: refused(masks.causal_mask, 2, 0),
    "m24": lambda masks: refused(masks.causal_mask, 2, 2, q_offset=-1),
    "m25": narrowest,
    "m26": lambda masks: refused(masks.padding_mask, [1, 4], 3),
    "m27": lambda masks: refused(masks.padding_mask, [1, -1], 3),
    "m28": shortest_and_longest,
    "m29": numbers_refused,
    "m30": lambda masks: refused(masks.to_additive, np.ones((2, 2))),
    "m31": lambda masks: refused(masks.causal_mask, 0, 2),
    "m32": lambda masks: equal(masks.combine(causal(3)), causal(3)),
}


@pytest.mark.parametrize("mid", MUTANTS)
def test_the_last_hint_catches_its_mutant_and_accepts_every_correct_implementation(mid: str) -> None:
    for name in CORRECT:
        CHECKS[mid](MASKS.module(name))
    with pytest.raises((Exception, pytest.fail.Exception)):  # a test that ends in any error has caught it
        CHECKS[mid](MASKS.module(mid))
