"""Multi-head attention, one head after another with sliced weights; each head's context is projected and added up."""

import torch


def _head(x, wq, wk, wv):
    """x [..., T, D] and a head's own rows [d, D] of three weights: its context [..., T, d]."""
    T = x.shape[-2]
    q, k, v = x @ wq.T, x @ wk.T, x @ wv.T
    scores = q @ k.mT / wq.shape[0] ** 0.5
    past = torch.tril(torch.ones(T, T, dtype=torch.bool))
    scores = torch.where(past, scores, float("-inf"))
    return scores.softmax(-1) @ v


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    d = d_model // num_heads
    out = 0
    for h in range(num_heads):
        rows = slice(h * d, (h + 1) * d)
        context = _head(in_features, q_proj_weight[rows], k_proj_weight[rows], v_proj_weight[rows])
        out = out + context @ o_proj_weight[:, rows].T
    return out
