# L5.3 - every head computed by itself, as in the paper's formula

import math
import numpy as np
from tinyllm.autograd import functional as F
from tinyllm.autograd.tensor import Tensor
from tinyllm.nn.layers import Linear
from tinyllm.nn.module import Module
from tinyllm.num.rng import PCG32


class MultiHeadAttention(Module):

    def __init__(self, d_model, n_heads, dropout=0.0, bias=True, rng=None):
        super().__init__()
        if d_model < 1 or n_heads < 1 or d_model % n_heads != 0:
            raise ValueError("bad sizes: d_model=%r n_heads=%r" % (d_model, n_heads))
        if not (0.0 <= dropout < 1.0):
            raise ValueError("bad dropout: %r" % dropout)
        self.d_model, self.n_heads, self.dropout = d_model, n_heads, dropout
        self.d_head = d_model // n_heads
        gen = rng if rng is not None else PCG32(0).substream("init")
        for which in ("q", "k", "v", "out"):
            setattr(self, which + "_proj", Linear(d_model, d_model, bias=bias, rng=gen))
        self.dropout_numbers = PCG32(0).substream("dropout")

    def _head(self, x, h):
        """[B, T, d] -> [B, T, dh], the features of head h"""
        return x[:, :, h * self.d_head:(h + 1) * self.d_head]

    def split_heads(self, x):
        if x.ndim != 3 or x.shape[2] != self.d_model:
            raise ValueError("expected [B, T, d_model]")
        return F.stack([self._head(x, h) for h in range(self.n_heads)], axis=1)

    def merge_heads(self, x):
        if x.ndim != 4 or x.shape[1] != self.n_heads or x.shape[3] != self.d_head:
            raise ValueError("expected [B, n_heads, T, d_head]")
        return F.concat([x[:, h] for h in range(self.n_heads)], axis=2)

    def head_mask(self, mask, B, Tq, Tk):
        if mask is None:
            return None
        m = np.array(mask)
        if m.dtype.kind != "b":
            raise ValueError("mask has to be boolean")
        if m.ndim not in (2, 3, 4):
            raise ValueError("mask has %d dims" % m.ndim)
        if m.ndim == 3:
            m = m.reshape(m.shape[0], 1, m.shape[1], m.shape[2])
        # always hand back the whole thing; broadcast_to raises ValueError by itself
        return np.broadcast_to(m, (B, self.n_heads, Tq, Tk)).copy()

    def attend(self, x_q, x_kv, mask=None):
        if x_q.ndim != 3 or x_kv.ndim != 3:
            raise ValueError("inputs need 3 dims")
        if x_q.shape[0] != x_kv.shape[0]:
            raise ValueError("batch sizes differ")
        if x_q.shape[2] != self.d_model or x_kv.shape[2] != self.d_model:
            raise ValueError("width is not d_model")
        B, Tq, Tk = x_q.shape[0], x_q.shape[1], x_kv.shape[1]
        m = self.head_mask(mask, B, Tq, Tk)

        keep = None
        if self.training and self.dropout > 0:
            u = self.dropout_numbers.uniforms(B * self.n_heads * Tq * Tk)
            keep = (u >= self.dropout).reshape(B, self.n_heads, Tq, Tk) / (1 - self.dropout)

        Q, K, V = self.q_proj(x_q), self.k_proj(x_kv), self.v_proj(x_kv)
        heads, all_weights = [None] * self.n_heads, [None] * self.n_heads
        h = 0
        while h < self.n_heads:
            scores = self._head(Q, h) @ F.transpose(self._head(K, h), 1, 2) / math.sqrt(self.d_head)
            if m is not None:
                scores = F.masked_fill(scores, ~m[:, h], -math.inf)
            weights = F.softmax(scores, axis=-1)
            all_weights[h] = weights.data
            if keep is not None:
                weights = weights * keep[:, h].astype(weights.dtype)
            heads[h] = weights @ self._head(V, h)
        out = self.out_proj(F.concat(heads, axis=2))
        weights = np.stack(all_weights, axis=1)
        return out, Tensor(weights, dtype=weights.dtype)

    def forward(self, x_q, x_kv, mask=None):
        return self.attend(x_q, x_kv, mask)[0]

    def load_packed_in_proj(self, weight, bias=None):
        w = np.asarray(weight)
        if w.shape != (3 * self.d_model, self.d_model):
            raise ValueError("weight has shape %s" % (w.shape,))
        if bias is not None:
            b = np.asarray(bias)
            if b.shape != (3 * self.d_model,):
                raise ValueError("bias has shape %s" % (b.shape,))
            if self.q_proj.bias is None:
                raise ValueError("no bias in this module")
        projs = [self.q_proj, self.k_proj, self.v_proj]
        for proj, rows in zip(projs, np.split(w, 3)):
            proj.weight.data[...] = rows
        if bias is not None:
            for proj, rows in zip(projs, np.split(b, 3)):
                proj.bias.data[...] = rows
