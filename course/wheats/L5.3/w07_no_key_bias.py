"""Multi-head attention that never adds the keys' bias: it moves all scores of a query alike, so softmax drops it."""

import numpy as np

from tinyllm.autograd.functional import matmul, reshape, transpose
from tinyllm.nn.layers import Linear
from tinyllm.nn.module import Module
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.sdpa import scaled_dot_product_attention


class MultiHeadAttention(Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True, rng=None):
        super().__init__()
        if d_model < 1 or n_heads < 1 or d_model % n_heads:
            raise ValueError(f"cannot cut {d_model} features into {n_heads} heads")
        if dropout < 0.0 or not dropout < 1.0:
            raise ValueError(f"cannot drop at rate {dropout}")
        self.d_model, self.n_heads, self.d_head, self.dropout = d_model, n_heads, d_model // n_heads, dropout
        init = rng if rng is not None else PCG32(0).substream("init")
        self.q_proj = Linear(d_model, d_model, bias, init)
        self.k_proj = Linear(d_model, d_model, bias, init)
        self.v_proj = Linear(d_model, d_model, bias, init)
        self.out_proj = Linear(d_model, d_model, bias, init)
        self._coins = PCG32(0).substream("dropout")

    def _is_sequence(self, x):
        return x.ndim == 3 and x.shape[-1] == self.d_model

    def split_heads(self, x):
        if not self._is_sequence(x):
            raise ValueError(f"not a batch of sequences: {x.shape}")
        return transpose(reshape(x, (x.shape[0], x.shape[1], self.n_heads, self.d_head)), 1, 2)

    def merge_heads(self, x):
        if x.ndim != 4 or x.shape[1] != self.n_heads or x.shape[-1] != self.d_head:
            raise ValueError(f"not a batch of heads: {x.shape}")
        together = transpose(x, 1, 2)
        return reshape(together, (*together.shape[:2], self.d_model))

    def head_mask(self, mask, B, Tq, Tk):
        if mask is None:
            return None
        mask = np.asarray(mask)
        if mask.dtype != bool or not 2 <= mask.ndim <= 4:
            raise ValueError(f"not a mask: {mask.dtype}, {mask.shape}")
        view = mask[:, None] if mask.ndim == 3 else mask
        try:
            return np.broadcast_to(view, (B, self.n_heads, Tq, Tk)).copy()
        except ValueError:
            raise ValueError(f"a mask for other sizes: {mask.shape}") from None

    def attend(self, x_q, x_kv, mask=None):
        if not self._is_sequence(x_q) or not self._is_sequence(x_kv) or len(x_q) != len(x_kv):
            raise ValueError(f"cannot attend from {x_q.shape} to {x_kv.shape}")
        for_heads = self.head_mask(mask, len(x_q), x_q.shape[1], x_kv.shape[1])
        keys = matmul(x_kv, transpose(self.k_proj.weight, 0, 1))
        drop = {"dropout_p": self.dropout, "rng": self._coins} if self.training and self.dropout else {}
        read, weights = scaled_dot_product_attention(
            self.split_heads(self.q_proj(x_q)),
            self.split_heads(keys),
            self.split_heads(self.v_proj(x_kv)),
            for_heads,
            **drop,
        )
        return self.out_proj(self.merge_heads(read)), weights

    def forward(self, x_q, x_kv, mask=None):
        out, weights = self.attend(x_q, x_kv, mask)
        del weights
        return out

    def load_packed_in_proj(self, weight, bias=None):
        n = self.d_model
        weight, bias = np.asarray(weight), None if bias is None else np.asarray(bias)
        if weight.ndim != 2 or weight.shape[0] != 3 * n or weight.shape[1] != n:
            raise ValueError(f"not a packed weight: {weight.shape}")
        if bias is not None and (self.q_proj.bias is None or bias.ndim != 1 or bias.shape[0] != 3 * n):
            raise ValueError(f"not a packed bias for this module: {bias.shape}")
        for place, linear in zip((0, n, 2 * n), (self.q_proj, self.k_proj, self.v_proj), strict=True):
            for row in range(n):
                linear.weight.data[row] = weight[place + row]
            if bias is not None:
                linear.bias.data[:n] = bias[place : place + n]
