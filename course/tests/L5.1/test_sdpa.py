"""The course tests of scaled dot-product attention: a student's sdpa.py comes in, sixteen verdicts come out.

Each test says above its name why it exists, what kind it is, which planted faults it catches, and where the chapter
treats the matter. Expected values are computed here from the formulas, one query at a time, in float64.
"""

import math
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from _lib.close import assert_close as agree
from _lib.gradcheck import gradient_difference
from _lib.pcg import PCG32
from numpy.typing import NDArray

from tinyllm.autograd.mode import no_grad
from tinyllm.autograd.tensor import Tensor
from tinyllm.xfmr.sdpa import scaled_dot_product_attention, sdpa_backward, sdpa_forward

Array = NDArray[Any]

# What the last two axes of compared arrays are called in a report.
WEIGHTS = "query key"
OUTPUT = "query feature"
GRADIENT = "position feature"


# --- values by hand and by torch -----------------------------------------------------------------------------------

# Two queries, two keys, d = 4, dv = 3.
QUERIES = np.array([[2, 0, 0, 0], [0, 2, 0, 4]], dtype=np.float32)
KEYS = np.array([[1, 0, 5, 0], [0, 3, 0, 1]], dtype=np.float32)
VALUES = np.array([[1, 0, 2], [0, 1, 4]], dtype=np.float32)


# WHY: Small enough to check on paper: if this fails, the scale or the axis of the softmax differs from the text.
# KIND: unit
# CATCHES: s01 s02 m01 m02 m30
# CHAPTER: L5.1 section 3
def test_hand_example() -> None:
    out, weights = forward(QUERIES, KEYS, VALUES)
    first = sigmoid(2 / math.sqrt(4))  # the first query scores its keys 2 and 0, over sqrt(d)
    second = sigmoid(-10 / math.sqrt(4))  # the second scores them 0 and 10
    assert_close(
        weights,
        np.array([[first, 1 - first], [second, 1 - second]], dtype=np.float32),
        "The weights of the worked example (two queries, two keys, d = 4, dv = 3) are wrong. A query's scores are its "
        "dot products with the keys, divided by sqrt(d) = 2; softmax makes the scores of each query add up to 1.",
        axes=WEIGHTS,
    )
    assert_close(
        out,
        np.array([[first, 1 - first, 4 - 2 * first], [second, 1 - second, 4 - 2 * second]], dtype=np.float32),
        "The weights of the worked example are right but the output is not: each query's row is the values, mixed by "
        "its weights.",
        axes=OUTPUT,
    )


# WHY: Numbers typed in once tell on the first run whether forward and backward mean the same as the text.
# KIND: snapshot
# CATCHES: s01 s02 s03 s07 m01 m02 m04 m05 m06 m08 m09 m10 m11 m24 m25 m32 m33
# CHAPTER: L5.1 section 4
def test_snapshot() -> None:
    q = np.array([[0.5, -1.0, 2.0], [1.5, 0.0, -0.5]])
    k = np.array([[1.0, 0.5, 0.0], [-0.5, 1.0, 1.5], [0.0, -1.0, 0.5], [2.0, 0.0, 1.0]])
    v = np.array([[1.0, -2.0], [0.5, 3.0], [-1.0, 1.0], [2.5, 0.0]])
    mask = np.array([[True, True, True, False], [True, False, True, True]])
    dout = np.array([[1.0, -0.5], [0.5, 2.0]])
    weights = np.array(
        [[0.144515544797, 0.396926073022, 0.458558382182, 0.0], [0.317924691717, 0.0, 0.115752184476, 0.566323123806]]
    )
    expected = {
        "weights": weights,
        "output": np.array([[-0.115579800874, 1.360305511653], [1.617980316757, -0.520097198958]]),
        "gradient of q": np.array(
            [[0.256670502189, 0.256275433802, -0.163443520044], [0.368609013454, -0.41569572415, 0.542152426521]]
        ),
        "gradient of k": np.array(
            [
                [-0.783367851537, -0.233264989556, 0.76653009455],
                [-0.023405512633, 0.046811025266, -0.093622050532],
                [0.080316430923, 0.18645396429, -0.430755732935],
                [0.726456933248, 0.0, -0.242152311083],
            ]
        ),
        "gradient of v": np.array(
            [
                [0.303477890655, 0.563591611036],
                [0.396926073022, -0.198463036511],
                [0.51643447442, 0.002225177862],
                [0.283161561903, 1.132646247613],
            ]
        ),
    }
    out, p = forward(q, k, v, mask)
    found = dict(zip(expected, (p, out, *backward(q, k, v, p, dout)), strict=True))
    for name, array in expected.items():
        worst = float(np.max(np.abs(shaped(name, found[name], array.shape) - array)))
        assert worst <= 1e-10, (
            f"The {name} of two queries and four keys (d = 3, dv = 2, float64, a [Tq, Tk] mask) should be the numbers "
            f"printed in this test; the largest difference is {worst:.3g}."
        )


