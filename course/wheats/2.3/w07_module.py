"""Multi-head attention as a module of four Linears that is called with the given weights in the place of its own."""

import torch
from torch import nn
from torch.func import functional_call


class CausalSelfAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name in ("query", "key", "value", "output"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=False, device="meta"))

    def forward(self, x):
        *leading, T, D = x.shape
        shape = (*leading, T, self.num_heads, D // self.num_heads)
        query, key, value = (layer(x).reshape(shape).swapaxes(-2, -3) for layer in (self.query, self.key, self.value))
        scores = torch.einsum("...qd,...kd->...qk", query, key) / (D // self.num_heads) ** 0.5
        allowed = torch.ones((T, T), dtype=torch.bool, device=x.device).tril()
        weights = nn.functional.softmax(scores.masked_fill(~allowed, -torch.inf), dim=-1)
        return self.output((weights @ value).swapaxes(-2, -3).reshape(x.shape))


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    given = (q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    names = ("query.weight", "key.weight", "value.weight", "output.weight")
    module = CausalSelfAttention(d_model, num_heads)
    return functional_call(module, dict(zip(names, given, strict=True)), (in_features,))
