"""Tests a student might write that pass on the reference and deny a freedom: one for each, named after it."""

import numpy as np
import pytest

import tinyllm.xfmr.mha as unit
from tinyllm.autograd.tensor import Tensor
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.mha import MultiHeadAttention
from tinyllm.xfmr.sdpa import sdpa_forward


def inputs(dtype=np.float64):
    draw = np.random.default_rng(0)
    mha = MultiHeadAttention(6, 2, rng=PCG32(1))
    for _, parameter in mha.named_parameters():
        parameter.data = draw.standard_normal(parameter.shape).astype(dtype)
    x_q, x_kv = (Tensor(draw.standard_normal((2, T, 6)), dtype=dtype) for T in (3, 4))
    return mha, x_q, x_kv


def test_inner_calls(monkeypatch):
    mha, x_q, x_kv = inputs()
    calls = []
    original = unit.scaled_dot_product_attention
    monkeypatch.setattr(unit, "scaled_dot_product_attention", lambda *a, **k: (calls.append(1), original(*a, **k))[1])
    mha(x_q, x_kv)
    assert len(calls) == 1


def test_projections_called(monkeypatch):
    mha, x_q, x_kv = inputs()
    calls = []
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        linear = getattr(mha, name)
        original = linear.forward
        monkeypatch.setattr(
            linear, "forward", lambda x, name=name, original=original: (calls.append(name), original(x))[1]
        )
    mha(x_q, x_kv)
    assert sorted(calls) == ["k_proj", "out_proj", "q_proj", "v_proj"]


def test_mask_representation():
    mha, _, _ = inputs()
    mask = np.ones((2, 3, 4), dtype=bool)
    assert mha.head_mask(mask[0], 2, 3, 4).shape == (3, 4)
    assert mha.head_mask(mask, 2, 3, 4).shape == (2, 1, 3, 4)
    assert np.shares_memory(mha.head_mask(mask, 2, 3, 4), mask)


def test_rounding():
    mha, x_q, x_kv = inputs(np.float32)
    out, weights = mha.attend(x_q, x_kv)
    q, k, v = mha.q_proj(x_q), mha.k_proj(x_kv), mha.v_proj(x_kv)
    heads = [mha.split_heads(x).data for x in (q, k, v)]
    context, expected = sdpa_forward(*heads)
    np.testing.assert_array_equal(weights.data, expected)
    np.testing.assert_array_equal(out.data, mha.out_proj(mha.merge_heads(Tensor(context))).data)


def test_key_bias_gradient():
    mha, x_q, x_kv = inputs()
    mha(x_q, x_kv).backward(np.ones((2, 3, 6)))
    assert all(parameter.grad is not None for parameter in mha.parameters())


def test_private_names():
    mha = MultiHeadAttention(6, 2, dropout=0.5)
    assert mha._dropout_rng.uniform() == PCG32(0).substream("dropout").uniform()


def test_error_texts():
    with pytest.raises(ValueError, match="must divide"):
        MultiHeadAttention(6, 4)


def test_error_class():
    with pytest.raises(ValueError) as caught:
        MultiHeadAttention(6, 4)
    assert caught.type is ValueError


def test_memory_layout():
    mha, x_q, _ = inputs()
    heads = mha.split_heads(x_q)
    assert np.shares_memory(heads.data, x_q.data)
    assert mha.merge_heads(Tensor(np.ones((2, 2, 3, 3)))).data.flags["C_CONTIGUOUS"]
