"""Whoever does what the last hint of a mutant says catches the mutant, and accepts the reference.

`check_MID` is that hint as a test, written against `MHA`, the class of the variant.
"""

import types
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.course import variants
from tinyllm.autograd.tensor import Tensor
from tinyllm.nn.layers import Linear
from tinyllm.num.rng import PCG32

Array = NDArray[Any]


@cache
def MHA_of(name: str) -> Any:
    module = types.ModuleType(f"mha_{name}")
    exec(compile(variants.sources()[name], name, "exec", dont_inherit=True), module.__dict__)
    return module.MultiHeadAttention


def numbers(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def tensor(*shape: int, seed: int = 1, requires_grad: bool = False) -> Tensor:
    return Tensor(numbers(*shape, seed=seed), requires_grad=requires_grad)


def counted(*shape: int) -> Array:
    """Consecutive numbers."""
    return np.arange(float(np.prod(shape))).reshape(shape)


def made(MHA: Any, d: int, H: int, dropout: float = 0.0, bias: bool = True) -> Any:
    """A module in eval mode with weights and biases that are all different."""
    mha = MHA(d, H, dropout, bias, PCG32(5))
    for seed, projection in enumerate((mha.q_proj, mha.k_proj, mha.v_proj, mha.out_proj)):
        projection.weight.data[...] = numbers(d, d, seed=10 + seed) / 2
        if projection.bias is not None:
            projection.bias.data[...] = numbers(d, seed=20 + seed)
    mha.eval()
    return mha


def equal(one: Any, other: Any) -> bool:
    return np.shape(one) == np.shape(other) and bool(np.allclose(one, other, rtol=1e-4, atol=1e-5))


def out(mha: Any, x_q: Tensor, x_kv: Tensor, mask: Any = None) -> Array:
    return np.array(mha.attend(x_q, x_kv, mask)[0].data)


def weights(mha: Any, x_q: Tensor, x_kv: Tensor, mask: Any = None) -> Array:
    return np.array(mha.attend(x_q, x_kv, mask)[1].data)


def refused(call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    with pytest.raises(ValueError):
        call(*args, **kwargs)


def true(*shape: int) -> Array:
    return np.ones(shape, dtype=bool)


def causal(n: int) -> Array:
    return np.tril(true(n, n))


def packed(d: int) -> tuple[Array, Array]:
    """Blocks of 1, 2 and 3."""
    return np.repeat([1.0, 2.0, 3.0], d)[:, None] * np.ones(d), np.repeat([1.0, 2.0, 3.0], d)


QKV = ("q_proj", "k_proj", "v_proj")
ALL = (*QKV, "out_proj")

# -- pitfalls --------------------------------------------------------------------------------------------------------


def check_s01(MHA: Any) -> None:
    x = counted(2, 3, 4, 5)
    merged = MHA(15, 3).merge_heads(Tensor(x)).data
    assert equal(merged, np.concatenate([x[:, h] for h in range(3)], axis=-1))


def check_s02(MHA: Any) -> None:
    x = counted(2, 5, 12)
    heads = MHA(12, 3).split_heads(Tensor(x)).data
    assert all(equal(heads[:, h], x[:, :, 4 * h : 4 * h + 4]) for h in range(3))


def check_s03(MHA: Any) -> None:
    mha, x_q, x_kv = made(MHA, 12, 4), tensor(1, 2, 12), tensor(1, 5, 12, seed=2)
    q, k = (
        x.data.astype(float) @ p.weight.data.astype(float).T + p.bias.data
        for x, p in ((x_q, mha.q_proj), (x_kv, mha.k_proj))
    )
    found = weights(mha, x_q, x_kv)
    for h in range(4):
        scores = q[0][:, 3 * h : 3 * h + 3] @ k[0][:, 3 * h : 3 * h + 3].T / np.sqrt(3)
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        assert equal(found[0, h], raised / raised.sum(axis=1, keepdims=True))


def check_s04(MHA: Any) -> None:
    mha, x_q, x_kv = made(MHA, 6, 2), tensor(1, 4, 6), numbers(1, 4, 6, seed=2)
    order = [1, 0, 2, 3]
    before, after = (mha.attend(x_q, Tensor(x)) for x in (x_kv, x_kv[:, order]))
    assert equal(before[0].data, after[0].data)
    assert equal(before[1].data[..., order], after[1].data)


def check_s05(MHA: Any) -> None:
    mask = true(2, 2, 3)
    mask[0, :, 2] = False
    found = weights(made(MHA, 4, 2), tensor(2, 2, 4), tensor(2, 3, 4, seed=2), mask)
    assert (found[0, :, :, 2] == 0).all() and (found[1, :, :, 2] > 0).all()


def check_s06(MHA: Any) -> None:
    x = tensor(1, 10, 4)
    assert equal(out(made(MHA, 4, 2, dropout=0.5), x, x), out(made(MHA, 4, 2), x, x))


def check_s07(MHA: Any) -> None:
    mha = made(MHA, 4, 2)
    mha.load_packed_in_proj(*packed(4))
    for number, name in enumerate(QKV, start=1):
        assert (getattr(mha, name).weight.data == number).all() and (getattr(mha, name).bias.data == number).all()


def check_s08(MHA: Any) -> None:
    mha, x = made(MHA, 4, 2), tensor(1, 3, 4)
    mha.out_proj.bias.data[...] = 0
    before = out(mha, x, x)
    mha.out_proj.weight.data[...] *= 2
    assert equal(out(mha, x, x), 2 * before)


# -- layout and scale ------------------------------------------------------------------------------------------------


def check_m01(MHA: Any) -> None:
    assert equal(MHA(12, 3).split_heads(Tensor(counted(1, 1, 12))).data[0, 0, 0], [0, 1, 2, 3])


def check_m03(MHA: Any) -> None:
    mha = MHA(2, 1)
    for name in ALL:
        getattr(mha, name).weight.data[...] = np.eye(2)
        getattr(mha, name).bias.data[...] = 0
    found = weights(mha, Tensor([[[1.0, 0.0]]]), Tensor([[[1.4, 0.0], [0.0, 1.0]]]))
    one, other = np.exp(1.4 / np.sqrt(2)), 1.0
    assert equal(found[0, 0, 0], [one / (one + other), other / (one + other)])


check_m06 = check_s01

# -- projections -----------------------------------------------------------------------------------------------------


def changes(mha: Any, name: str) -> tuple[bool, bool]:
    """Whether changing a projection's weight changes the output, and the weights."""
    x_q, x_kv = tensor(1, 3, 6), tensor(1, 4, 6, seed=2)
    before = mha.attend(x_q, x_kv)
    getattr(mha, name).weight.data[...] *= 2
    after = mha.attend(x_q, x_kv)
    return not equal(before[0].data, after[0].data), not equal(before[1].data, after[1].data)


def check_m02(MHA: Any) -> None:
    assert changes(made(MHA, 6, 2), "v_proj") == (True, False)


def check_m04(MHA: Any) -> None:
    mha, x = made(MHA, 4, 2), tensor(1, 3, 4)
    mha.out_proj.bias.data[...] = 0
    before = out(mha, x, x)
    mha.out_proj.bias.data[...] = [1, 2, 3, 4]
    assert equal(out(mha, x, x), before + np.arange(1, 5))


def check_m09(MHA: Any) -> None:
    mha = made(MHA, 4, 2)
    mha.v_proj.bias.data[...] = 0
    found = out(mha, tensor(1, 3, 4), Tensor(np.zeros((1, 3, 4))))
    assert equal(found, np.broadcast_to(mha.out_proj.bias.data, (1, 3, 4)))


def check_m33(MHA: Any) -> None:
    mha, x_q, x_kv = made(MHA, 4, 2), tensor(1, 2, 4), tensor(1, 3, 4, seed=2)
    before = weights(mha, x_q, x_kv)
    mha.q_proj.bias.data[...] = [1, 2, 3, 4]
    assert not equal(weights(mha, x_q, x_kv), before)


def check_m34(MHA: Any) -> None:
    assert changes(made(MHA, 6, 2), "k_proj")[1]


def check_m38(MHA: Any) -> None:
    assert not changes(made(MHA, 6, 2), "v_proj")[1]
    assert changes(made(MHA, 6, 2), "k_proj")[1]


def check_m40(MHA: Any) -> None:
    mha, x_q, x_kv = made(MHA, 4, 2), tensor(1, 2, 4), tensor(1, 5, 4, seed=2)
    assert mha(x_q, x_kv).shape == (1, 2, 4)
    assert equal(mha(x_q, x_kv).data, out(mha, x_q, x_kv))


# -- masks -----------------------------------------------------------------------------------------------------------


def check_m12(MHA: Any) -> None:
    mask = true(3, 4)
    mask[:, 1] = False
    found = weights(made(MHA, 4, 2), tensor(1, 3, 4), tensor(1, 4, 4, seed=2), mask)
    assert (found[..., 1] == 0).all() and equal(found[..., [0, 2, 3]].sum(axis=-1), np.ones((1, 2, 3)))


def check_m17(MHA: Any) -> None:
    mask = np.broadcast_to(~np.eye(3, dtype=bool)[:, None, :], (3, 2, 3))
    found = weights(made(MHA, 4, 2), tensor(3, 2, 4), tensor(3, 3, 4, seed=2), mask)
    assert all(((found[b] == 0) == (np.arange(3) == b)).all() for b in range(3))


def check_m18(MHA: Any) -> None:
    mask = np.broadcast_to(~np.eye(3, dtype=bool)[None, :, None, :], (2, 3, 2, 3))
    found = weights(made(MHA, 6, 3), tensor(2, 2, 6), tensor(2, 3, 6, seed=2), mask)
    assert all(((found[:, h] == 0) == (np.arange(3) == h)).all() for h in range(3))


def check_m29(MHA: Any) -> None:
    mha, x = made(MHA, 4, 2), tensor(1, 4, 4)
    weights(mha, tensor(1, 3, 4), tensor(1, 5, 4, seed=2), true(3, 5))
    found = weights(mha, x, x, causal(4))
    assert (found[..., 0, 1:] == 0).all() and (found[..., 3, :] > 0).all()


def check_m30(MHA: Any) -> None:
    x = tensor(2, 4, 4)
    found = weights(made(MHA, 4, 2), x, x, np.broadcast_to(causal(4), (2, 4, 4)))
    assert ((found > 0) == causal(4)).all()


def check_m37(MHA: Any) -> None:
    mask = true(2, 4)
    mask[:, 1:] = False
    assert (weights(made(MHA, 4, 2), tensor(1, 2, 4), tensor(1, 4, 4, seed=2), mask)[..., 0] == 1).all()


# -- dropout ---------------------------------------------------------------------------------------------------------


def two_calls(MHA: Any, dropout: float, training: bool) -> tuple[Array, Array]:
    mha, x = made(MHA, 4, 2, dropout=dropout), tensor(1, 10, 4)
    if training:
        mha.train()
    return out(mha, x, x), out(mha, x, x)


def check_m11(MHA: Any) -> None:
    assert not equal(*two_calls(MHA, 0.5, training=True))


def check_m19(MHA: Any) -> None:
    assert not equal(two_calls(MHA, 0.5, training=True)[0], two_calls(MHA, 0.5, training=False)[0])


def check_m35(MHA: Any) -> None:
    assert equal(*two_calls(MHA, 0.5, training=False)) and not equal(*two_calls(MHA, 0.5, training=True))


def check_m36(MHA: Any) -> None:
    assert equal(two_calls(MHA, 0.0, training=True)[0], two_calls(MHA, 0.0, training=False)[0])


# -- loading ---------------------------------------------------------------------------------------------------------


def state(mha: Any) -> dict[str, Array]:
    return {name: np.array(parameter.data) for name, parameter in mha.named_parameters()}


def unchanged(mha: Any, before: dict[str, Array]) -> bool:
    return all(equal(array, before[name]) for name, array in state(mha).items())


def check_m14(MHA: Any) -> None:
    mha = made(MHA, 4, 2)
    before = state(mha)
    refused(mha.load_packed_in_proj, packed(4)[0], packed(4)[1][:-1])
    assert unchanged(mha, before)


def check_m15(MHA: Any) -> None:
    mha = made(MHA, 4, 2)
    for name in QKV:
        getattr(mha, name).bias.data[...] = 1
    mha.load_packed_in_proj(packed(4)[0])
    assert all((getattr(mha, name).bias.data == 1).all() for name in QKV)


def check_m20(MHA: Any) -> None:
    mha, ones = made(MHA, 4, 2), np.ones((12, 4), dtype=np.float32)
    mha.load_packed_in_proj(ones)
    ones[...] = 0
    assert all((getattr(mha, name).weight.data == 1).all() for name in QKV)


def check_m41(MHA: Any) -> None:
    mha = made(MHA, 4, 2, bias=False)
    before = state(mha)
    refused(mha.load_packed_in_proj, *packed(4))
    assert unchanged(mha, before)


def check_m42(MHA: Any) -> None:
    mha = made(MHA, 4, 2)
    mha.load_packed_in_proj(counted(12, 4))
    assert equal(mha.q_proj.weight.data[0], [0, 1, 2, 3])


# -- what is refused -------------------------------------------------------------------------------------------------


def check_m05(MHA: Any) -> None:
    mha = made(MHA, 4, 2)
    mha.head_mask(true(2, 3), 1, 2, 3)
    refused(mha.head_mask, np.ones((2, 3)), 1, 2, 3)
    refused(mha.head_mask, np.ones((2, 3), dtype=int), 1, 2, 3)


def check_m08(MHA: Any) -> None:
    MHA(4, 2, 0.9), MHA(4, 2, 0.0)
    refused(MHA, 4, 2, 1.0)


def check_m16(MHA: Any) -> None:
    refused(made(MHA, 4, 2).head_mask, true(4), 1, 2, 4)


def check_m21(MHA: Any) -> None:
    refused(MHA, 6, 4)
    refused(MHA, 10, 3)


def check_m25(MHA: Any) -> None:
    refused(MHA, 0, 1)
    refused(MHA, 4, 0)


def check_m26(MHA: Any) -> None:
    for shape in ((5, 6), (1, 2, 5, 6), (2, 5, 12)):
        refused(made(MHA, 6, 2).split_heads, tensor(*shape))


def check_m28(MHA: Any) -> None:
    for array in (np.array([[0.0, 1.0]]), np.array([[0, 1]])):
        refused(made(MHA, 4, 2).head_mask, array, 1, 1, 2)


def check_m31(MHA: Any) -> None:
    for shape in ((4, 1, 2, 3), (1, 5, 2, 3)):
        refused(made(MHA, 6, 3).head_mask, true(*shape), 2, 2, 3)


def check_m32(MHA: Any) -> None:
    refused(made(MHA, 4, 2).attend, tensor(2, 3, 4), tensor(3, 3, 4))


# -- parameters ------------------------------------------------------------------------------------------------------


def check_m07(MHA: Any) -> None:
    names = list(MHA(4, 2, bias=False).state_dict())
    assert len(names) == 4 and all(name.endswith("weight") for name in names)
    assert len(MHA(4, 2, bias=True).state_dict()) == 8


def check_m13(MHA: Any) -> None:
    one, other = MHA(4, 2, rng=PCG32(1)), MHA(4, 2, rng=PCG32(2))
    assert not any(equal(getattr(one, name).weight.data, getattr(other, name).weight.data) for name in ALL)


def check_m22(MHA: Any) -> None:
    mha, rng = MHA(4, 2, rng=PCG32(1)), PCG32(1)
    for name in ALL:
        assert equal(getattr(mha, name).weight.data, Linear(4, 4, bias=True, rng=rng).weight.data)


def check_m23(MHA: Any) -> None:
    assert not equal(MHA(4, 2, rng=PCG32(1)).q_proj.weight.data, MHA(4, 2, rng=PCG32(2)).q_proj.weight.data)


def check_m24(MHA: Any) -> None:
    found = [getattr(MHA(4, 2), name).weight.data for name in ALL]
    assert not any(equal(found[i], found[j]) for i in range(4) for j in range(i))


# -- gradients -------------------------------------------------------------------------------------------------------


def check_m10(MHA: Any) -> None:
    mha, x_q, x_kv, factors = made(MHA, 4, 2), tensor(1, 2, 4), tensor(1, 3, 4, seed=2), numbers(1, 2, 4, seed=3)
    mha.attend(x_q, x_kv)[0].backward(factors.astype(np.float32))
    for name in ALL:
        parameter = getattr(mha, name).weight
        assert parameter.grad is not None
        sides = []
        for step in (0.01, -0.01):
            parameter.data[1, 2] += step
            sides.append(float((out(mha, x_q, x_kv) * factors).sum()))
            parameter.data[1, 2] -= step
        assert abs((sides[0] - sides[1]) / 0.02 - parameter.grad[1, 2]) < 0.01


def learns(call: Callable[[Tensor, Tensor], Tensor], *parameters: Tensor) -> None:
    x_q, x_kv = tensor(1, 2, 4, requires_grad=True), tensor(1, 3, 4, seed=2, requires_grad=True)
    result = call(x_q, x_kv)
    result.backward(numbers(*result.shape, seed=3).astype(np.float32))
    for leaf in (x_q, x_kv, *parameters):
        assert leaf.grad is not None and np.any(leaf.grad)


def check_m27(MHA: Any) -> None:
    mha = made(MHA, 4, 2)
    learns(lambda x_q, x_kv: mha.attend(x_q, x_kv)[0], *(getattr(mha, name).weight for name in QKV))


def check_m39(MHA: Any) -> None:
    learns(made(MHA, 4, 2))


# -- all of them -----------------------------------------------------------------------------------------------------

MUTANTS = [row["mid"] for row in variants.manifest()]


@pytest.mark.parametrize("mid", MUTANTS)
def test_the_last_hint_catches_its_mutant_and_accepts_every_correct_implementation(mid: str) -> None:
    check: Callable[[Any], None] = globals()[f"check_{mid}"]
    for name in variants.sources():
        if name not in MUTANTS:
            check(MHA_of(name))
    with pytest.raises((Exception, pytest.fail.Exception)):  # a test that ends in any error has caught it
        check(MHA_of(mid))
