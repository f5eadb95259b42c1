"""The course tests of multi-head attention on torch: a student's mha.py comes in, thirteen verdicts come out.

Each test says above its name why it exists, what kind it is, which planted faults it catches, and what part of the unit
treats the matter. Values are float64 and compared by the unit's criterion (agree.py) with a loop over heads
(per_head.py), with torch's own attention, or with numbers that were computed beforehand.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from agree import SNAPSHOT_ATOL, SNAPSHOT_RTOL, assert_agrees, difference
from mha import run_multihead_self_attention
from per_head import loop_over_heads
from torch import Tensor
from torch.overrides import TorchFunctionMode

WEIGHTS = ("q_proj_weight", "k_proj_weight", "v_proj_weight", "o_proj_weight")
ROLES = "q, k and v weights are [D, D] with a row for each output, the o weight follows the merge"


# --- what the tests share ------------------------------------------------------------------------------------------


def drawn(shape: Sequence[int], seed: int) -> tuple[Tensor, list[Tensor]]:
    """An input [..., T, D] of about unit size, and four weights [D, D] that keep it; float64."""
    draw = np.random.default_rng(seed)
    D = shape[-1]
    limit = (3 / D) ** 0.5
    x = torch.from_numpy(draw.uniform(-1.7, 1.7, tuple(shape)))
    return x, [torch.from_numpy(draw.uniform(-limit, limit, (D, D))) for _ in WEIGHTS]


def attend(where: str, num_heads: int, weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """The student's function; an exception becomes a failure that says in which call."""
    __tracebackhide__ = True
    try:
        out = run_multihead_self_attention(x.shape[-1], num_heads, *weights, x)
    except Exception as error:
        raise AssertionError(f"The call with {where} raised {type(error).__name__}: {error}") from error
    assert isinstance(out, Tensor), f"The call with {where} returned {type(out).__name__} where a Tensor has to be."
    return out


def sizes(x: Tensor, num_heads: int) -> str:
    return f"in_features {list(x.shape)} and {num_heads} {'head' if num_heads == 1 else 'heads'}, {name_of(x.dtype)}"


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def leaves(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.detach().clone().requires_grad_() for tensor in tensors]


def gradients_of(out: Tensor, cotangent: Tensor, of: Sequence[Tensor], where: str) -> list[Tensor | None]:
    """Gradients of sum(out * cotangent), None for a leaf that is not reached."""
    __tracebackhide__ = True
    assert out.requires_grad, (
        f"The result of the call with {where} has no gradient, though inputs and weights ask for one. Compute with "
        "tensors throughout, without detach, .data, numpy or no_grad."
    )
    try:
        return list(torch.autograd.grad((out * cotangent).sum(), list(of), allow_unused=True))
    except Exception as error:
        raise AssertionError(f"backward of the call with {where} raised {type(error).__name__}: {error}") from error


def assert_gradients(where: str, num_heads: int, weights: Sequence[Tensor], x: Tensor, seed: int) -> None:
    """Inputs and all four weights against the loop over heads, under one random cotangent."""
    __tracebackhide__ = True
    own, other = leaves([x, *weights]), leaves([x, *weights])
    cotangent = torch.from_numpy(np.random.default_rng(seed).uniform(-1, 1, tuple(x.shape)))
    out = attend(where, num_heads, own[1:], own[0])
    expected = loop_over_heads(num_heads, other[1:], other[0])
    assert_agrees(out, expected, f"The output differs from a loop over heads ({where}).")
    wanted = torch.autograd.grad((expected * cotangent).sum(), other)
    found = gradients_of(out, cotangent, own, where)
    for name, actual, want in zip(("in_features", *WEIGHTS), found, wanted, strict=True):
        assert actual is not None, (
            f"The output agrees with a loop over heads, but no gradient reaches {name} ({where}). Some step leaves the "
            "graph: detach, .data, numpy, no_grad, or a tensor made anew from numbers."
        )
        assert_agrees(
            actual,
            want,
            f"The output agrees with a loop over heads, but the gradient of {name} does not ({where}). A step that "
            "leaves the graph on one of several paths loses part of it.",
        )


# --- numbers that were computed beforehand --------------------------------------------------------------------------


def golden(case: str) -> dict[str, Tensor]:
    with np.load(Path(os.environ["TINYLLM_FIXTURES"]) / "2.3" / "mha_torch.npz") as kept:
        prefix = f"{case}."
        return {
            name.removeprefix(prefix): torch.from_numpy(kept[name]) for name in kept.files if name.startswith(prefix)
        }


