import torch


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    *lead, T, D = in_features.shape
    H, d = num_heads, d_model // num_heads

    q = torch.einsum("...ti,oi->...to", in_features, q_proj_weight).reshape(*lead, T, H, d)
    k = torch.einsum("...ti,oi->...to", in_features, k_proj_weight).reshape(*lead, T, H, d)
    v = torch.einsum("...ti,oi->...to", in_features, v_proj_weight).reshape(*lead, T, H, d)

    # heads come in front only in the scores
    scores = torch.einsum("...qhd,...khd->...hqk", q, k) / d**0.5
    causal = torch.tril(torch.ones(T, T, dtype=torch.bool, device=scores.device))
    scores = scores.masked_fill(~causal, float("-inf"))
    out = torch.einsum("...hqk,...khd->...qhd", scores.softmax(dim=-1), v)
    return torch.einsum("...ti,oi->...to", out.reshape(*lead, T, D), o_proj_weight)
