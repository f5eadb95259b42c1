"""Multi-head attention with one product for queries, keys and values, and its heads found by unflatten and movedim."""

import torch
from torch.nn.functional import linear


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    T = in_features.size(-2)
    packed = torch.cat([q_proj_weight, k_proj_weight, v_proj_weight], dim=0)
    # [..., T, 3 D] -> [..., T, 3, H, d]
    heads = linear(in_features, packed).unflatten(-1, (3, num_heads, d_model // num_heads))
    q, k, v = _heads(heads)
    hidden = torch.arange(T)[None, :] > torch.arange(T)[:, None]
    scores = torch.matmul(q, k.transpose(-1, -2)).mul(q.size(-1) ** -0.5)
    scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    context = torch.matmul(scores.softmax(dim=-1), v)
    return linear(context.movedim(-3, -2).flatten(-2), o_proj_weight)


def _heads(packed):
    """[..., T, 3, H, d] -> three of [..., H, T, d]."""
    return packed.movedim(-3, 0).movedim(-2, -3).unbind(0)
