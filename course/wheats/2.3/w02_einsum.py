"""Multi-head attention as four einsums; the weights are cut into heads, so that nothing is split or merged."""

from torch import einsum, full, softmax, triu


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    """Letters: h heads, e a head's features, i and o features in and out, t queries, s keys."""
    x = in_features
    T, d = x.shape[-2], d_model // num_heads
    q, k, v = (
        einsum("...ti,hei->...hte", x, weight.reshape(num_heads, d, d_model))
        for weight in (q_proj_weight, k_proj_weight, v_proj_weight)
    )
    scores = einsum("...hte,...hse->...hts", q * d**-0.5, k)
    mask = triu(full((T, T), float("-inf"), dtype=x.dtype, device=x.device), 1)
    weights = softmax(scores + mask, dim=-1)
    context = einsum("...hts,...hse->...hte", weights, v)
    return einsum("...hte,ohe->...to", context, o_proj_weight.reshape(d_model, num_heads, d))
