"""Tests a student might write that pass on the reference of unit 2.3 and deny a freedom: each named after it."""

import mha
import pytest
import torch


def drawn(*shape, dtype=torch.float64):
    random = torch.Generator().manual_seed(0)
    D = shape[-1]
    return [torch.randn(shape, generator=random, dtype=dtype)] + [
        torch.randn(D, D, generator=random, dtype=dtype) * D**-0.5 for _ in range(4)
    ]


def attend(num_heads, tensors):
    x, *weights = tensors
    return mha.run_multihead_self_attention(x.shape[-1], num_heads, *weights, x)


def test_inner_calls(monkeypatch):
    called = []
    original = torch.softmax
    monkeypatch.setattr(torch, "softmax", lambda *a, **k: (called.append(1), original(*a, **k))[1])
    attend(2, drawn(2, 3, 8))
    assert len(called) == 1


def test_further_names():
    x = torch.arange(24.0).reshape(1, 3, 8)
    assert torch.equal(mha.merge_heads(mha.split_heads(x, 2)), x)


def test_graph():
    x, *weights = drawn(2, 3, 8)
    out = attend(2, [x.requires_grad_(), *weights])
    names, waiting = [], [out.grad_fn]
    while waiting:
        node = waiting.pop()
        names.append(node.name())
        waiting.extend(following for following, _ in node.next_functions if following is not None)
    assert names.count("SoftmaxBackward0") == 1
    assert "MaskedFillBackward0" in names


def test_rounding():
    x, wq, wk, wv, wo = drawn(2, 7, 12, dtype=torch.float32)
    q, k, v = ((x @ w.T).reshape(2, 7, 3, 4).transpose(1, 2) for w in (wq, wk, wv))
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    weights = torch.softmax((q @ k.transpose(-2, -1) / 2.0).masked_fill(future, float("-inf")), dim=-1)
    assert torch.equal(attend(3, [x, wq, wk, wv, wo]), (weights @ v).transpose(1, 2).reshape(2, 7, 12) @ wo.T)


def test_uneven_heads():
    with pytest.raises(RuntimeError):
        attend(3, drawn(2, 4, 8))