# WHY: Weights trained with torch have to mean the same here; an error in any part shows in some number.
# KIND: golden
# CATCHES: s01 s02 s03 s07 m01 m02 m03 m04 m05 m06 m07 m08 m09 m10 m11 m24 m25 m26 m32 m33
# CHAPTER: L5.1 sections 2.1 to 2.3
def test_golden_torch() -> None:
    with np.load(Path(os.environ["TINYLLM_FIXTURES"]) / "L5.1" / "sdpa_torch.npz") as fixture:
        golden = {name: fixture[name] for name in fixture.files}
    cases = {
        "plain": "q [2, 3, 4, 6], k [2, 3, 5, 6], v [2, 3, 5, 2], no mask",
        "causal": "q [2, 5, 3], k [2, 5, 3], v [2, 5, 4], a causal [Tq, Tk] mask",
        "padding": "q [2, 2, 3, 4], k [2, 2, 6, 4], v [2, 2, 6, 5], a [B, 1, 1, Tk] mask, scale = 0.3",
        "flat": "q [2, 5], k [3, 5], v [3, 4], no mask",
    }
    for case, said in cases.items():
        where = f"{said}, float64"
        values = {name.partition(".")[2]: array for name, array in golden.items() if name.startswith(f"{case}.")}
        q, k, v, mask = values["q"], values["k"], values["v"], values.get("mask")
        scale = float(values["scale"]) if "scale" in values else None
        out, weights = forward(q, k, v, mask, scale)
        assert_close(
            weights,
            values["weights"],
            f"The weights differ from torch's ({where}). Look at the scale 1/sqrt(d), which a given scale replaces, at "
            "the axis of the softmax, and at the mask: True = may attend.",
            axes=WEIGHTS,
        )
        assert_close(
            out, values["out"], f"The weights agree with torch but the output does not ({where}).", axes=OUTPUT
        )
        gradients = backward(q, k, v, values["weights"], values["cotangent"], scale)
        for name, gradient in zip("qkv", gradients, strict=True):
            assert_close(
                gradient,
                values[f"grad.{name}"],
                f"The output agrees with torch but sdpa_backward's gradient of {name} does not ({where}).",
                axes=GRADIENT,
            )
        leaves = tensors(q, k, v)
        attended, _ = attend(*leaves, mask=mask, scale=scale)
        assert_close(
            attended.data,
            values["out"],
            f"sdpa_forward agrees with torch but scaled_dot_product_attention does not ({where}).",
            axes=OUTPUT,
        )
        attempt(f"backward of scaled_dot_product_attention ({where})", attended.backward, values["cotangent"])
        for name, leaf in zip("qkv", leaves, strict=True):
            assert_close(
                gradient_of(name, leaf),
                values[f"grad.{name}"],
                f"sdpa_backward agrees with torch but the gradient that {name} gets from backward() does not "
                f"({where}). The node has to hand on mask, scale and weights of its own forward pass.",
                axes=GRADIENT,
            )


# --- the forward pass ----------------------------------------------------------------------------------------------


# WHY: The formula again, one query at a time: batched code that mixes queries or sequences cannot follow it.
# KIND: differential
# CATCHES: s01 s02 m01 m02 m32
# CHAPTER: L5.1 section 2.1
# SHOWS: s02
def test_forward_is_the_formula_query_by_query() -> None:
    for leading in ((), (3,), (2, 2)):
        q, k, v = inputs(leading, Tq=2, Tk=4, d=3, dv=5)
        expected_out, expected = attention(q, k, v)
        out, weights = forward(q, k, v)
        where = f"leading sizes {list(leading)}, two queries, four keys, d = 3, dv = 5, float64"
        assert_close(
            weights, expected, f"The weights are not softmax(q k^T / sqrt(d)), query by query ({where}).", axes=WEIGHTS
        )
        assert_close(
            out, expected_out, f"The weights are right but the output is not weights times v ({where}).", axes=OUTPUT
        )


