"""Multi-head attention with queries scaled beforehand, and masked scores set to a large negative number."""

import numpy as np

from tinyllm.autograd import functional as F
from tinyllm.nn.layers import Linear
from tinyllm.nn.module import Module
from tinyllm.num.rng import PCG32

FAR_BELOW = -1e9  # exp of it is 0 in float32 and float64


class MultiHeadAttention(Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True, rng=None):
        super().__init__()
        if d_model < 1:
            raise ValueError("d_model")
        if n_heads < 1:
            raise ValueError("n_heads")
        if n_heads * (d_model // n_heads) != d_model:
            raise ValueError("d_model, n_heads")
        if not 0 <= dropout < 1:
            raise ValueError("dropout")
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.dropout = dropout
        self.has_bias = bias
        self.last_weights = None
        init = PCG32(0).substream("init") if rng is None else rng
        self.q_proj = Linear(d_model, d_model, bias=bias, rng=init)
        self.k_proj = Linear(d_model, d_model, bias=bias, rng=init)
        self.v_proj = Linear(d_model, d_model, bias=bias, rng=init)
        self.out_proj = Linear(d_model, d_model, bias=bias, rng=init)
        self._attention_noise = PCG32(0).substream("dropout")

    @property
    def head_dim(self):
        return self.d_head

    def split_heads(self, x):
        if x.ndim != 3:
            raise ValueError("axes")
        batch, length, width = x.shape
        if width != self.d_model:
            raise ValueError("width")
        return F.transpose(F.reshape(x, [batch, length, self.n_heads, self.head_dim]), 2, 1)

    def merge_heads(self, x):
        if x.ndim != 4:
            raise ValueError("axes")
        batch, heads, length, width = x.shape
        if heads != self.n_heads or width != self.head_dim:
            raise ValueError("heads")
        return F.reshape(F.transpose(x, 2, 1), [batch, length, self.d_model])

    def head_mask(self, mask, B, Tq, Tk):
        if mask is None:
            return None
        mask = np.asanyarray(mask)
        if mask.dtype != np.dtype(bool):
            raise ValueError("dtype")
        expand = {2: lambda m: m, 3: lambda m: m[:, None], 4: lambda m: m}.get(mask.ndim)
        if expand is None:
            raise ValueError("axes")
        expanded = expand(mask)
        target = (B, self.n_heads, Tq, Tk)[4 - expanded.ndim :]
        if any(have != want and have != 1 for have, want in zip(expanded.shape, target, strict=True)):
            raise ValueError("shape")
        return expanded

    def attend(self, x_q, x_kv, mask=None):
        if x_q.ndim != 3 or x_kv.ndim != 3:
            raise ValueError("axes")
        if x_q.shape[0] != x_kv.shape[0]:
            raise ValueError("batch")
        if x_q.shape[2] != self.d_model or x_kv.shape[2] != self.d_model:
            raise ValueError("width")
        mask = self.head_mask(mask, x_q.shape[0], x_q.shape[1], x_kv.shape[1])
        values = self.split_heads(self.v_proj(x_kv))
        keys = self.split_heads(self.k_proj(x_kv))
        queries = self.split_heads(self.q_proj(x_q) * self.head_dim**-0.5)
        scores = queries @ F.permute(keys, (0, 1, 3, 2))
        if mask is None:
            share = F.softmax(scores)
        else:
            mask = np.broadcast_to(mask, scores.shape)
            share = F.softmax(F.masked_fill(scores, ~mask, FAR_BELOW))
            # A query without any key got equal weights above; it has to read nothing.
            share = share * mask.astype(scores.dtype)
        self.last_weights = share.detach()
        if self.training:
            share = F.dropout(share, self.dropout, True, self._attention_noise)
        return self.out_proj(self.merge_heads(share @ values)), self.last_weights

    def forward(self, x_q, x_kv, mask=None):
        return self.attend(x_q, x_kv, mask)[0]

    def load_packed_in_proj(self, weight, bias=None):
        d = self.d_model
        weight = np.asarray(weight)
        if weight.shape != (3 * d, d):
            raise ValueError("weight")
        new = {f"{name}_proj.weight": weight[i * d : (i + 1) * d] for i, name in enumerate("qkv")}
        if bias is not None:
            bias = np.asarray(bias)
            if not self.has_bias or bias.shape != (3 * d,):
                raise ValueError("bias")
            new |= {f"{name}_proj.bias": bias[i * d : (i + 1) * d] for i, name in enumerate("qkv")}
        self.load_state_dict(new, strict=False)
