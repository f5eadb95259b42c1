"""A sequence and four projection weights go in; what every position read from itself and those before it comes out."""

import math

import torch
from torch import Tensor


def run_multihead_self_attention(
    d_model: int,
    num_heads: int,
    q_proj_weight: Tensor,
    k_proj_weight: Tensor,
    v_proj_weight: Tensor,
    o_proj_weight: Tensor,
    in_features: Tensor,
) -> Tensor:
    """Causal multi-head self-attention without biases (Vaswani et al., 2017, section 3.2.2).

        head_h = softmax(Q_h K_hᵀ / sqrt(d) + causal mask) V_h,    out = [head_0; ...; head_(H-1)] W_oᵀ

    Letters in shapes: T positions, D = d_model, H = num_heads, d = D / H; weights [D, D], in_features [..., T, D].
    """
    q = project(in_features, q_proj_weight)  # [..., T, D]
    k = project(in_features, k_proj_weight)  # [..., T, D]
    v = project(in_features, v_proj_weight)  # [..., T, D]
    q = split_heads(q, num_heads)  # [..., T, D] -> [..., H, T, d]
    k = split_heads(k, num_heads)  # [..., T, D] -> [..., H, T, d]
    v = split_heads(v, num_heads)  # [..., T, D] -> [..., H, T, d]
    context = attend(q, k, v)  # [..., H, T, d]
    merged = merge_heads(context)  # [..., H, T, d] -> [..., T, D]
    return project(merged, o_proj_weight)  # [..., T, D]


def project(x: Tensor, weight: Tensor) -> Tensor:
    """x [..., T, D] times a weight that holds a row for each output."""
    return x @ weight.transpose(0, 1)


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """[..., T, D] -> [..., H, T, d]; head h holds the features from h * d on."""
    *leading, T, D = x.shape
    x = x.reshape(*leading, T, num_heads, D // num_heads)  # [..., T, D] -> [..., T, H, d]
    return x.transpose(-3, -2)  # [..., T, H, d] -> [..., H, T, d]


def merge_heads(x: Tensor) -> Tensor:
    """[..., H, T, d] -> [..., T, D], the inverse of split_heads."""
    *leading, H, T, d = x.shape
    x = x.transpose(-3, -2)  # [..., H, T, d] -> [..., T, H, d]
    return x.reshape(*leading, T, H * d)  # [..., T, H, d] -> [..., T, D]


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Every head by itself, q, k and v [..., H, T, d]: position t averages the values of positions 0 to t."""
    T, d = q.shape[-2:]
    scores = q @ k.transpose(-2, -1)  # [..., H, T, T]
    scores = scores / math.sqrt(d)  # a dot product of d unit-variance terms has variance d
    future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(diagonal=1)  # [T, T], True above the diagonal
    scores = scores.masked_fill(future, -math.inf)
    weights = torch.softmax(scores, dim=-1)  # each row adds up to 1 over the keys
    return weights @ v  # [..., H, T, d]
