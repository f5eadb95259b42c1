"""The course tests of attention masks: a student's masks.py comes in, fifteen verdicts come out.

Each test says above its name why it exists, what kind it is, which planted faults it catches, and where the chapter
treats the matter. Expected masks are computed here position by position, or drawn.
"""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from _lib.close import assert_close
from numpy.typing import NDArray

from tinyllm.xfmr.masks import causal_mask, combine, padding_mask, sliding_window_mask, to_additive

Array = NDArray[Any]


# --- causal masks --------------------------------------------------------------------------------------------------


# WHY: Small enough to check by eye: True means "may attend", and a position may attend itself.
# KIND: unit
# CATCHES: s01 s02 m21
# SHOWS: s01 s02
# CHAPTER: L5.2 section 2
def test_causal_by_hand() -> None:
    same(
        mask_of("causal_mask(4)", causal_mask, 4),
        """
        #...
        ##..
        ###.
        ####
        """,
        "causal_mask(4) is not the lower triangle. True means that a query may attend a key: row i, the query, has "
        "True at the keys 0 to i, its own included.",
    )


# WHY: Queries and keys need not be equally many: a decoder with a cache asks for the last rows alone.
# KIND: property
# CATCHES: s01 s02 s03 m01 m02 m04 m21
# CHAPTER: L5.2 section 2
def test_causal_for_all_sizes_and_offsets() -> None:
    for Tq, Tk, q_offset in ((3, 5, 0), (5, 3, 0), (2, 6, 4), (1, 4, 2), (3, 4, 6), (1, 1, 0), (4, 2, 1), (2, 7, 1)):
        where = f"causal_mask({Tq}, {Tk}, q_offset={q_offset})"
        same(
            mask_of(where, causal_mask, Tq, Tk, q_offset=q_offset),
            [[j <= i + q_offset for j in range(Tk)] for i in range(Tq)],
            f"{where} should be [{Tq}, {Tk}] with True where key j is not after query i, which stands at position "
            f"i + {q_offset}. With q_offset = 0 the first query stands at the first key, however many keys there are.",
        )


# WHY: Self-attention has as many keys as queries; a default that also counts the cache makes a mask nobody asked for.
# KIND: unit
# CATCHES: s01 s02 s03 m01 m03 m04 m21
# CHAPTER: L5.2 section 2
def test_key_length_defaults_to_query_length() -> None:
    for q_offset in (0, 2):
        where = f"causal_mask(3, q_offset={q_offset})"
        same(
            mask_of(where, causal_mask, 3, q_offset=q_offset),
            [[j <= i + q_offset for j in range(3)] for i in range(3)],
            f"{where}, where Tk is not given, should be [3, 3]: as many keys as queries, whatever q_offset is.",
        )


# WHY: Text is generated one query at a time; each step has to see what it would see in one pass.
# KIND: property
# CATCHES: s03 m01 m02 m04 m08 m21
# SHOWS: s03
# CHAPTER: L5.2 section 2
def test_one_query_at_a_time_sees_the_same() -> None:
    T, window = 6, 3
    masks: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
        "causal_mask": (causal_mask, ()),
        "sliding_window_mask": (sliding_window_mask, (window,)),
    }
    for name, (function, rest) in masks.items():
        whole = mask_of(f"{name} of 6 queries and 6 keys", function, T, T, *rest)
        for t in range(T):
            one = mask_of(f"{name} of one query, q_offset={t}", function, 1, T, *rest, q_offset=t)
            same(
                one,
                whole[t : t + 1],
                f"{name} of one query with q_offset={t} and six keys is not row {t} of the mask of all six queries. "
                "q_offset is the position of the first query among the keys.",
            )


# --- windows -------------------------------------------------------------------------------------------------------


# WHY: A window of two is the query and the key before it; drawn, every way to be one off can be seen.
# KIND: unit
# CATCHES: s03 s04 m01 m05 m06 m07 m08
# SHOWS: s04
# CHAPTER: L5.2 section 3
def test_window_by_hand() -> None:
    same(
        mask_of("sliding_window_mask(5, 5, 2)", sliding_window_mask, 5, 5, 2),
        """
        #....
        ##...
        .##..
        ..##.
        ...##
        """,
        "sliding_window_mask(5, 5, 2) is wrong. A window of 2 holds two keys: the query's own and the one before it. "
        "No query sees a later key.",
    )
    same(
        mask_of("sliding_window_mask(2, 6, 3, q_offset=3)", sliding_window_mask, 2, 6, 3, q_offset=3),
        """
        .###..
        ..###.
        """,
        "sliding_window_mask(2, 6, 3, q_offset=3) is wrong. Its first query stands at position 3 and sees the keys 1, "
        "2 and 3.",
    )


