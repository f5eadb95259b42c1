"""Everything against a loop over heads that gets the same weights."""

import math

import pytest
import torch
from mha import run_multihead_self_attention

TOLERANCE = {"atol": 1e-8, "rtol": 1e-6}


def per_head(D, H, wq, wk, wv, wo, x):
    d, T = D // H, x.shape[-2]
    mask = torch.triu(torch.full((T, T), -math.inf, dtype=x.dtype), diagonal=1)
    heads = []
    for h in range(H):
        s = slice(h * d, (h + 1) * d)
        q, k, v = x @ wq[s].T, x @ wk[s].T, x @ wv[s].T
        heads.append(torch.softmax(q @ k.mT / math.sqrt(d) + mask, dim=-1) @ v)
    return torch.cat(heads, dim=-1) @ wo.T


def make(D, *shape, seed=0):
    g = torch.Generator().manual_seed(seed)
    weights = [torch.randn(D, D, generator=g, dtype=torch.float64) / D**0.5 for _ in range(4)]
    return weights, torch.randn(*shape, D, generator=g, dtype=torch.float64)


@pytest.mark.parametrize("D,H,shape", [(8, 2, (2, 3)), (6, 1, (2, 4)), (12, 3, (3, 5)), (12, 4, (1, 6)), (6, 3, (4,))])
def test_forward(D, H, shape):
    weights, x = make(D, *shape)
    out = run_multihead_self_attention(D, H, *weights, x)
    torch.testing.assert_close(out, per_head(D, H, *weights, x), **TOLERANCE)


@pytest.mark.parametrize("D,H", [(8, 2), (6, 1), (12, 4)])
def test_gradients_of_input_and_projections(D, H):
    weights, x = make(D, 2, 5, seed=1)
    cotangent = torch.randn(2, 5, D, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    grads = []
    for f in (run_multihead_self_attention, per_head):
        leaves = [t.clone().requires_grad_() for t in (*weights, x)]
        (f(D, H, *leaves) * cotangent).sum().backward()
        grads.append([t.grad for t in leaves])
    for actual, expected in zip(*grads, strict=True):
        torch.testing.assert_close(actual, expected, **TOLERANCE)


def test_non_contiguous_input():
    weights, x = make(12, 3, 5, seed=2)
    turned = x.transpose(0, 1).contiguous().transpose(0, 1)
    assert not turned.is_contiguous()
    torch.testing.assert_close(
        run_multihead_self_attention(12, 3, *weights, turned), per_head(12, 3, *weights, x), **TOLERANCE
    )


def test_core_against_sdpa():
    weights, x = make(8, 2, 6, seed=3)
    weights[3] = torch.eye(8, dtype=torch.float64)
    q, k, v = ((x @ w.T).view(2, 6, 2, 4).transpose(1, 2) for w in weights[:3])
    core = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.0, is_causal=True)
    out = run_multihead_self_attention(8, 2, *weights, x)
    torch.testing.assert_close(out, core.transpose(1, 2).reshape(2, 6, 8), **TOLERANCE)


def test_twice_the_same_and_nothing_overwritten():
    weights, x = make(8, 2, 6, seed=4)
    before = [t.clone() for t in (*weights, x)]
    first = run_multihead_self_attention(8, 4, *weights, x)
    torch.testing.assert_close(run_multihead_self_attention(8, 4, *weights, x), first, atol=0, rtol=0)
    for t, b in zip((*weights, x), before, strict=True):
        torch.testing.assert_close(t, b, atol=0, rtol=0)
