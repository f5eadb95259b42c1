"""Multi-head attention, one head after another: slices of the projections in, concatenated contexts out."""

import math

import numpy as np

import tinyllm.autograd.functional as F
from tinyllm.nn.layers import Linear
from tinyllm.nn.module import Module
from tinyllm.num.rng import PCG32


class MultiHeadAttention(Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True, rng=None):
        super().__init__()
        if min(d_model, n_heads) < 1:
            raise ValueError("sizes start at 1")
        if d_model % n_heads:
            raise ValueError("the heads do not tile the model")
        if not 0.0 <= dropout < 1.0:
            raise ValueError("dropout is a rate below 1")
        self.d_model, self.n_heads, self.d_head = d_model, n_heads, d_model // n_heads
        self.dropout = dropout
        source = PCG32(0).substream("init") if rng is None else rng
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, Linear(d_model, d_model, bias, source))
        self._stream = PCG32(0).substream("dropout")

    def _slice(self, x, h):
        return x[:, :, h * self.d_head : (h + 1) * self.d_head]

    def split_heads(self, x):
        if x.ndim != 3 or x.shape[2] != self.d_model:
            raise ValueError("need [B, T, d_model]")
        return F.stack([self._slice(x, h) for h in range(self.n_heads)], axis=1)

    def merge_heads(self, x):
        if x.ndim != 4 or x.shape[1] != self.n_heads or x.shape[3] != self.d_head:
            raise ValueError("need [B, H, T, d_head]")
        return F.concat([x[:, h] for h in range(self.n_heads)], axis=2)

    def head_mask(self, mask, B, Tq, Tk):
        if mask is None:
            return None
        mask = np.asarray(mask)
        if mask.dtype != np.bool_ or mask.ndim not in (2, 3, 4):
            raise ValueError("need a bool mask of two to four axes")
        if mask.ndim == 3:
            mask = mask[:, np.newaxis]
        # A fresh array of the full shape; broadcast_to raises ValueError when it does not fit.
        return np.array(np.broadcast_to(mask, (B, self.n_heads, Tq, Tk)))

    def attend(self, x_q, x_kv, mask=None):
        for x in (x_q, x_kv):
            if x.ndim != 3 or x.shape[2] != self.d_model:
                raise ValueError("need [B, T, d_model]")
        if x_q.shape[0] != x_kv.shape[0]:
            raise ValueError("two batch sizes")
        B, Tq, Tk = x_q.shape[0], x_q.shape[1], x_kv.shape[1]
        allowed = self.head_mask(mask, B, Tq, Tk)
        factor = self._dropout_factor((B, self.n_heads, Tq, Tk))
        q, k, v = self.q_proj(x_q), self.k_proj(x_kv), self.v_proj(x_kv)
        contexts, weights = [], []
        for h in range(self.n_heads):
            scores = self._slice(q, h) @ F.transpose(self._slice(k, h), 1, 2) / math.sqrt(self.d_head)
            if allowed is not None:
                scores = F.masked_fill(scores, ~allowed[:, h], -np.inf)
            share = F.softmax(scores, axis=-1)
            weights.append(share.detach())
            kept = share if factor is None else share * factor[:, h].astype(share.dtype)
            contexts.append(kept @ self._slice(v, h))
        return self.out_proj(F.concat(contexts, axis=2)), F.stack(weights, axis=1)

    def _dropout_factor(self, shape):
        # Drawn for all heads before the loop, so that the stream is used in the order of [B, H, Tq, Tk].
        if not self.training or self.dropout == 0:
            return None
        draws = self._stream.uniforms(math.prod(shape)).reshape(shape)
        return (draws >= self.dropout) / (1 - self.dropout)

    def forward(self, x_q, x_kv, mask=None):
        out, _ = self.attend(x_q, x_kv, mask)
        return out

    def load_packed_in_proj(self, weight, bias=None):
        d = self.d_model
        weight, bias = np.asarray(weight), None if bias is None else np.asarray(bias)
        if weight.shape != (3 * d, d):
            raise ValueError("need a weight of [3d, d]")
        if bias is not None and self.q_proj.bias is None:
            raise ValueError("there is no bias to load into")
        if bias is not None and bias.shape != (3 * d,):
            raise ValueError("need a bias of [3d]")
        for i, linear in enumerate((self.q_proj, self.k_proj, self.v_proj)):
            linear.weight.data[...] = weight[i * d : i * d + d]
            if bias is not None:
                linear.bias.data[...] = bias[i * d : i * d + d]