# WHY: Dot products of d terms grow with sqrt(d); the scale takes that away, or is what the caller says.
# KIND: property
# CATCHES: s01 s02 s07 m01 m02 m03 m04 m05 m06 m07 m24 m25 m26 m32 m33
# CHAPTER: L5.1 section 2.1
# SHOWS: s01
def test_scale_is_one_over_root_d_or_the_one_given() -> None:
    q, k, v = inputs((2,), Tq=3, Tk=4, d=9, dv=2)
    default = forward(q, k, v)[1]
    given = forward(q, k, v, scale=1 / 3)[1]
    assert_close(
        default, given, "With d = 9 the default scale should be 1/sqrt(9) = 1/3, whatever dv and Tk are.", axes=WEIGHTS
    )
    p = attention(q, k, v, scale=0.7)[1]
    assert_close(
        forward(q, k, v, scale=0.7)[1],
        p,
        "A scale that is given (0.7, with d = 9) should replace 1/sqrt(d).",
        axes=WEIGHTS,
    )
    dout = numbers(9, (2, 3, 2))
    expected = gradients_by_jacobian(q, k, v, p, dout, 0.7)
    for name, found, right in zip("qkv", backward(q, k, v, p, dout, 0.7), expected, strict=True):
        assert_close(
            found,
            right,
            f"sdpa_backward's gradient of {name} is wrong under a given scale of 0.7 (d = 9).",
            axes=GRADIENT,
        )
    for scale in (0.7, None):
        leaves = tensors(q, k, v)
        attended, weights = attend(*leaves, scale=scale)
        right = attention(q, k, v, scale=scale)[1]
        assert_close(
            weights.data, right, f"scaled_dot_product_attention's weights are wrong for scale = {scale}.", axes=WEIGHTS
        )
        attempt(f"backward with scale = {scale}", attended.backward, dout)
        expected = gradients_by_jacobian(q, k, v, right, dout, scale)
        for name, leaf, gradient in zip("qkv", leaves, expected, strict=True):
            assert_close(
                gradient_of(name, leaf),
                gradient,
                f"The gradient of {name} through scaled_dot_product_attention is wrong for scale = {scale} (d = 9): "
                "the backward pass needs the scale of the forward pass.",
                axes=GRADIENT,
            )


# WHY: Scores of trained models are large, and exp of them is not a number: softmax has to shift them first.
# KIND: boundary
# CATCHES: s02 s03 s05 m08 m09 m10
# CHAPTER: L5.1 section 2.2
# SHOWS: s05
def test_large_scores_do_not_overflow() -> None:
    q, k, v = (array.astype(np.float32) for array in inputs((2,), Tq=3, Tk=4, d=4, dv=2))
    q *= 400
    mask = np.array([True, True, True, False])
    for sign in (1, -1):
        for allowed in (None, mask):
            out, weights = forward(sign * q, k, v, allowed)
            where = f"scores of several hundred, float32, {'no mask' if allowed is None else 'one key masked'}"
            assert np.all(np.isfinite(weights)) and np.all(np.isfinite(out)), (
                f"The weights or the output hold numbers that are not finite ({where}). Take the largest score of each "
                "query away before exp: the weights stay the same."
            )
            right = attention(sign * q, k, v, allowed)[0]
            worst = float(np.max(np.abs(out - right)))
            assert worst < 1e-3, f"The output is off by {worst:.3g} ({where}). Softmax must not clip scores."


# --- masks ---------------------------------------------------------------------------------------------------------


# WHY: Masks come as [Tq, Tk], per sequence, per head or for keys alone; each must mean what numpy broadcasts it to.
# KIND: property
# CATCHES: s01 s02 s03 m01 m02 m08 m09 m10 m11 m32 m33
# CHAPTER: L5.1 section 2.2
# SHOWS: s03
def test_masks_of_every_shape() -> None:
    B, H, Tq, Tk = 2, 3, 4, 4
    q, k, v = inputs((B, H), Tq=Tq, Tk=Tk, d=3, dv=2)
    drawn = numbers(11, (B, H, Tq, Tk)) > -0.4
    drawn[..., 1] = True  # every query keeps a key
    masks = {
        "[Tq, Tk]": drawn[0, 0],
        "causal [Tq, Tk]": np.tril(np.ones((Tq, Tk), dtype=bool)),
        "[Tk]": drawn[0, 1, 2],
        "[H, 1, Tk]": drawn[1, :, :1],
        "[B, 1, 1, Tk]": drawn[:, :1, 1:2],
        "[B, 1, Tq, Tk]": drawn[:, 1:2],
        "[B, H, Tq, Tk]": drawn,
    }
    for shape, mask in masks.items():
        where = f"a {shape} mask with B = 2, H = 3, Tq = Tk = 4"
        expected_out, expected = attention(q, k, v, mask)
        out, weights = forward(q, k, v, mask)
        assert_close(
            weights,
            expected,
            f"The weights under {where} are not softmax over the keys the mask allows (True = may attend; softmax over "
            "those alone, so that they add up to 1).",
            axes=WEIGHTS,
        )
        assert np.all(weights[~np.broadcast_to(mask, weights.shape)] == 0), (
            f"A masked key should have a weight of exactly 0 ({where})."
        )
        assert_close(out, expected_out, f"The weights under {where} are right but the output is not.", axes=OUTPUT)
        attended, weights = attend(*tensors(q, k, v), mask=mask)
        assert_close(
            weights.data, expected, f"scaled_dot_product_attention's weights under {where} are wrong.", axes=WEIGHTS
        )
        assert_close(
            attended.data, expected_out, f"scaled_dot_product_attention's output under {where} is wrong.", axes=OUTPUT
        )


