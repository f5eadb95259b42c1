"""Multi-head attention without a mask: each position in turn reads the keys up to its own."""

import torch
from torch.nn.functional import linear


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    width = d_model // num_heads
    # [..., T, D] -> [..., T, H, d], which stays so: heads come before keys in the scores only
    queries = linear(in_features, q_proj_weight).unflatten(-1, (num_heads, width))
    keys = linear(in_features, k_proj_weight).unflatten(-1, (num_heads, width))
    values = linear(in_features, v_proj_weight).unflatten(-1, (num_heads, width))
    answers = []
    for t in range(in_features.shape[-2]):
        past = slice(0, t + 1)
        scores = (queries[..., t : t + 1, :, :] * keys[..., past, :, :]).sum(-1) * width**-0.5  # [..., t + 1, H]
        weights = torch.softmax(scores, dim=-2)
        answers.append((weights.unsqueeze(-1) * values[..., past, :, :]).sum(-3))  # [..., H, d]
    return linear(torch.stack(answers, dim=-3).flatten(-2), o_proj_weight)
