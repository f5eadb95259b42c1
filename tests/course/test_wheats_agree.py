"""Every wheat does what the reference does: on random sizes, masks, dtypes and modes, and on bad arguments."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.course import variants
from tinyllm.autograd.tensor import Tensor
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.mha import MultiHeadAttention

WHEATS = [name for name in variants.sources() if name.startswith("w")]
CASES = 40


def loaded(name: str) -> Any:
    """The wheat's class, beside the reference's."""
    module = ModuleType(name)
    exec(compile(variants.sources()[name], f"{name}.py", "exec"), module.__dict__)
    return module.MultiHeadAttention


def random_mask(draw: np.random.Generator, B: int, H: int, Tq: int, Tk: int) -> NDArray[np.bool_] | None:
    """None, or a mask of any legal form; some queries may be left without keys."""
    full = [(Tq, Tk), (B, Tq, Tk), (B, H, Tq, Tk), (B, 1, 1, Tk), (1, H, Tq, 1), (1, 1, Tq, Tk)]
    form = int(draw.integers(len(full) + 1))
    return None if form == len(full) else draw.random(full[form]) < 0.6


def observed(cls: Any, seed: int) -> dict[str, NDArray[Any]]:
    """Everything one random case shows: outputs and weights of two calls, and all gradients."""
    draw = np.random.default_rng(seed)
    H, dh, B, Tq, Tk = (int(n) for n in draw.integers(1, 5, size=5))
    d, dtype = H * dh, np.dtype(draw.choice(["float32", "float64"]))
    bias, training = bool(draw.integers(2)), bool(draw.integers(2))
    mha = cls(d, H, dropout=float(draw.choice([0.0, 0.3])), bias=bias, rng=PCG32(seed))
    mha.train(training)
    seen = {f"init {name}": array for name, array in mha.state_dict().items()}
    packed = draw.standard_normal((3 * d, d)), draw.standard_normal(3 * d) if bias else None
    mha.load_packed_in_proj(packed[0], packed[1] if draw.integers(2) else None)
    for _, parameter in mha.named_parameters():
        parameter.data = parameter.data.astype(dtype)
    x_q = Tensor(draw.standard_normal((B, d, Tq)).transpose(0, 2, 1), requires_grad=True, dtype=dtype)
    same = Tq == Tk and bool(draw.integers(2))
    x_kv = x_q if same else Tensor(draw.standard_normal((B, Tk, d)), requires_grad=True, dtype=dtype)
    mask = random_mask(draw, B, H, Tq, Tk)
    before = None if mask is None else mask.copy()
    for call in range(2):
        out, weights = mha.attend(x_q, x_kv, mask)
        out.backward(draw.standard_normal(out.shape))
        seen |= {f"out {call}": out.data, f"weights {call}": weights.data}
    assert before is None or np.array_equal(mask, before)
    for name, parameter in mha.named_parameters():
        seen[name] = parameter.data
        seen[f"grad {name}"] = np.zeros_like(parameter.data) if parameter.grad is None else parameter.grad
    return seen | {"grad x_q": x_q.grad, "grad x_kv": x_kv.grad}


@pytest.mark.parametrize("name", WHEATS)
def test_wheat_agrees_with_the_reference_on_random_cases(name: str) -> None:
    cls = loaded(name)
    for seed in range(CASES):
        expected, actual = observed(MultiHeadAttention, seed), observed(cls, seed)
        assert list(actual) == list(expected)
        for what, array in expected.items():
            assert (actual[what].shape, actual[what].dtype) == (array.shape, array.dtype), (seed, what)
            atol = 1e-11 if array.dtype == np.float64 else 5e-6 * max(1.0, float(np.abs(array).max()))
            np.testing.assert_allclose(actual[what], array, rtol=1e-5, atol=atol, err_msg=f"{seed} {what}")


def refusals(cls: Any) -> list[Callable[[], Any]]:
    """Calls that have to raise ValueError."""
    mha, plain = cls(6, 2), cls(6, 2, bias=False)
    x = [Tensor(np.zeros(shape)) for shape in ((2, 3, 6), (2, 5, 6), (1, 5, 6), (2, 5, 4), (3, 6), (1, 2, 3, 6))]
    bad_masks = [np.ones(5, bool), np.ones((1, 1, 2, 3, 5), bool), np.ones((3, 5)), np.ones((3, 3, 5), bool)]
    bad_masks += [np.ones((2, 3, 3, 5), bool), np.ones((5, 3), bool), np.ones((2, 3, 5), np.int8)]
    bad_sizes = [(0, 1), (6, 0), (6, 4), (-2, 1), (6, -2), (2, 6), (6, 2, 1.0), (6, 2, -0.5)]
    packed, packed_bias = np.zeros((18, 6)), np.zeros(18)
    return [
        *[lambda a=arguments: cls(*a) for arguments in bad_sizes],
        *[lambda x_kv=x_kv: mha.attend(x[0], x_kv) for x_kv in x[2:]],
        *[lambda x_q=x_q: mha.forward(x_q, x[1]) for x_q in x[2:]],
        *[lambda m=mask: mha.head_mask(m, 2, 3, 5) for mask in bad_masks],
        *[lambda m=mask: mha.attend(x[0], x[1], m) for mask in bad_masks],
        *[lambda t=t: mha.split_heads(t) for t in x[3:]],
        *[lambda t=t: mha.merge_heads(t) for t in x],
        lambda: mha.load_packed_in_proj(packed[1:]),
        lambda: mha.load_packed_in_proj(packed.T),
        lambda: mha.load_packed_in_proj(packed, packed_bias[1:]),
        lambda: plain.load_packed_in_proj(packed, packed_bias),
    ]


@pytest.mark.parametrize("name", ["reference", *WHEATS])
def test_what_the_contract_refuses_is_refused(name: str) -> None:
    for call in refusals(MultiHeadAttention if name == "reference" else loaded(name)):
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("name", WHEATS)
def test_wheat_takes_lists_where_the_reference_does(name: str) -> None:
    mha = loaded(name)(4, 2)
    x = Tensor(np.ones((1, 2, 4)))
    assert mha.head_mask([[True, False], [True, True]], 1, 2, 2) is not None
    mha.attend(x, x, [[True, False], [True, True]])
    mha.load_packed_in_proj(np.ones((12, 4)).tolist(), np.ones(12).tolist())
    assert np.all(mha.state_dict()["v_proj.bias"] == 1)