# WHY: Two sequences, three positions, two heads: small enough to follow every number through the layers by hand.
# KIND: golden
# CATCHES: s01 s02 s03 s04 s05 s06 m01 m02 m03 m04 m07 m08 m09 m10 m11 m12 m13 m14 m15 m16 m17 m18 m19 m20 m21 m22
# m23 m24 m25 m26 m27 m28 m29 m30 m31 m32
# CHAPTER: 2.3 closed-book case
def test_closed_book_case_with_two_heads() -> None:
    values = golden("closed")
    x, *weights = leaves([values["in_features"], *(values[name] for name in WEIGHTS)])
    where = "the closed-book case, B = 2, T = 3, D = 8, two heads, float64"
    out = attend(where, 2, weights, x)
    assert_agrees(
        out,
        values["out"],
        f"The output of {where} is wrong. In this order: project ({ROLES}), split D into [2, 4] and exchange T and "
        "H, scale by 1/sqrt(4), hide what comes later, softmax over the keys, exchange H and T back, merge, project.",
    )
    found = gradients_of(out, values["cotangent"], [x, *weights], where)
    for name, actual in zip(("in_features", *WEIGHTS), found, strict=True):
        assert actual is not None, f"The output of {where} is right, but no gradient reaches {name}."
        message = f"The output of {where} is right, but the gradient of {name} is not."
        assert_agrees(actual, values[f"grad.{name}"], message)


# WHY: The public test compares one float32 output with stored numbers, and so does this one, with numbers of ours.
# KIND: golden
# CATCHES: s01 s02 s03 s04 s05 s06 m01 m02 m03 m04 m07 m08 m09 m10 m11 m12 m13 m14 m15 m16 m17 m18 m19 m20 m21 m22
# CHAPTER: 2.3 practice
def test_forward_snapshot() -> None:
    values = golden("snapshot")
    x, weights = values["in_features"], [values[name] for name in WEIGHTS]
    where = sizes(x, 4)
    assert_agrees(
        attend(where, 4, weights, x),
        values["out"],
        f"The output for {where} differs from the stored one. Check first whether the comparisons in float64 pass: "
        "they say more.",
        SNAPSHOT_ATOL,
        SNAPSHOT_RTOL,
    )


# --- the criterion: float64, one and several heads -------------------------------------------------------------------


# WHY: Under the same weights a batch of heads has to give what a loop over heads gives, which has no layout to confuse.
# KIND: differential
# CATCHES: s01 s02 s03 s04 s05 s06 m01 m02 m03 m04 m07 m08 m09 m10 m11 m12 m13 m14 m15 m16 m17 m18 m19 m20 m21 m22
# m29 m30 m31 m32
# CHAPTER: 2.3 completion criterion
def test_outputs_agree_with_a_loop_over_heads() -> None:
    for num_heads, shape in ((1, (2, 5, 6)), (3, (2, 5, 12)), (4, (3, 7, 8))):
        x, weights = drawn(shape, seed=num_heads)
        where = sizes(x, num_heads)
        assert_agrees(
            attend(where, num_heads, weights, x),
            loop_over_heads(num_heads, weights, x),
            f"The output for {where} differs from a loop over heads with the same weights. With one head only the "
            "projections, scale, mask and softmax can be at fault; with several the split and the merge too.",
        )


# WHY: A layer learns through its gradients, and a right output does not show that each weight gets the right one.
# KIND: differential
# CATCHES: s01 s02 s03 s04 s05 s06 m01 m02 m03 m04 m07 m08 m09 m10 m11 m12 m13 m14 m15 m16 m17 m18 m19 m20 m21 m22
# m23 m24 m25 m26 m27 m28 m29 m30 m31 m32
# CHAPTER: 2.3 completion criterion
def test_gradients_agree_with_a_loop_over_heads() -> None:
    for num_heads, shape in ((1, (2, 4, 6)), (3, (2, 5, 12))):
        x, weights = drawn(shape, seed=10 + num_heads)
        assert_gradients(sizes(x, num_heads), num_heads, weights, x, seed=num_heads)


# WHY: Errors of layout and scale hide where sizes happen to be equal, and show when one of them changes.
# KIND: differential
# CATCHES: s01 s02 s03 s04 s05 s06 m01 m02 m03 m04 m07 m08 m09 m10 m11 m12 m13 m14 m15 m16 m17 m18 m19 m20 m21 m22
# m29 m30 m31 m32
# CHAPTER: 2.3 third outcome
def test_batch_length_and_head_count_may_change() -> None:
    for num_heads, shape in (
        (2, (1, 4, 8)),
        (2, (5, 4, 8)),
        (2, (2, 9, 8)),
        (8, (2, 4, 8)),
        (2, (2, 1, 8)),
        (6, (2, 3, 24)),
    ):
        x, weights = drawn(shape, seed=20 + sum(shape) + num_heads)
        where = sizes(x, num_heads)
        assert_agrees(
            attend(where, num_heads, weights, x),
            loop_over_heads(num_heads, weights, x),
            f"The output for {where} differs from a loop over heads. Take every size from the arguments, and compare "
            "with the sizes that do work: what changed between them is where to look.",
        )


