"""Multi-head attention with batch and heads as one axis: baddbmm adds the mask, and copies make the views."""

import torch


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    shape = in_features.shape
    T, d = shape[-2], d_model // num_heads
    x = in_features.reshape(-1, T, d_model)
    B = x.shape[0]

    def heads(weight):
        """[D, D] -> [B * H, T, d]."""
        projected = torch.einsum("btd,ed->bte", x, weight).reshape(B, T, num_heads, d)
        return projected.permute(0, 2, 1, 3).contiguous().view(B * num_heads, T, d)

    mask = torch.full((T, T), -1e30, dtype=x.dtype, device=x.device).triu_(1).expand(B * num_heads, T, T)
    scores = torch.baddbmm(mask, heads(q_proj_weight), heads(k_proj_weight).transpose(1, 2), alpha=d**-0.5)
    context = torch.bmm(torch.exp(torch.log_softmax(scores, dim=2)), heads(v_proj_weight))
    merged = context.view(B, num_heads, T, d).permute(0, 2, 1, 3).contiguous().view(B, T, d_model)
    return torch.einsum("btd,ed->bte", merged, o_proj_weight).reshape(shape)
