import math

import torch
from torch import Tensor, nn


def run_multihead_self_attention(
    d_model: int,
    num_heads: int,
    q_proj_weight: Tensor,
    k_proj_weight: Tensor,
    v_proj_weight: Tensor,
    o_proj_weight: Tensor,
    in_features: Tensor,
) -> Tensor:
    d_k = d_model // num_heads
    qkv = nn.functional.linear(in_features, torch.vstack((q_proj_weight, k_proj_weight, v_proj_weight)))
    q, k, v = (part.unflatten(-1, (num_heads, d_k)).transpose(-2, -3) for part in qkv.split(d_model, dim=-1))
    scores = q.matmul(k.transpose(-1, -2)).div(math.sqrt(d_k))
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    attention = scores.masked_fill(future, torch.finfo(scores.dtype).min).softmax(-1)
    return nn.functional.linear(attention.matmul(v).transpose(-2, -3).flatten(-2), o_proj_weight)