# WHY: Whatever stands in padding must not change a result, not even in its last digits, nor receive gradient.
# KIND: property
# CATCHES: s03 m08 m09 m10 m24 m25 m26
# CHAPTER: L5.1 section 2.2
def test_masked_keys_are_never_read() -> None:
    q, k, v = inputs((2,), Tq=3, Tk=5, d=4, dv=2)
    mask = np.array([True, False, True, True, False])
    dout = numbers(12, (2, 3, 2))
    results = []
    for padding in (1.0, 1e6):
        k[:, ~mask], v[:, ~mask] = -padding, padding
        leaves = tensors(q, k, v)
        attended, _ = attend(*leaves, mask=mask)
        attempt("backward under a [Tk] mask", attended.backward, dout)
        results.append((attended.data, *(gradient_of(name, leaf) for name, leaf in zip("qkv", leaves, strict=True))))
    for name, before, after in zip(("output", *"qkv"), *results, strict=True):
        said = "output" if name == "output" else f"gradient of {name}"
        assert_close(
            after,
            before,
            f"The {said} changed when keys and values changed that a [Tk] mask hides.",
            axes=OUTPUT if name == "output" else GRADIENT,
        )
    for name, gradient in zip("kv", results[0][2:], strict=True):
        assert np.all(gradient[:, ~mask] == 0), f"Masked positions of {name} should get a gradient of exactly 0."


# WHY: A query that may attend to nothing would be 0/0; one NaN there poisons the whole batch and every weight.
# KIND: boundary
# CATCHES: s01 s02 s03 s04 s07 m01 m02 m04 m05 m06 m08 m10 m11 m24 m25 m26 m32 m33
# CHAPTER: L5.1 section 2.2
# SHOWS: s04
def test_query_without_keys_reads_zeros() -> None:
    q, k, v = inputs((2,), Tq=3, Tk=4, d=3, dv=2)
    mask = np.ones((2, 3, 4), dtype=bool)
    mask[0, 1] = mask[1, 2] = False
    expected_out, expected = attention(q, k, v, mask)
    dout = numbers(13, (2, 3, 2))
    with np.errstate(all="ignore"):
        out, weights = forward(q, k, v, mask)
        where = "a [B, Tq, Tk] mask that leaves two of six queries without a key, float64"
        assert_close(
            weights,
            expected,
            f"The weights are wrong ({where}). A query that may attend to nothing has weights of 0, neither NaN nor "
            "evenly spread ones; the others are not touched by it.",
            axes=WEIGHTS,
        )
        assert_close(
            out, expected_out, f"The output of a query that may attend to nothing should be 0 ({where}).", axes=OUTPUT
        )
        leaves = tensors(q, k, v)
        attended, _ = attend(*leaves, mask=mask)
        attempt(f"backward ({where})", attended.backward, dout)
    right = gradients_by_jacobian(q, k, v, expected, dout, None)
    for name, leaf, gradient in zip("qkv", leaves, right, strict=True):
        assert_close(
            gradient_of(name, leaf),
            gradient,
            f"The gradient of {name} is wrong ({where}): a query that may attend to nothing gives and gets none.",
            axes=GRADIENT,
        )


# --- the backward pass ---------------------------------------------------------------------------------------------


# WHY: Every model of the course trains through these three gradients, and no library checks them for you.
# KIND: gradcheck
# CATCHES: s01 s07 m01 m02 m04 m05 m06 m21 m22 m23 m24 m25 m34
# CHAPTER: L5.1 section 2.3
# SHOWS: s07
def test_backward_by_central_differences() -> None:
    shapes = {"q": (2, 3, 2), "k": (2, 4, 2), "v": (2, 4, 3)}
    arrays = {name: numbers(20 + i, shape) for i, (name, shape) in enumerate(shapes.items())}
    dout = numbers(23, (2, 3, 3))
    mask = np.array([[True, True, False, True], [True, True, True, True], [False, True, True, False]])
    for what, mult in (("no dropout", None), ("a dropout_mult", np.array([0.0, 2.0, 2.0, 0.0]) + numbers(24, (3, 4)))):
        mult = None if mult is None else np.array(np.broadcast_to(mult, (2, 3, 4)))

        def contracted(given: Any, mult: Array | None = mult) -> float:
            return float(np.sum(attention(given["q"], given["k"], given["v"], mask, mult=mult)[0] * dout))

        p = attention(arrays["q"], arrays["k"], arrays["v"], mask)[1]
        gradients = backward(arrays["q"], arrays["k"], arrays["v"], p, dout, dropout_mult=mult)
        for name, gradient in zip("qkv", gradients, strict=True):
            found = gradient_difference(contracted, arrays, name, gradient)
            assert found is None, (
                f"sdpa_backward's gradient of {name} does not agree with central differences of the formula ({what}, "
                "q [2, 3, 2], k [2, 4, 2], v [2, 4, 3], a [Tq, Tk] mask, float64). dV is the weights that met the "
                "values, transposed, times dout; dS goes back through the softmax, p (dP - sum(p dP)), and the scale. "
                f"Found: {found}."
            )


