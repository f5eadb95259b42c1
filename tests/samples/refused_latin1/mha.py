"""Aufmerksamkeit mit mehreren Köpfen."""

import numpy as np

from tinyllm.autograd import functional as F
from tinyllm.nn.layers import Linear
from tinyllm.nn.module import Module
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.sdpa import scaled_dot_product_attention


class MultiHeadAttention(Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True, rng=None):
        super().__init__()
        if d_model < 1:
            raise ValueError(f"d_model has to be positive, not {d_model}")
        if n_heads < 1:
            raise ValueError(f"n_heads has to be positive, not {n_heads}")
        if d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide a width of {d_model}")
        if dropout < 0 or dropout >= 1:
            raise ValueError(f"dropout {dropout} is outside [0, 1)")

        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.dropout = dropout
        self.drop_rng = PCG32(0).substream("dropout")

        if rng is None:
            rng = PCG32(0).substream("init")
        self.q_proj = Linear(d_model, d_model, bias, rng)
        self.k_proj = Linear(d_model, d_model, bias, rng)
        self.v_proj = Linear(d_model, d_model, bias, rng)
        self.out_proj = Linear(d_model, d_model, bias, rng)

    def split_heads(self, x):
        if len(x.shape) != 3 or x.shape[-1] != self.d_model:
            raise ValueError(f"split_heads wants [B, T, {self.d_model}], got {x.shape}")
        batch, length = x.shape[:2]
        # feature axis -> (head, feature inside the head), then heads in front of positions
        per_position = F.reshape(x, (batch, length, self.n_heads, self.d_head))
        return F.permute(per_position, (0, 2, 1, 3))

    def merge_heads(self, x):
        if len(x.shape) != 4 or (x.shape[1], x.shape[3]) != (self.n_heads, self.d_head):
            raise ValueError(f"merge_heads wants [B, {self.n_heads}, T, {self.d_head}], got {x.shape}")
        batch, _, length, _ = x.shape
        per_position = F.permute(x, (0, 2, 1, 3))
        return F.reshape(per_position, (batch, length, self.d_model))

    def head_mask(self, mask, B, Tq, Tk):
        if mask is None:
            return None
        mask = np.asarray(mask)
        if mask.dtype != bool:
            raise ValueError(f"the mask must be bool, not {mask.dtype}")
        if mask.ndim < 2 or mask.ndim > 4:
            raise ValueError(f"the mask must have 2, 3 or 4 axes, not {mask.ndim}")
        if mask.ndim == 3:
            mask = np.expand_dims(mask, 1)  # one mask per sequence, the same for its heads
        try:
            np.broadcast_to(mask, (B, self.n_heads, Tq, Tk))
        except ValueError:
            raise ValueError(f"a mask of shape {mask.shape} does not fit {(B, self.n_heads, Tq, Tk)}") from None
        return mask

    def attend(self, x_q, x_kv, mask=None):
        for x in (x_q, x_kv):
            if len(x.shape) != 3 or x.shape[-1] != self.d_model:
                raise ValueError(f"inputs must be [B, T, {self.d_model}], got {x.shape}")
        if x_q.shape[0] != x_kv.shape[0]:
            raise ValueError(f"{x_q.shape[0]} sequences of queries but {x_kv.shape[0]} of keys")

        mask = self.head_mask(mask, x_q.shape[0], x_q.shape[1], x_kv.shape[1])
        q = self.split_heads(self.q_proj(x_q))
        k = self.split_heads(self.k_proj(x_kv))
        v = self.split_heads(self.v_proj(x_kv))
        context, weights = scaled_dot_product_attention(
            q,
            k,
            v,
            mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
            rng=self.drop_rng,
        )
        return self.out_proj(self.merge_heads(context)), weights

    def forward(self, x_q, x_kv, mask=None):
        out, _ = self.attend(x_q, x_kv, mask)
        return out

    def load_packed_in_proj(self, weight, bias=None):
        d = self.d_model
        weight = np.asarray(weight)
        if weight.shape != (3 * d, d):
            raise ValueError(f"the packed weight must be {(3 * d, d)}, got {weight.shape}")
        if bias is not None:
            bias = np.asarray(bias)
            if bias.shape != (3 * d,):
                raise ValueError(f"the packed bias must be {(3 * d,)}, got {bias.shape}")
            if self.q_proj.bias is None:
                raise ValueError("there is no bias to load into")
        for i, proj in enumerate([self.q_proj, self.k_proj, self.v_proj]):
            proj.weight.data[:] = weight[i * d : (i + 1) * d]
            if bias is not None:
                proj.bias.data[:] = bias[i * d : (i + 1) * d]
