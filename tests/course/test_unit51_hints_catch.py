"""The last hint of every mutant of unit L5.1, written as the test that it proposes, catches its mutant and accepts all
correct code."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.course.whole import SDPA
from tinyllm.autograd.tensor import Tensor
from tinyllm.num.rng import PCG32

Array = NDArray[Any]

MUTANTS = [row["mid"] for row in SDPA.manifest]


def drawn(*shapes: tuple[int, ...]) -> list[Array]:
    random = np.random.default_rng(1)
    return [random.normal(size=shape) for shape in shapes]


def inputs(Tq: int = 3, Tk: int = 5, d: int = 4, dv: int = 6) -> list[Array]:
    return drawn((Tq, d), (Tk, d), (Tk, dv))


def gradients(sdpa: Any, p: Array, dout: Array, scale: float | None = None, mult: Array | None = None) -> list[Array]:
    """sdpa_backward's, under weights [Tq, Tk] that are given."""
    q, k, v = drawn((p.shape[0], 4), (p.shape[1], 4), (p.shape[1], dout.shape[1]))
    return list(sdpa.sdpa_backward(q, k, v, p.copy(), dout, scale, mult))


def some_weights(Tq: int = 3, Tk: int = 5) -> Array:
    return np.random.default_rng(2).dirichlet(np.ones(Tk), Tq)


def attend(sdpa: Any, arrays: list[Array], **options: Any) -> tuple[Any, Any, list[Tensor]]:
    leaves = [Tensor(array, requires_grad=True, dtype=array.dtype) for array in arrays]
    return *sdpa.scaled_dot_product_attention(*leaves, **options), leaves


def dropped(sdpa: Any, rate: float, n: int = 10) -> tuple[Array, Array]:
    """The weights that met the values, as the identity shows them, and those returned."""
    out, weights, _ = attend(sdpa, [*drawn((n, 3), (n, 3)), np.eye(n)], dropout_p=rate, rng=PCG32(5))
    return out.data, weights.data


def equal(found: Any, expected: Any) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-9, atol=1e-12))


def refused(call: Callable[..., Any], *args: Any, **options: Any) -> None:
    with pytest.raises(ValueError):
        call(*args, **options)


# -- pitfalls --------------------------------------------------------------------------------------------------------


def check_s01(sdpa: Any) -> None:
    q, k, v = inputs(Tk=4, d=5)
    powers = np.exp(q @ k.T / np.sqrt(5))
    assert equal(sdpa.sdpa_forward(q, k, v)[1], powers / powers.sum(axis=1, keepdims=True))


def check_s02(sdpa: Any) -> None:
    assert equal(sdpa.sdpa_forward(*inputs(Tq=2))[1].sum(axis=1), [1, 1])


def check_s03(sdpa: Any) -> None:
    found, plain = sdpa.sdpa_forward(*inputs(), np.ones((3, 5), dtype=bool)), sdpa.sdpa_forward(*inputs())
    assert equal(found[0], plain[0]) and equal(found[1], plain[1])


def check_s04(sdpa: Any) -> None:
    q, k, _ = inputs()
    mask = np.ones((3, 5), dtype=bool)
    mask[1] = False
    assert equal(sdpa.sdpa_forward(q, k, np.ones((5, 1)), mask)[0][:, 0], [1, 0, 1])


def check_s05(sdpa: Any) -> None:
    found = sdpa.sdpa_forward(np.ones((1, 1)), np.array([[1000.0], [999.0]]), np.ones((2, 1)))[1]
    assert equal(found, np.array([[np.e, 1]]) / (np.e + 1))


def check_s06(sdpa: Any) -> None:
    met, returned = dropped(sdpa, 0.25)
    kept = PCG32(5).uniforms(100).reshape(10, 10) >= 0.25
    assert equal(met[kept], returned[kept] * 4 / 3)


def check_s07(sdpa: Any) -> None:
    q, k, v = inputs()
    (factors,) = drawn((3, 6))
    found = sdpa.sdpa_backward(q, k, v, sdpa.sdpa_forward(q, k, v)[1], factors)[0][1, 2]
    sides = []
    for step in (1e-6, -1e-6):
        moved = q.copy()
        moved[1, 2] += step
        sides.append(float((sdpa.sdpa_forward(moved, k, v)[0] * factors).sum()))
    assert abs((sides[0] - sides[1]) / 2e-6 - found) < 1e-6