# WHY: Two ends are known without drawing: the narrowest window is oneself, a wide one hides no past.
# KIND: boundary
# CATCHES: s03 s04 m01 m05 m06 m07 m08
# CHAPTER: L5.2 section 3
def test_narrowest_and_widest_window() -> None:
    same(
        mask_of("sliding_window_mask(4, 4, 1)", sliding_window_mask, 4, 4, 1),
        np.eye(4, dtype=bool),
        "sliding_window_mask(4, 4, 1) should let every query see itself alone: the window counts the own position.",
    )
    for Tq, Tk, q_offset in ((4, 4, 0), (2, 6, 3), (3, 5, 1)):
        for window in (Tk, 100):
            where = f"sliding_window_mask({Tq}, {Tk}, {window}, q_offset={q_offset})"
            same(
                mask_of(where, sliding_window_mask, Tq, Tk, window, q_offset=q_offset),
                [[j <= i + q_offset for j in range(Tk)] for i in range(Tq)],
                f"{where} should be the causal mask: a window as wide as all keys hides the future alone.",
            )


# --- padding -------------------------------------------------------------------------------------------------------


# WHY: Sequences of one batch end at different places, and what is behind their end must not be read.
# KIND: unit
# CATCHES: s05 s08 m09 m22 m28
# SHOWS: s05 s08
# CHAPTER: L5.2 section 4
def test_padding_by_hand() -> None:
    for lengths in ([2, 4, 0, 1], np.array([2, 4, 0, 1]), np.array([2, 4, 0, 1], dtype=np.int32)):
        same(
            mask_of("padding_mask of lengths 2, 4, 0 and 1 with T = 4", padding_mask, lengths, 4),
            """
            ##..
            ####
            ....
            #...
            """,
            "padding_mask([2, 4, 0, 1], 4) is wrong. Row b has True at the first lengths[b] positions, which are real, "
            "and False at the padding behind them; lengths may be a list or an array.",
        )


# --- combinations --------------------------------------------------------------------------------------------------


# WHY: A decoder's mask is causal and padding at once; the shapes differ, and or instead of and lets it read ahead.
# KIND: property
# CATCHES: s06 m10 m11
# SHOWS: s06
# CHAPTER: L5.2 section 5
def test_combine_allows_what_all_masks_allow() -> None:
    causal = np.tril(np.ones((3, 3), dtype=bool))
    padding = np.array([[True, True, False], [True, False, False], [True, True, True]])[:, None, :]  # [B, 1, Tk]
    window = np.triu(np.ones((3, 3), dtype=bool), -1)
    for what, masks in {
        "one mask": (causal,),
        "a causal and a padding mask": (causal, padding),
        "a padding and a causal mask": (padding, causal),
        "a causal, a padding and a window mask": (causal, padding, window),
        "a padding, a window and a causal mask": (padding, window, causal),
        "masks [Tk] and [Tq, 1]": (padding[1, 0], causal[:, 2:]),
        "masks [Tq, Tk] and [Tk]": (causal, padding[0, 0]),
    }.items():
        shape = np.broadcast_shapes(*(mask.shape for mask in masks))
        spread = [np.broadcast_to(mask, shape) for mask in masks]
        same(
            mask_of(f"combine of {what}", combine, *masks),
            np.array([all(mask[place] for mask in spread) for place in np.ndindex(*shape)]).reshape(shape),
            f"combine of {what} should be True exactly where all of them are. Shapes broadcast as numpy's do, "
            f"aligned at the last axis: here to {list(shape)}.",
        )


# WHY: This is what a decoder's layer gets for a padded batch; a fault in any part shows in the picture.
# KIND: snapshot
# CATCHES: s04 s05 s06 s08 m05 m06 m07 m09 m22
# CHAPTER: L5.2 section 5
def test_snapshot_of_a_padded_batch() -> None:
    where = "combine(sliding_window_mask(4, 4, 3), padding_mask([4, 2], 4)[:, None, :])"
    window = mask_of("sliding_window_mask(4, 4, 3)", sliding_window_mask, 4, 4, 3)
    padding = mask_of("padding_mask([4, 2], 4)", padding_mask, [4, 2], 4)
    expected = """
        #...  #...
        ##..  ##..
        ###.  ##..
        .###  .#..
        """
    rows = [line.split() for line in expected.split("\n") if line.strip()]
    assert padding.shape == (2, 4), f"padding_mask([4, 2], 4) should be [B, T] = [2, 4], got {list(padding.shape)}."
    same(
        mask_of(where, combine, window, padding[:, None, :]),
        np.array([[[mark == "#" for mark in row[b]] for row in rows] for b in range(2)]),
        f"{where} is not the picture: the first sequence has its window alone, the second padding from position 2.",
    )


