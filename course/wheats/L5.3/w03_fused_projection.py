"""Multi-head attention with one product for queries, keys and values; the parameters stay four Linears."""

import numpy as np

from tinyllm.autograd import functional as F
from tinyllm.nn.layers import Linear
from tinyllm.nn.module import Module
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.sdpa import scaled_dot_product_attention


def _project(x, linears):
    """x [B, T, d] through several Linears at once: a list of [B, T, d]."""
    d = x.shape[-1]
    weight = F.concat([linear.weight for linear in linears], axis=0)
    y = F.matmul(x, F.transpose(weight, 0, 1))
    if linears[0].bias is not None:
        y = y + F.concat([linear.bias for linear in linears], axis=0)
    return [y[:, :, i * d : (i + 1) * d] for i in range(len(linears))]


class MultiHeadAttention(Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True, rng=None):
        super().__init__()
        if d_model <= 0 or n_heads <= 0:
            raise ValueError(f"d_model = {d_model} and n_heads = {n_heads} have to be positive")
        d_head, rest = divmod(d_model, n_heads)
        if rest != 0:
            raise ValueError(f"d_model = {d_model} leaves {rest} over for n_heads = {n_heads}")
        if dropout < 0 or dropout >= 1:
            raise ValueError(f"dropout = {dropout}")
        self.d_model, self.n_heads, self.d_head, self.dropout = d_model, n_heads, d_head, dropout
        rng = rng or PCG32(0).substream("init")
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (Linear(d_model, d_model, bias, rng) for _ in range(4))
        self._dropout_rng = PCG32(0).substream("dropout")

    def split_heads(self, x):
        if x.ndim != 3 or x.shape[-1] != self.d_model:
            raise ValueError(f"[B, T, {self.d_model}] expected, {list(x.shape)} given")
        B, T, _ = x.shape
        # [B, T, d] -> [B, d, T] -> [B, H, dh, T] -> [B, H, T, dh]
        columns = F.reshape(F.transpose(x, 1, 2), (B, self.n_heads, self.d_head, T))
        return F.transpose(columns, 2, 3)

    def merge_heads(self, x):
        if x.ndim != 4 or x.shape[1] != self.n_heads or x.shape[3] != self.d_head:
            raise ValueError(f"[B, {self.n_heads}, T, {self.d_head}] expected, {list(x.shape)} given")
        B, _, T, _ = x.shape
        # [B, H, T, dh] -> [B, H, dh, T] -> [B, d, T] -> [B, T, d]
        return F.transpose(F.reshape(F.transpose(x, 2, 3), (B, self.d_model, T)), 1, 2)

    def head_mask(self, mask, B, Tq, Tk):
        if mask is None:
            return None
        mask = np.asarray(mask)
        if mask.dtype != bool:
            raise ValueError(f"mask of dtype {mask.dtype}")
        if mask.ndim == 3:
            mask = np.expand_dims(mask, 1)
        elif mask.ndim not in (2, 4):
            raise ValueError(f"mask of {mask.ndim} axes")
        return np.broadcast_to(mask, (B, self.n_heads, Tq, Tk))  # read-only; ValueError when it does not fit

    def attend(self, x_q, x_kv, mask=None):
        if x_q.ndim != 3 or x_kv.ndim != 3 or x_q.shape[0] != x_kv.shape[0]:
            raise ValueError(f"inputs {list(x_q.shape)} and {list(x_kv.shape)} do not belong together")
        if {x_q.shape[2], x_kv.shape[2]} != {self.d_model}:
            raise ValueError(f"inputs {list(x_q.shape)} and {list(x_kv.shape)} for width {self.d_model}")
        mask = self.head_mask(mask, x_q.shape[0], x_q.shape[1], x_kv.shape[1])
        if x_q is x_kv:
            q, k, v = _project(x_q, [self.q_proj, self.k_proj, self.v_proj])
        else:
            q = self.q_proj(x_q)
            k, v = _project(x_kv, [self.k_proj, self.v_proj])
        context, weights = scaled_dot_product_attention(
            self.split_heads(q),
            self.split_heads(k),
            self.split_heads(v),
            mask,
            self.dropout if self.training else 0.0,
            rng=self._dropout_rng,
        )
        return self.out_proj(self.merge_heads(context)), weights

    def forward(self, x_q, x_kv, mask=None):
        return self.attend(x_q, x_kv, mask)[0]

    def load_packed_in_proj(self, weight, bias=None):
        d = self.d_model
        state = self.state_dict()
        packed = {"weight": np.asarray(weight)}
        if bias is not None:
            packed["bias"] = np.asarray(bias)
        for kind, array in packed.items():
            if f"q_proj.{kind}" not in state:
                raise ValueError(f"no {kind} in this module")
            if array.shape != (3 * d, d)[: 2 if kind == "weight" else 1]:
                raise ValueError(f"{kind} of {list(array.shape)}")
        for kind, array in packed.items():
            for i, name in enumerate("qkv"):
                state[f"{name}_proj.{kind}"] = array[i * d : (i + 1) * d]
        self.load_state_dict(state)