def check_s08(sdpa: Any) -> None:
    out, _, leaves = attend(sdpa, inputs(Tq=1, Tk=12), dropout_p=0.5, rng=PCG32(5))
    gone = PCG32(5).uniforms(12) < 0.5
    out.backward(np.ones((1, 6)))
    assert gone.any() and (leaves[2].grad[gone] == 0).all()


# -- scale and masks -------------------------------------------------------------------------------------------------


def check_m01(sdpa: Any) -> None:
    q, k, v = inputs()
    assert equal(sdpa.sdpa_forward(q, k, np.repeat(v, 2, axis=1))[1], sdpa.sdpa_forward(q, k, v)[1])


def check_m02(sdpa: Any) -> None:
    found = sdpa.sdpa_forward(np.ones((1, 4)), np.array([[1.0] * 4, [0.0] * 4]), np.ones((2, 1)))[1]
    assert equal(found[0, 0], 1 / (1 + np.exp(-2)))


def check_m03(sdpa: Any) -> None:
    q, k, v = inputs()
    once, halved, twice = (
        sdpa.sdpa_forward(given, k, v, scale=scale)[1] for given, scale in ((q, 0.3), (q / 2, 0.6), (q, 0.6))
    )
    assert equal(once, halved) and not equal(once, twice)


def check_m08(sdpa: Any) -> None:
    q, k, v = inputs(Tk=4)
    mask = np.array([True, True, True, False])
    out, weights = sdpa.sdpa_forward(q, k, v, mask)
    v[3] += 9
    assert (weights[:, 3] == 0).all() and equal(sdpa.sdpa_forward(q, k, v, mask)[0], out)


def check_m09(sdpa: Any) -> None:
    assert equal(sdpa.sdpa_forward(*inputs(Tk=3), np.array([False, True, False]))[1][:, 1], 1)


def check_m10(sdpa: Any) -> None:
    found = sdpa.sdpa_forward(np.ones((1, 2)), np.ones((2, 2)), np.ones((2, 1)), np.array([True, False]))[1]
    assert equal(found, [[1, 0]])


def check_m11(sdpa: Any) -> None:
    found = sdpa.sdpa_forward(*inputs(Tq=4, Tk=4), np.tril(np.ones((4, 4), dtype=bool)))[1]
    assert (found[3] > 0).all()


# -- dropout ---------------------------------------------------------------------------------------------------------


def check_m14(sdpa: Any) -> None:
    one, other = PCG32(3), PCG32(3)
    attend(sdpa, inputs(), dropout_p=0.0, rng=one)
    assert one.next_u32() == other.next_u32()


def check_m15(sdpa: Any) -> None:
    found = attend(sdpa, inputs(), dropout_p=0.5, rng=PCG32(3))[1]
    assert equal(found.data, attend(sdpa, inputs())[1].data)


def check_m16(sdpa: Any) -> None:
    assert 75 < np.count_nonzero(dropped(sdpa, 0.1)[0]) < 99


def check_m17(sdpa: Any) -> None:
    met, returned = dropped(sdpa, 0.5)
    assert equal(met[met != 0], 2 * returned[met != 0])


def check_m18(sdpa: Any) -> None:
    met, returned = dropped(sdpa, 0.2)
    assert equal(met[met != 0], 1.25 * returned[met != 0])


def check_m19(sdpa: Any) -> None:
    twice = [np.stack([array, array]) for array in inputs(Tq=10, Tk=10)]
    out = attend(sdpa, twice, dropout_p=0.5, rng=PCG32(3))[0].data
    assert not equal(out[0], out[1])


def check_m20(sdpa: Any) -> None:
    out, _, leaves = attend(sdpa, inputs(), dropout_p=1.0, rng=PCG32(3))
    out.backward(np.ones((3, 6)))
    assert all((array == 0).all() for array in (out.data, *(leaf.grad for leaf in leaves)))


# -- gradients -------------------------------------------------------------------------------------------------------


def halved(sdpa: Any) -> list[bool]:
    """Of each gradient, whether half the scale makes it half as large."""
    p, (dout,) = some_weights(), drawn((3, 6))
    pairs = zip(gradients(sdpa, p, dout, 1.0), gradients(sdpa, p, dout, 0.5), strict=True)
    return [equal(half * 2, whole) for whole, half in pairs]


def check_m04(sdpa: Any) -> None:
    assert halved(sdpa) == [True, True, False]


def check_m05(sdpa: Any) -> None:
    assert halved(sdpa)[0]


def check_m06(sdpa: Any) -> None:
    assert halved(sdpa)[1]