# --- additive masks ------------------------------------------------------------------------------------------------


# WHY: Scores are of three dtypes in the course, and a mask of another one changes theirs.
# KIND: unit
# CATCHES: s07 m15 m16 m17 m18 m19 m20
# SHOWS: s07
# CHAPTER: L5.2 section 6
def test_additive_is_zero_or_minus_infinity() -> None:
    mask = np.array([[[True, False], [False, False]], [[True, True], [False, True]]])
    for dtype in (None, np.float16, np.float32, np.float64):
        where = "to_additive(mask)" if dtype is None else f"to_additive(mask, np.{np.dtype(dtype).name})"
        found = attempt(where, to_additive, mask) if dtype is None else attempt(where, to_additive, mask, dtype)
        additive(found, mask, np.dtype(dtype or np.float32), where)


# WHY: This is what masks are for: a hidden key has weight zero, and what others get still adds up to one.
# KIND: property
# CATCHES: s07 m15 m16 m17 m18 m20
# CHAPTER: L5.2 section 6
def test_hidden_keys_get_no_weight() -> None:
    draw = np.random.default_rng(2)
    allowed = np.array([[True, False, False, False], [True, True, False, True], [False, False, True, False]])
    for dtype in (np.float16, np.float32, np.float64):
        scores = (draw.standard_normal((3, 4)) * 5).astype(dtype)
        added = attempt(f"to_additive of a [3, 4] mask in {np.dtype(dtype).name}", to_additive, allowed, dtype)
        additive(added, allowed, np.dtype(dtype), "to_additive of a [3, 4] mask")
        weights = softmax((scores + added).astype(np.float64))
        assert np.all(weights[~allowed] == 0), (
            "Scores plus to_additive of a mask, then softmax: a key that the mask hides got a weight above 0. Only "
            "-inf makes it exactly 0."
        )
        kept = np.exp(scores.astype(np.float64)) * allowed
        assert_close(
            weights,
            kept / kept.sum(axis=-1, keepdims=True),
            "Scores plus to_additive of a mask, then softmax: the keys that the mask allows do not share the weight as "
            "their scores say. Where the mask is True, exactly 0 is added.",
        )


# --- golden values -------------------------------------------------------------------------------------------------


# WHY: torch builds the same masks another way, and its attention has to give the same weights under ours.
# KIND: golden
# CATCHES: s01 s02 s03 s04 s05 s06 s07 s08 m01 m05 m06 m07 m08 m09 m16 m17 m18 m20 m21 m22
# CHAPTER: L5.2 sections 2 to 6
def test_golden_torch() -> None:
    with np.load(Path(os.environ["TINYLLM_FIXTURES"]) / "L5.2" / "masks_torch.npz") as fixture:
        golden = {name: fixture[name] for name in fixture.files}
    lengths, T = golden["decoder.lengths"], golden["decoder.causal"].shape[0]
    causal = mask_of("causal_mask(5)", causal_mask, T)
    padding = mask_of("padding_mask([5, 3, 1], 5)", padding_mask, lengths, T)
    same(causal, golden["decoder.causal"], "causal_mask(5) differs from torch.tril of ones; True means may attend.")
    same(padding, golden["decoder.padding"], "padding_mask([5, 3, 1], 5) differs from torch's; True is no padding.")
    decoder = mask_of("combine of these, padding as [B, 1, T]", combine, causal, padding[:, None, :])
    same(
        decoder,
        golden["decoder.mask"],
        "combine(causal_mask(5), padding_mask([5, 3, 1], 5)[:, None, :]) is not torch's.",
    )
    where = "sliding_window_mask(3, 7, 3, q_offset=4)"
    window = mask_of(where, sliding_window_mask, 3, 7, 3, q_offset=4)
    same(
        window, golden["window.mask"], f"{where} differs from torch's tril and triu of ones, three queries behind four."
    )
    for case, mask in (("decoder", decoder), ("window", window)):
        added = attempt(f"to_additive of the {case} mask in float64", to_additive, mask, np.float64)
        additive(added, golden[f"{case}.mask"], np.dtype(np.float64), f"to_additive of the {case} mask")
        assert_close(
            softmax(golden[f"{case}.scores"] + added),
            golden[f"{case}.weights"],
            f"Under the {case} mask, made additive, torch's scores do not give the weights of torch's attention.",
        )


