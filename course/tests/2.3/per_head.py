"""Four weights and an input go in; causal multi-head attention, one head after another, comes out: the oracle.

Written without splitting, merging or a batch of heads: every head has its own rows of the query, key and value weights,
its own [T, T] scores, and its own columns of the output weight.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def loop_over_heads(num_heads: int, weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """x [..., T, D] with weights q, k, v, o, each [D, D]: the output [..., T, D], differentiable in all five."""
    wq, wk, wv, wo = weights
    D = x.shape[-1]
    d = D // num_heads
    out = torch.zeros_like(x)
    for h in range(num_heads):
        own = slice(h * d, (h + 1) * d)
        context = causal_head(x @ wq[own].T, x @ wk[own].T, x @ wv[own].T)  # [..., T, d]
        out = out + context @ wo[:, own].T  # [..., T, D]
    return out


def causal_head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One head, q, k and v [..., T, d], one position after another: each reads from those up to itself."""
    T, d = q.shape[-2:]
    rows = []
    for t in range(T):
        scores = (k[..., : t + 1, :] * q[..., t : t + 1, :]).sum(-1) / math.sqrt(d)  # [..., t + 1]
        powers = torch.exp(scores - scores.max(-1, keepdim=True).values)
        weights = powers / powers.sum(-1, keepdim=True)
        rows.append((weights[..., None] * v[..., : t + 1, :]).sum(-2))  # [..., d]
    return torch.stack(rows, dim=-2)
