import math

import torch
import torch.nn.functional as F


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    *batch, T, _ = in_features.shape
    d = d_model // num_heads

    def heads(weight):
        return (in_features @ weight.T).reshape(*batch, T, num_heads, d).transpose(-3, -2)

    q, k, v = heads(q_proj_weight), heads(k_proj_weight), heads(v_proj_weight)
    scores = q @ k.transpose(-2, -1) / math.sqrt(d)
    scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), float("-inf"))
    weights = F.softmax(scores, dim=-1)
    context = weights @ v
    context = context.transpose(-3, -2)
    return context.view(*batch, T, d_model) @ o_proj_weight.T