# --- what is left alone, and what is refused -----------------------------------------------------------------------


# WHY: A layer that edits its mask must not edit the next layer's: results belong to whoever asked for them.
# KIND: property
# CATCHES: m12 m13 m14 m15
# CHAPTER: L5.2 section 7
def test_results_belong_to_the_caller() -> None:
    mask, other, lengths = np.tril(np.ones((3, 3), dtype=bool)), np.ones((2, 1, 3), dtype=bool), np.array([2, 3])
    calls: dict[str, Callable[[], Any]] = {
        "causal_mask(3)": lambda: causal_mask(3),
        "sliding_window_mask(3, 3, 2)": lambda: sliding_window_mask(3, 3, 2),
        "padding_mask(lengths, 3)": lambda: padding_mask(lengths, 3),
        "combine(mask)": lambda: combine(mask),
        "combine(mask, mask)": lambda: combine(mask, mask),
        "combine(mask, np.eye(3, dtype=bool))": lambda: combine(mask, np.eye(3, dtype=bool)),
        "combine(mask, other)": lambda: combine(mask, other),
        "to_additive(mask)": lambda: to_additive(mask),
    }
    given = [mask, other, lengths]
    before = [array.copy() for array in given]
    for where, call in calls.items():
        first = attempt(where, call)
        kept = np.array(first)
        assert all(map(np.array_equal, given, before)), (
            f"{where} changed one of its arguments. Masks are used again by every layer: work on a copy."
        )
        attempt(f"writing into the result of {where}", first.__setitem__, Ellipsis, 0)
        assert all(map(np.array_equal, given, before)), (
            f"Writing into the result of {where} changed one of its arguments: it returned that array or a view of it. "
            "Return a new array."
        )
        assert np.array_equal(attempt(where, call), kept, equal_nan=True), (
            f"Writing into the result of {where} changed what the next equal call returns. Return a new array."
        )


# WHY: numpy takes numbers for masks and answers wrong sizes; refused loudly, they are found where they are made.
# KIND: boundary
# CATCHES: m02 m04 m08 m23 m24 m25 m26 m27 m29 m30
# CHAPTER: L5.2 section 7
def test_validation() -> None:
    true = np.ones((2, 2), dtype=bool)
    must_refuse(
        [
            ("causal_mask(0)", lambda: causal_mask(0)),
            ("causal_mask(-2)", lambda: causal_mask(-2)),
            ("causal_mask(2, 0)", lambda: causal_mask(2, 0)),
            ("causal_mask(2, -1)", lambda: causal_mask(2, -1)),
            ("causal_mask(2, 2, q_offset=-1)", lambda: causal_mask(2, 2, q_offset=-1)),
            ("sliding_window_mask(0, 2, 1)", lambda: sliding_window_mask(0, 2, 1)),
            ("sliding_window_mask(2, 0, 1)", lambda: sliding_window_mask(2, 0, 1)),
            ("sliding_window_mask(2, 2, 0)", lambda: sliding_window_mask(2, 2, 0)),
            ("sliding_window_mask(2, 2, -1)", lambda: sliding_window_mask(2, 2, -1)),
            ("sliding_window_mask(2, 2, 1, q_offset=-1)", lambda: sliding_window_mask(2, 2, 1, q_offset=-1)),
            ("padding_mask([1], 0)", lambda: padding_mask([1], 0)),
            ("padding_mask([1], -1)", lambda: padding_mask([1], -1)),
            ("a length above T", lambda: padding_mask([1, 4], 3)),
            ("a negative length", lambda: padding_mask([1, -1], 3)),
            ("a length of 1.5", lambda: padding_mask([1.5], 3)),
            ("lengths of two axes", lambda: padding_mask([[1, 2]], 3)),
            ("lengths of no axis", lambda: padding_mask(2, 3)),
            ("combine of a float mask", lambda: combine(np.ones((2, 2)))),
            ("combine of a bool and an int mask", lambda: combine(true, np.ones((2, 2), dtype=np.int64))),
            ("combine of a float and a bool mask", lambda: combine(np.ones((2, 2)), true)),
            ("combine of [2, 2] and [3, 3]", lambda: combine(true, np.ones((3, 3), dtype=bool))),
            ("to_additive of an int mask", lambda: to_additive(np.ones((2, 2), dtype=np.int64))),
            ("to_additive of a float mask", lambda: to_additive(np.zeros((2, 2)))),
        ]
    )


