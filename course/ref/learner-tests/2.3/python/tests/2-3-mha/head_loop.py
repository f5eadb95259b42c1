"""Weights and an input go in; causal attention with one head after another, the numbers to compare with, comes out."""

import math

import torch
from mha import run_multihead_self_attention

NAMES = ("in_features", "q_proj_weight", "k_proj_weight", "v_proj_weight", "o_proj_weight")


def drawn(*shape, seed=0):
    """An input [..., T, D] and four weights [D, D], float64: none is symmetric, none is the identity."""
    random = torch.Generator().manual_seed(seed)
    D = shape[-1]
    x = torch.randn(shape, generator=random, dtype=torch.float64)
    return [x, *(torch.randn(D, D, generator=random, dtype=torch.float64) * D**-0.5 for _ in range(4))]


def attend(num_heads, tensors):
    x, *weights = tensors
    return run_multihead_self_attention(x.shape[-1], num_heads, *weights, x)


def expected(num_heads, tensors):
    """Each head from its own rows of q, k and v, and the columns of o that take up its context."""
    x, wq, wk, wv, wo = tensors
    T, d = x.shape[-2], x.shape[-1] // num_heads
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    out = 0
    for first in range(0, x.shape[-1], d):
        own = slice(first, first + d)
        scores = (x @ wq[own].T) @ (x @ wk[own].T).transpose(-2, -1) / math.sqrt(d)
        weights = torch.softmax(scores.masked_fill(future, -math.inf), -1)
        out = out + weights @ (x @ wv[own].T) @ wo[:, own].T
    return out


def same(actual, wanted):
    """The unit's criterion; shapes and dtypes have to be the same."""
    torch.testing.assert_close(actual, wanted, atol=1e-8, rtol=1e-6)


def gradients(function, num_heads, tensors, cotangent):
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    out = function(num_heads, leaves)
    return torch.autograd.grad((out * cotangent).sum(), leaves)