# WHY: A slice or a transposed tensor has the same numbers in another order of memory; nothing may depend on that.
# KIND: property
# CATCHES: s01 s02 s03 s04 s05 s06 m01 m02 m03 m04 m05 m07 m08 m09 m10 m11 m12 m13 m14 m15 m16 m17 m18 m19 m20 m21
# m22 m23 m24 m25 m26 m27 m28 m29 m30 m31
# CHAPTER: 2.3 practice
def test_non_contiguous_inputs_and_weights() -> None:
    x, weights = drawn((2, 5, 12), seed=30)
    swapped = x.transpose(0, 1).contiguous().transpose(0, 1)
    strided = torch.stack([x, -x], dim=-1)[..., 0]
    turned = [weight.t().contiguous().t() for weight in weights]
    expected = loop_over_heads(3, weights, x)
    for what, other, theirs in (
        ("in_features with B and T swapped in memory", swapped, weights),
        ("in_features that is every second number of a larger tensor", strided, weights),
        ("weights stored by columns", x, turned),
    ):
        where = f"{what} ({sizes(other, 3)})"
        assert_agrees(
            attend(where, 3, theirs, other),
            expected,
            f"The output for {where} differs from that for the same numbers stored in order.",
        )
    assert_gradients(f"in_features with B and T swapped in memory ({sizes(x, 3)})", 3, weights, swapped, seed=31)


# WHY: The batch is whatever stands before T: nothing, one axis or several, each sequence on its own.
# KIND: property
# CATCHES: s01 s02 s03 s04 s05 s06 m01 m02 m03 m04 m06 m07 m08 m09 m10 m11 m12 m13 m14 m15 m16 m17 m18 m19 m20 m21
# m22 m29 m30 m31 m32
# CHAPTER: 2.3 practice
def test_any_number_of_leading_dimensions() -> None:
    x, weights = drawn((2, 3, 4, 6), seed=40)
    expected = loop_over_heads(2, weights, x)
    for given, want in ((x[0, 0], expected[0, 0]), (x[0], expected[0]), (x, expected), (x[None], expected[None])):
        where = sizes(given, 2)
        assert_agrees(
            attend(where, 2, weights, given),
            want,
            f"The output for {where} is wrong. in_features is [..., T, D]: count axes from the end, and keep those in "
            "front as they are.",
        )


# WHY: The criterion is float64's: a single step in float32 spoils it, and no shape tells.
# KIND: boundary
# CATCHES: s01 s02 s03 s04 s05 s06 m01 m02 m03 m04 m07 m08 m09 m10 m11 m12 m13 m14 m15 m16 m17 m18 m19 m20 m21 m22
# m29 m30 m31 m32
# CHAPTER: 2.3 completion criterion
def test_the_dtype_of_in_features_is_kept_throughout() -> None:
    x, weights = drawn((2, 6, 12), seed=45)
    where = sizes(x, 3)
    assert_agrees(
        attend(where, 3, weights, x),
        loop_over_heads(3, weights, x),
        f"The output for {where} does not have the exactness of float64.",
    )
    narrow, x = [weight.float() for weight in weights], x.float()
    out = attend(sizes(x, 3), 3, narrow, x)
    assert out.dtype == torch.float32, (
        f"The output for {sizes(x, 3)} is {name_of(out.dtype)}: the result has the dtype of in_features."
    )


# --- the attention core ---------------------------------------------------------------------------------------------


# WHY: torch's own attention is an independent second opinion on the core: scale, mask and softmax of each head.
# KIND: differential
# CATCHES: s01 s02 s03 s04 s05 s06 m01 m02 m03 m04 m07 m08 m09 m10 m11 m12 m13 m14 m15 m16 m17 m18 m21 m22 m29 m30
# CHAPTER: 2.3 fourth step
def test_the_core_agrees_with_scaled_dot_product_attention() -> None:
    for num_heads, shape in ((1, (2, 5, 6)), (3, (2, 6, 12))):
        x, weights = drawn(shape, seed=50 + num_heads)
        weights[3] = torch.eye(shape[-1], dtype=torch.float64)
        where = f"{sizes(x, num_heads)}, the o weight an identity"
        q, k, v = (
            (x @ weight.T).unflatten(-1, (num_heads, -1)).transpose(1, 2) for weight in weights[:3]
        )  # [B, H, T, d]
        heads = F.scaled_dot_product_attention(q, k, v, dropout_p=0.0, is_causal=True)
        assert_agrees(
            attend(where, num_heads, weights, x),
            torch.cat(list(heads.unbind(1)), dim=-1),
            f"With {where} the output is the heads side by side, and differs from torch's "
            "scaled_dot_product_attention with is_causal=True and dropout_p=0.0 on the same heads.",
        )