# WHY: The node has to send each input its own gradient, and only to those that ask for one.
# KIND: unit
# CATCHES: s01 s02 s07 m02 m04 m05 m06 m24 m25 m26 m27 m32 m33
# CHAPTER: L5.1 section 4
def test_gradients_reach_every_input_that_needs_one() -> None:
    q, k, v = inputs((2,), Tq=3, Tk=3, d=4, dv=4)
    dout = numbers(31, (2, 3, 4))
    right = dict(zip("qkv", gradients_by_jacobian(q, k, v, attention(q, k, v)[1], dout, None), strict=True))
    for asking in ("q", "k", "v", "qv", "qkv"):
        leaves = {
            name: Tensor(array, requires_grad=name in asking, dtype=np.float64)
            for name, array in zip("qkv", (q, k, v), strict=True)
        }
        attended, weights = attend(*leaves.values())
        assert attended.requires_grad, f"The output should need a gradient when {' and '.join(asking)} do."
        assert not weights.requires_grad, "The returned weights should be a constant: they need no gradient."
        attempt(f"backward with gradients for {', '.join(asking)}", attended.backward, dout)
        for name, leaf in leaves.items():
            if name in asking:
                assert_close(
                    gradient_of(name, leaf),
                    right[name],
                    f"The gradient of {name} is wrong (gradients asked for: {', '.join(asking)}; q, k and v all "
                    "[2, 3, 4], float64).",
                    axes=GRADIENT,
                )
            else:
                assert leaf.grad is None, f"{name} asked for no gradient and got one."
    same = Tensor(q, requires_grad=True, dtype=np.float64)
    attempt("backward with one tensor as q, k and v", attend(same, same, same)[0].backward, dout)
    both = gradients_by_jacobian(q, q, q, attention(q, q, q)[1], dout, None)
    assert_close(
        gradient_of("the input", same),
        sum(both),
        "When one tensor is q, k and v, as in self-attention, its gradient is the sum of the three.",
        axes=GRADIENT,
    )
    with no_grad():
        attended, _ = attend(*tensors(q, k, v))
    assert not attended.requires_grad, "Under no_grad() the output should need no gradient."


# --- dropout -------------------------------------------------------------------------------------------------------


# WHY: Dropout takes weights away after the softmax and makes up for it, in one order of draws for everyone.
# KIND: unit
# CATCHES: s01 s02 s06 s07 s08 m01 m02 m04 m05 m06 m15 m16 m17 m18 m19 m21 m22 m23 m24 m25 m26 m32 m33 m34
# CHAPTER: L5.1 section 2.4
# SHOWS: s06 s08
def test_dropout_zeroes_weights_and_scales_the_rest() -> None:
    q, k, v = inputs((2, 2), Tq=3, Tk=4, d=3, dv=2)
    dout = numbers(41, (2, 2, 3, 2))
    weights = attention(q, k, v)[1]
    for rate in (0.3, 0.75):
        where = f"dropout_p = {rate}, q [2, 2, 3, 3], k [2, 2, 4, 3], v [2, 2, 4, 2], float64"
        stream = PCG32(7)
        mult = (PCG32(7).uniforms(weights.size).reshape(weights.shape) >= rate) / (1 - rate)
        leaves = tensors(q, k, v)
        attended, returned = attend(*leaves, dropout_p=rate, rng=stream)
        assert_close(
            returned.data,
            weights,
            f"The returned weights should be those before dropout, softmax's own ({where}).",
            axes=WEIGHTS,
        )
        assert_close(
            attended.data,
            attention(q, k, v, mult=mult)[0],
            f"The output is not that of the dropped weights ({where}). Draw rng.uniforms(weights.size) once, in C "
            "order; keep a weight where its number is at least dropout_p, multiply it by 1/(1 - dropout_p), and put 0 "
            "elsewhere.",
            axes=OUTPUT,
        )
        attempt(f"backward ({where})", attended.backward, dout)
        right = gradients_by_jacobian(q, k, v, weights, dout, None, mult)
        for name, leaf, gradient in zip("qkv", leaves, right, strict=True):
            assert_close(
                gradient_of(name, leaf),
                gradient,
                f"The output under dropout is right but the gradient of {name} is not ({where}). What the weights were "
                "multiplied by has to come back in the backward pass: on the weights that meet dout, and on dP.",
                axes=GRADIENT,
            )
        following = PCG32(7)
        following.uniforms(weights.size)
        assert stream.next_u32() == following.next_u32(), (
            f"A call should draw as many numbers as there are weights, {weights.size}, no more and no fewer ({where})."
        )


