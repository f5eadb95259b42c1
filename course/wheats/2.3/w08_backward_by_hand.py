"""Multi-head attention whose core is one autograd function with a backward pass written by hand."""

import torch


class _CausalCore(torch.autograd.Function):
    """softmax(q k^T / sqrt(d) + causal mask) v of [..., H, T, d]."""

    @staticmethod
    def forward(ctx, q, k, v):
        ctx.scale = q.shape[-1] ** -0.5
        rows = torch.arange(q.shape[-2])
        scores = (q * ctx.scale) @ k.transpose(-2, -1)
        weights = torch.softmax(scores.masked_fill(rows[:, None] < rows, -torch.inf), -1)
        ctx.save_for_backward(q, k, v, weights)
        return weights @ v

    @staticmethod
    def backward(ctx, grad):
        q, k, v, weights = ctx.saved_tensors
        of_weights = grad @ v.transpose(-2, -1)
        of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) * ctx.scale
        return of_scores @ k, of_scores.transpose(-2, -1) @ q, weights.transpose(-2, -1) @ grad


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    *batch, T, D = in_features.shape
    weights = (q_proj_weight, k_proj_weight, v_proj_weight)
    q, k, v = (
        torch.nn.functional.linear(in_features, weight).reshape(*batch, T, num_heads, D // num_heads).transpose(-2, -3)
        for weight in weights
    )
    context = _CausalCore.apply(q, k, v)
    return torch.nn.functional.linear(context.transpose(-2, -3).reshape(*batch, T, D), o_proj_weight)