# WHY: The smallest sizes and the longest lengths are sizes too: what refuses too much stops a batch of one token.
# KIND: boundary
# CATCHES: s01 s02 s05 s08 m06 m21 m22 m28
# CHAPTER: L5.2 section 7
def test_smallest_sizes_are_accepted() -> None:
    one = np.ones((1, 1), dtype=bool)
    for where, function, arguments, expected in (
        ("causal_mask(1)", causal_mask, (1,), one),
        ("causal_mask(1, 1, 0)", causal_mask, (1, 1, 0), one),
        ("sliding_window_mask(1, 1, 1)", sliding_window_mask, (1, 1, 1), one),
        ("padding_mask([1], 1)", padding_mask, ([1], 1), one),
        ("padding_mask([0], 1)", padding_mask, ([0], 1), ~one),
        ("padding_mask([3, 3], 3)", padding_mask, ([3, 3], 3), np.ones((2, 3), dtype=bool)),
    ):
        found = mask_of(where, function, *arguments)
        same(
            found,
            expected,
            f"{where} should be {'all True' if expected.all() else 'all False'}: these sizes are legal.",
        )


# --- what the tests share ------------------------------------------------------------------------------------------


def attempt(what: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of the call; an exception becomes a failure that says what was being done."""
    __tracebackhide__ = True
    try:
        return call(*args, **kwargs)
    except Exception as error:
        line = str(error).splitlines()[0][:200] if str(error) else "no message"
        line = re.sub(r"0x[0-9a-fA-F]{6,}", "0x…", line)  # addresses differ from run to run
        raise AssertionError(f"{what} should work, but raised {type(error).__name__}: {line}.") from error


def mask_of(what: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The bool array that the call returns."""
    __tracebackhide__ = True
    result = attempt(what, call, *args, **kwargs)
    assert type(result) is np.ndarray, f"{what} should return a numpy array, got {type(result).__name__}."
    assert result.dtype == np.bool_, (
        f"{what} should be a bool array, got dtype {result.dtype}: ~ and & of numbers mean something else."
    )
    return result


def same(mask: Any, expected: Any, message: str) -> None:
    """A bool array has to equal the expected one, which may be drawn: # is True, . is False."""
    __tracebackhide__ = True
    if isinstance(expected, str):
        expected = [[mark == "#" for mark in line.strip()] for line in expected.split("\n") if line.strip()]
    assert_close(mask, np.array(expected, dtype=bool), f"{message} 1 stands for True, 0 for False.")


def additive(found: Any, mask: Array, dtype: np.dtype[Any], where: str) -> None:
    """`found` has to be 0 where the mask is True and -inf where it is False, of the dtype."""
    __tracebackhide__ = True
    assert type(found) is np.ndarray, f"{where} should return a numpy array, got {type(found).__name__}."
    assert found.dtype == dtype, (
        f"{where} should be of dtype {dtype}, which is asked for or the default; got {found.dtype}."
    )
    assert found.shape == mask.shape, f"{where} should keep the shape {list(mask.shape)}, got {list(found.shape)}."
    assert not np.isnan(found).any(), f"{where} holds NaN: 0 times infinity is none of both. Choose between 0 and -inf."
    assert np.all(found[mask] == 0), f"{where} should be 0 where the mask is True, got {float(found[mask].min())}."
    assert np.all(found[~mask] == -np.inf), (
        f"{where} should be -inf where the mask is False, got {float(found[~mask].max())}. A large finite number is "
        "not the same: a query whose keys are all hidden would attend them all."
    )


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def must_refuse(cases: Iterable[tuple[str, Callable[[], Any]]]) -> None:
    """Each call has to raise ValueError; one failure lists all that do not."""
    __tracebackhide__ = True
    wrong = []
    for what, call in cases:
        try:
            call()
        except ValueError:
            continue
        except Exception as error:
            wrong.append(f"{what} (raised {type(error).__name__})")
        else:
            wrong.append(f"{what} (accepted)")
    assert not wrong, f"These should raise ValueError and do not: {'; '.join(wrong)}."