# WHY: Evaluation shares the generator with training; a draw there would change every training run after it.
# KIND: boundary
# CATCHES: s01 s02 s08 m01 m02 m14 m15 m20 m21 m22 m24 m25 m26 m32
# CHAPTER: L5.1 section 2.4
def test_rates_of_zero_and_one() -> None:
    q, k, v = inputs((2,), Tq=3, Tk=4, d=3, dv=2)
    dout = numbers(42, (2, 3, 2))
    expected_out, expected = attention(q, k, v)
    for given in ({"dropout_p": 0.0, "rng": PCG32(5)}, {"rng": PCG32(5)}, {"dropout_p": 0.0}, {}):
        said = ", ".join(f"{name}={'PCG32(5)' if name == 'rng' else value}" for name, value in given.items())
        attended, _ = attend(*tensors(q, k, v), **given)
        assert_close(
            attended.data, expected_out, f"Nothing should be dropped with ({said or 'no rate given'}).", axes=OUTPUT
        )
        if "rng" in given:
            assert given["rng"].next_u32() == PCG32(5).next_u32(), f"Nothing should be drawn with ({said})."
    leaves = tensors(q, k, v)
    with np.errstate(all="ignore"):
        attended, weights = attend(*leaves, dropout_p=1.0, rng=PCG32(5))
        attempt("backward with dropout_p = 1", attended.backward, dout)
    assert_close(
        attended.data, np.zeros_like(expected_out), "With dropout_p = 1 the output should be 0, not NaN.", axes=OUTPUT
    )
    assert_close(
        weights.data, expected, "With dropout_p = 1 the returned weights are still those before dropout.", axes=WEIGHTS
    )
    for name, leaf in zip("qkv", leaves, strict=True):
        gradient = gradient_of(name, leaf)
        assert_close(
            gradient, np.zeros_like(gradient), f"With dropout_p = 1 the gradient of {name} should be 0.", axes=GRADIENT
        )


# --- what goes in and what comes out -------------------------------------------------------------------------------


# WHY: One float64 number makes everything after it twice as large and slow; one float32 hides a gradient check.
# KIND: property
# CATCHES: m24 m25 m30 m31
# CHAPTER: L5.1 section 4
def test_the_dtype_is_kept() -> None:
    for dtype in (np.float32, np.float64):
        q, k, v = (array.astype(dtype) for array in inputs((2,), Tq=3, Tk=4, d=3, dv=2))
        dout = numbers(51, (2, 3, 2)).astype(dtype)
        mask = np.array([True, True, False, True])
        scales = {"scale = None": None, "scale = 0.5": 0.5, "scale = np.float64(0.5)": np.float64(0.5)}
        for said, scale in scales.items():
            where = f"{np.dtype(dtype).name} inputs, {said}, a [Tk] mask"
            out, p = forward(q, k, v, mask, scale)
            named = {"output": out, "weights": p}
            gradients = backward(q, k, v, p, dout, scale)
            named |= {f"gradient of {name}": array for name, array in zip("qkv", gradients, strict=True)}
            leaves = [Tensor(array, requires_grad=True, dtype=dtype) for array in (q, k, v)]
            attended, weights = attend(*leaves, mask=mask, scale=scale, dropout_p=0.5, rng=PCG32(1))
            named |= {"Tensor output": attended.data, "Tensor weights": weights.data}
            for name, array in named.items():
                assert array.dtype == dtype, (
                    f"The {name} should be {np.dtype(dtype).name}, got {array.dtype} ({where})."
                )


# WHY: Callers go on using their arrays; a call that writes into one changes results far away from here.
# KIND: property
# CATCHES: m24 m25 m33 m34
# CHAPTER: L5.1 section 4
def test_arguments_are_left_as_they_were() -> None:
    q, k, v = inputs((2,), Tq=3, Tk=4, d=3, dv=2)
    p = attention(q, k, v)[1]
    given = {"q": q, "k": k, "v": v, "p": p, "dout": numbers(52, (2, 3, 2))}
    given |= {"mask": numbers(53, (3, 4)) > -1, "dropout_mult": np.round(numbers(54, (2, 3, 4)) ** 2, 1)}
    given["mask"][1] = False
    kept = {name: array.copy() for name, array in given.items()}
    with np.errstate(all="ignore"):
        forward(q, k, v, given["mask"], 0.6)
        backward(q, k, v, p, given["dout"], 0.6, given["dropout_mult"])
        leaves = tensors(q, k, v)
        attended, _ = attend(*leaves, mask=given["mask"], dropout_p=0.5, rng=PCG32(2), scale=0.6)
        attempt("backward", attended.backward, given["dout"])
    for name, leaf in zip("qkv", leaves, strict=True):
        given[f"{name}.data"], kept[f"{name}.data"] = leaf.data, kept[name]
    changed = [name for name, array in given.items() if not np.array_equal(array, kept[name])]
    assert not changed, (
        f"After the calls these arguments hold other numbers: {', '.join(changed)}. Write into new arrays."
    )