# WHY: A position that reads a later one knows the answer while training, and nothing afterwards.
# KIND: property
# CATCHES: s01 s02 s03 s05 s06 m01 m10 m11 m12 m13 m14 m31 m32
# CHAPTER: 2.3 third step
# SHOWS: s05
def test_the_future_is_never_read() -> None:
    x, weights = drawn((2, 6, 8), seed=60)
    before = attend(sizes(x, 2), 2, weights, x)
    for t in range(1, 6):
        changed = x.clone()
        changed[:, t:] = -2 * changed[:, t:] + 1
        after = attend(f"{sizes(x, 2)}, changed from position {t} on", 2, weights, changed)
        assert_agrees(
            after[:, :t],
            before[:, :t],
            f"in_features was changed from position {t} on, and the output before it changed too ({sizes(x, 2)}). "
            "Position t may read the positions 0 to t: hide the keys behind it before the softmax.",
        )
        found = difference(after[:, t], before[:, t])
        assert found is not None, (
            f"in_features was changed from position {t} on, and the output there stayed ({sizes(x, 2)}). Position t "
            "reads itself too: the diagonal is not hidden."
        )


# --- conduct --------------------------------------------------------------------------------------------------------


# WHY: Dropout inside a function is not switched off by eval(): two equal calls show whether some is left.
# KIND: property
# CATCHES: s02 s06 m11 m31 m32
# CHAPTER: 2.3 traps
# SHOWS: s02
def test_equal_calls_give_equal_results() -> None:
    x, weights = drawn((2, 12, 16), seed=70)
    where = sizes(x, 4)
    first = attend(where, 4, weights, x)
    torch.manual_seed(7)
    second = attend(where, 4, weights, x)
    assert_agrees(
        second,
        first.detach(),
        f"Two calls with the same {where} gave different results. Nothing may be random: functional dropout drops "
        "whatever the mode, unless its rate is 0 or training=False; nor may a call change what the next one sees.",
    )


# WHY: The caller goes on using the inputs and weights, so the numbers in them have to be there after the call.
# KIND: property
# CATCHES: s06 m31 m32
# CHAPTER: 2.3 practice
def test_arguments_are_left_as_they_were() -> None:
    x, weights = drawn((2, 4, 6), seed=80)
    names, given = ("in_features", *WEIGHTS), [x, *weights]
    kept = [tensor.clone() for tensor in given]
    attend(sizes(x, 3), 3, weights, x)
    for name, now, then in zip(names, given, kept, strict=True):
        assert torch.equal(now, then), (
            f"The call with {sizes(x, 3)} changed {name}. Operations that end in an underscore, +=, and .data write "
            "into the tensor they are given."
        )


# WHY: The layer is to be built; a call of torch's finished attention shows nothing about who wrote it.
# KIND: rule
# CATCHES: s06
# CHAPTER: 2.3 first outcome
def test_no_finished_attention_is_called() -> None:
    x, weights = drawn((2, 4, 8), seed=90)
    with trapped() as called:
        attend(f"{sizes(x, 2)} and torch's finished attention taken away", 2, weights, x)
    assert not called, (
        f"The call with {sizes(x, 2)} used {called[0]}. Write the split, the scores, the mask, the softmax and the "
        "merge yourself; only the tests may compare with it."
    )


FINISHED = ("scaled_dot_product", "multi_head_attention", "flex_attention", "transformer_encoder_layer_fwd")


@contextmanager
def trapped() -> Iterator[list[str]]:
    """Names of finished attention that is called inside; every such call raises, by whatever name it is reached."""
    __tracebackhide__ = True
    called: list[str] = []

    def trap(name: str) -> Callable[..., Any]:
        def raises(*args: Any, **kwargs: Any) -> Any:
            called.append(name)
            raise RuntimeError(f"{name} may not be used here")

        return raises

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(func, "__name__", "")
            if any(word in name for word in FINISHED):
                return trap(name)()
            return func(*args, **(kwargs or {}))

    places = (
        (F, "scaled_dot_product_attention"),
        (F, "multi_head_attention_forward"),
        (torch.nn.MultiheadAttention, "forward"),
    )
    kept = [getattr(owner, name) for owner, name in places]
    for owner, name in places:
        setattr(owner, name, trap("MultiheadAttention" if name == "forward" else name))
    try:
        with Watch():
            yield called
    finally:
        for (owner, name), original in zip(places, kept, strict=True):
            setattr(owner, name, original)