def check_m07(sdpa: Any) -> None:
    arrays, (dout,) = inputs(), drawn((3, 6))
    out, weights, leaves = attend(sdpa, arrays, scale=0.9)
    out.backward(dout)
    expected = sdpa.sdpa_backward(*arrays, weights.data, dout, 0.9)
    assert all(equal(leaf.grad, gradient) for leaf, gradient in zip(leaves, expected, strict=True))


def check_m21(sdpa: Any) -> None:
    assert (gradients(sdpa, some_weights(), np.ones((3, 6)), mult=np.zeros((3, 5)))[2] == 0).all()


def check_m22(sdpa: Any) -> None:
    dq, dk, _ = gradients(sdpa, some_weights(), drawn((3, 6))[0], mult=np.zeros((3, 5)))
    assert (dq == 0).all() and (dk == 0).all()


def check_m23(sdpa: Any) -> None:
    mult, dout = drawn((3, 5), (3, 6))
    once, twice = (gradients(sdpa, some_weights(), dout, mult=factor * mult**2) for factor in (1, 2))
    assert all(equal(two, 2 * one) for one, two in zip(once, twice, strict=True))


def check_m24(sdpa: Any) -> None:
    found = gradients(sdpa, np.array([[1.0, 0, 0]] * 3), drawn((3, 6))[0])[2]
    assert found[0].any() and not found[1:].any()


def check_m25(sdpa: Any) -> None:
    dout = np.zeros((3, 6))
    dout[1] = drawn((6,))[0]
    dq, dk, _ = gradients(sdpa, some_weights(3, 3), dout)
    assert dq[1].any() and not dq[[0, 2]].any() and dk.any(axis=1).all()


def check_m26(sdpa: Any) -> None:
    out, _, leaves = attend(sdpa, inputs())
    out.backward(drawn((3, 6))[0])
    assert all(leaf.grad is not None and leaf.grad.any() for leaf in leaves)


def check_m27(sdpa: Any) -> None:
    out, weights, _ = attend(sdpa, inputs())
    assert out.requires_grad and not weights.requires_grad


# -- what is refused, dtypes and arguments -----------------------------------------------------------------------------


def check_m12(sdpa: Any) -> None:
    refused(sdpa.sdpa_forward, *inputs(), np.array([0, 0, 0, -np.inf, 0]))


def check_m13(sdpa: Any) -> None:
    shapes = ((2, 3, 4), (2, 5, 4), (2, 5, 6))
    refused(sdpa.sdpa_forward, *drawn(*shapes), np.ones((7, 2, 3, 5), dtype=bool))


def check_m28(sdpa: Any) -> None:
    refused(sdpa.sdpa_forward, *drawn((2, 3, 4), (2, 5, 4), (5, 6)))


def check_m29(sdpa: Any) -> None:
    refused(attend, sdpa, inputs(), dropout_p=0.5)


def check_m30(sdpa: Any) -> None:
    check_float32(sdpa, None)


def check_m31(sdpa: Any) -> None:
    check_float32(sdpa, np.sqrt(0.25))


def check_float32(sdpa: Any, scale: Any) -> None:
    q, k, v = (array.astype(np.float32) for array in inputs())
    out, p = sdpa.sdpa_forward(q, k, v, scale=scale)
    found = [out, p, *sdpa.sdpa_backward(q, k, v, p, out, scale)]
    assert {array.dtype for array in found} == {np.dtype(np.float32)}


def check_m32(sdpa: Any) -> None:
    assert np.abs(sdpa.sdpa_forward(*inputs())[1].sum(axis=1) - 1).max() < 1e-12


def check_m33(sdpa: Any) -> None:
    arrays = inputs()
    assert equal(sdpa.sdpa_forward(*arrays)[1], sdpa.sdpa_forward(*arrays)[1])


def check_m34(sdpa: Any) -> None:
    p = some_weights()
    sdpa.sdpa_backward(*inputs(), p, np.ones((3, 6)), dropout_mult=np.full((3, 5), 2.0))
    assert equal(p, some_weights())


# -- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mid", MUTANTS)
def test_the_last_hint_catches_its_mutant_and_accepts_every_correct_implementation(mid: str) -> None:
    check: Callable[[Any], None] = globals()[f"check_{mid}"]
    for name in SDPA.sources:
        if name not in MUTANTS:
            check(SDPA.module(name))
    with np.errstate(all="ignore"), pytest.raises((Exception, pytest.fail.Exception)):  # any error has caught it
        check(SDPA.module(mid))