# WHY: Numpy broadcasts many wiring mistakes into an answer; refused loudly, they are found where they are made.
# KIND: boundary
# CATCHES: m12 m13 m28 m29
# CHAPTER: L5.1 section 4
def test_validation() -> None:
    shapes = {"q": (2, 3, 4), "k": (2, 5, 4), "v": (2, 5, 6)}

    def calls(what: str, options: dict[str, Any] | None = None, **changed: tuple[int, ...]) -> Iterable[Any]:
        arrays = [np.ones(changed.get(name, shape)) for name, shape in shapes.items()]
        given = options or {}
        yield f"sdpa_forward of {what}", lambda: sdpa_forward(*arrays, **given)
        made = [Tensor(array, dtype=np.float64) for array in arrays]
        yield f"scaled_dot_product_attention of {what}", lambda: scaled_dot_product_attention(*made, **given)

    def node(what: str, **given: Any) -> Any:
        made = [Tensor(np.ones(shape), dtype=np.float64) for shape in shapes.values()]
        return f"scaled_dot_product_attention with {what}", lambda: scaled_dot_product_attention(*made, **given)

    must_refuse(
        [
            *calls("q of one axis", q=(4,)),
            *calls("k of one axis", k=(4,)),
            *calls("v of one axis", v=(5,)),
            *calls("q of one axis beside k and v of two", q=(4,), k=(5, 4), v=(5, 6)),
            *calls("q of width 3, k of width 4", q=(2, 3, 3)),
            *calls("five keys and four values", v=(2, 4, 6)),
            *calls("five keys and one value", v=(2, 1, 6)),
            *calls("q with B = 1, k and v with B = 2", q=(1, 3, 4)),
            *calls("k with B = 1, q and v with B = 2", k=(1, 5, 4)),
            *calls("v with B = 3, q and k with B = 2", v=(3, 5, 6)),
            *calls("v without the leading axis", v=(5, 6)),
            *calls("a float mask", {"mask": np.ones((3, 5))}),
            *calls("an int mask", {"mask": np.ones((3, 5), dtype=np.int64)}),
            *calls("a [Tk, Tq] mask", {"mask": np.ones((5, 3), dtype=bool)}),
            *calls("a mask for 3 sequences, B = 2", {"mask": np.ones((3, 3, 5), dtype=bool)}),
            *calls("a mask with an axis more than the weights", {"mask": np.ones((4, 2, 3, 5), dtype=bool)}),
            *calls("scale = 0", {"scale": 0.0}),
            *calls("scale = -0.5", {"scale": -0.5}),
            *calls("scale = inf", {"scale": math.inf}),
            *calls("scale = nan", {"scale": math.nan}),
            node("dropout_p = -0.1", dropout_p=-0.1, rng=PCG32(0)),
            node("dropout_p = 1.5", dropout_p=1.5, rng=PCG32(0)),
            node("dropout_p = 0.5 and no rng", dropout_p=0.5),
            node("dropout_p = -0.1 and no rng", dropout_p=-0.1),
        ]
    )
    out, weights = forward(*(np.ones(shape) for shape in shapes.values()), np.ones((1, 5), dtype=bool), 2)
    assert (out.shape, weights.shape) == ((2, 3, 6), (2, 3, 5)), (
        "q [2, 3, 4], k [2, 5, 4] and v [2, 5, 6] with a [1, Tk] mask and scale = 2 should give an output [2, 3, 6] "
        f"and weights [2, 3, 5], got {list(out.shape)} and {list(weights.shape)}."
    )


# --- what the tests share ------------------------------------------------------------------------------------------


def assert_close(actual: Any, expected: Any, message: str, axes: str) -> None:
    """Fail with `message` and the difference; `axes` names the last two, before which come batch and head."""
    __tracebackhide__ = True
    leading = ["batch", "head"][: np.ndim(expected) - 2]
    agree(actual, expected, message, axes=" ".join([*leading, axes]))


def numbers(seed: int, shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def inputs(leading: tuple[int, ...], *, Tq: int, Tk: int, d: int, dv: int) -> tuple[Array, Array, Array]:
    """Random q [..., Tq, d], k [..., Tk, d] and v [..., Tk, dv]."""
    draw = np.random.default_rng(5)
    q, k, v = (draw.standard_normal((*leading, *shape)) for shape in ((Tq, d), (Tk, d), (Tk, dv)))
    return q, k, v


def tensors(*arrays: Array) -> list[Any]:
    return [Tensor(array, requires_grad=True, dtype=np.float64) for array in arrays]


def attention(
    q: Any, k: Any, v: Any, mask: Array | None = None, scale: float | None = None, mult: Array | None = None
) -> tuple[Array, Array]:
    """The output and the weights before dropout by the formula, one query at a time; `mult` is dropout's factor."""
    q, k, v = (np.asarray(array, dtype=np.float64) for array in (q, k, v))
    weights = np.zeros((*q.shape[:-1], k.shape[-2]))
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    allowed = np.broadcast_to(True if mask is None else mask, weights.shape)
    for at in np.ndindex(q.shape[:-1]):
        here = at[:-1]  # which of the leading rows
        keys = np.flatnonzero(allowed[at])
        if keys.size:
            scores = np.array([np.dot(q[at], k[here][j]) for j in keys]) * (scale or q.shape[-1] ** -0.5)
            powers = np.exp(scores - scores.max())
            weights[at][keys] = powers / powers.sum()
        used = weights[at] if mult is None else weights[at] * mult[at]
        for j in keys:
            out[at] += used[j] * v[here][j]
    return out, weights


def gradients_by_jacobian(
    q: Array, k: Array, v: Array, p: Array, dout: Array, scale: float | None, mult: Array | None = None
) -> tuple[Array, Array, Array]:
    """The gradients of q, k and v, one query at a time, through the whole Jacobian diag(p) - p p^T of the softmax."""
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    for at in np.ndindex(q.shape[:-1]):
        here = at[:-1]
        weights, keep = p[at], np.ones_like(p[at]) if mult is None else mult[at]
        dv[here] += np.outer(weights * keep, dout[at])
        jacobian = np.diag(weights) - np.outer(weights, weights)
        dscores = jacobian @ (keep * (v[here] @ dout[at]))
        dq[at] += factor * (dscores @ k[here])
        dk[here] += factor * np.outer(dscores, q[at])
    return dq, dk, dv


def attempt(what: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of the call; an exception becomes a failure that says what was being done."""
    __tracebackhide__ = True
    try:
        return call(*args, **kwargs)
    except Exception as error:
        line = str(error).splitlines()[0][:200] if str(error) else "no message"
        line = re.sub(r"0x[0-9a-fA-F]{6,}", "0x…", line)  # addresses differ from run to run
        raise AssertionError(f"{what} should work, but raised {type(error).__name__}: {line}.") from error


def several(what: str, result: Any, kind: type, says: str) -> tuple[Any, ...]:
    """`result` when it is a tuple of as many things of the kind as `says` has names."""
    __tracebackhide__ = True
    names = says.split(", ")
    assert isinstance(result, tuple) and len(result) == len(names), (
        f"{what} should return a tuple of {len(names)} ({says}), got {type(result).__name__}."
    )
    for name, one in zip(names, result, strict=True):
        assert isinstance(one, kind), f"{what} should return its {name} as {kind.__name__}, got {type(one).__name__}."
    return result


def forward(q: Array, k: Array, v: Array, mask: Array | None = None, scale: Any = None) -> tuple[Array, Array]:
    """sdpa_forward's output and weights."""
    __tracebackhide__ = True
    what = f"sdpa_forward(q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}, {of_mask(mask)}, scale {scale})"
    out, weights = several(
        what, attempt(what, sdpa_forward, q, k, v, mask=mask, scale=scale), np.ndarray, "output, weights"
    )
    return out, weights


def backward(
    q: Array, k: Array, v: Array, p: Array, dout: Array, scale: Any = None, dropout_mult: Array | None = None
) -> tuple[Array, Array, Array]:
    """sdpa_backward's three gradients."""
    __tracebackhide__ = True
    what = f"sdpa_backward(q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}, p {list(p.shape)}, scale {scale})"
    found = attempt(what, sdpa_backward, q, k, v, p, dout, scale=scale, dropout_mult=dropout_mult)
    dq, dk, dv = several(what, found, np.ndarray, "gradient of q, gradient of k, gradient of v")
    for name, gradient, array in zip("qkv", (dq, dk, dv), (q, k, v), strict=True):
        shaped(f"gradient of {name} from {what}", gradient, array.shape)
    return dq, dk, dv


def attend(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> tuple[Any, Any]:
    """scaled_dot_product_attention's output and weights as Tensors."""
    __tracebackhide__ = True
    said = "".join(f", {name} {value}" for name, value in given.items() if name in ("scale", "dropout_p"))
    what = (
        f"scaled_dot_product_attention(q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}, "
        f"{of_mask(given.get('mask'))}{said})"
    )
    out, weights = several(
        what, attempt(what, scaled_dot_product_attention, q, k, v, **given), Tensor, "output, weights"
    )
    return out, weights


def of_mask(mask: Array | None) -> str:
    return "no mask" if mask is None else f"a mask of shape {list(mask.shape)}"


def shaped(what: str, array: Array, shape: tuple[int, ...]) -> Array:
    """`array` when it has the shape."""
    __tracebackhide__ = True
    assert array.shape == shape, f"The {what} should have shape {list(shape)}, got {list(array.shape)}."
    return array


def gradient_of(name: str, tensor: Any) -> Array:
    """The gradient that arrived."""
    __tracebackhide__ = True
    assert tensor.grad is not None, f"No gradient reached {name}: the node has to name it as a parent and send it one."
    return np.array(tensor.grad)


def must_refuse(cases: Iterable[tuple[str, Callable[[], Any]]]) -> None:
    """Each call has to raise ValueError; one failure lists all that do not."""
    __tracebackhide__ = True
    wrong = []
    for what, call in cases:
        try:
            with np.errstate(all="ignore"):
                call()
        except ValueError:
            continue
        except Exception as error:
            wrong.append(f"{what} (raised {type(error).__name__})")
        else:
            wrong.append(f"{what} (accepted)")
    assert not wrong, f"These should raise ValueError and do not: {'; '.join(wrong)}."


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))
