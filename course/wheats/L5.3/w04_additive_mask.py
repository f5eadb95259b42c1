"""Multi-head attention with batch and heads folded into one axis, and masks added to the scores."""

import numpy as np

from tinyllm.autograd import functional as F
from tinyllm.nn.layers import Linear
from tinyllm.nn.module import Module
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.masks import to_additive


class MultiHeadAttention(Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True, rng=None):
        super().__init__()
        if d_model < 1 or n_heads < 1 or d_model % n_heads != 0 or not (dropout >= 0 and dropout < 1):
            raise ValueError("these arguments describe no attention")
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.dropout = dropout
        if rng is None:
            rng = PCG32(0).substream("init")
        self.q_proj = Linear(d_model, d_model, bias, rng)
        self.k_proj = Linear(d_model, d_model, bias, rng)
        self.v_proj = Linear(d_model, d_model, bias, rng)
        self.out_proj = Linear(d_model, d_model, bias, rng)
        self._dropout_rng = PCG32(0).substream("dropout")

    def fold(self, x):
        """[B, T, d] -> [B * H, T, dh]."""
        B, T, _ = x.shape
        return F.reshape(self.split_heads(x), (B * self.n_heads, T, self.d_head))

    def split_heads(self, x):
        self.check_width(x)
        B, T, _ = x.shape
        return F.transpose(F.reshape(x, (B, T, self.n_heads, self.d_head)), 1, 2)

    def merge_heads(self, x):
        if x.ndim != 4:
            raise ValueError("four axes, please")
        B, H, T, dh = x.shape
        if self.n_heads != H or dh != self.d_head:
            raise ValueError("other heads than mine")
        return F.reshape(F.transpose(x, 2, 1), (B, T, H * dh))

    def check_width(self, x):
        if x.ndim != 3:
            raise ValueError("three axes, please")
        if x.shape[2] != self.d_model:
            raise ValueError("another width than mine")

    def head_mask(self, mask, B, Tq, Tk):
        if mask is None:
            return None
        mask = np.array(mask)
        if not np.issubdtype(mask.dtype, np.bool_):
            raise ValueError("masks hold truth values")
        if mask.ndim < 2 or mask.ndim > 4:
            raise ValueError("masks have two, three or four axes")
        if mask.ndim == 3:
            mask = mask.reshape(mask.shape[0], 1, mask.shape[1], mask.shape[2])
        return (
            np.logical_and(mask, np.ones((B, self.n_heads, Tq, Tk), dtype=bool))
            if self._fits(mask, B, Tq, Tk)
            else None
        )

    def _fits(self, mask, B, Tq, Tk):
        full = (B, self.n_heads, Tq, Tk)
        if np.broadcast_shapes(mask.shape, full) != full:  # itself a ValueError when the shapes clash
            raise ValueError("the mask is larger than the weights")
        return True

    def attend(self, x_q, x_kv, mask=None):
        self.check_width(x_q)
        self.check_width(x_kv)
        B, Tq, _ = x_q.shape
        Tk = x_kv.shape[1]
        if x_kv.shape[0] != B:
            raise ValueError("as many sequences to read as to ask")
        allowed = self.head_mask(mask, B, Tq, Tk)
        q, k, v = self.fold(self.q_proj(x_q)), self.fold(self.k_proj(x_kv)), self.fold(self.v_proj(x_kv))
        scores = (q @ F.transpose(k, -1, -2)) * (1.0 / np.sqrt(float(self.d_head))).item()  # [B * H, Tq, Tk]
        if allowed is not None:
            scores = scores + to_additive(allowed, dtype=scores.dtype).reshape(B * self.n_heads, Tq, Tk)
        share = F.softmax(scores)
        mixed = F.dropout(share, self.dropout, self.training, self._dropout_rng) @ v
        merged = self.merge_heads(F.reshape(mixed, (B, self.n_heads, Tq, self.d_head)))
        return self.out_proj(merged), F.reshape(share.detach(), (B, self.n_heads, Tq, Tk))

    def forward(self, x_q, x_kv, mask=None):
        return self.attend(x_q=x_q, x_kv=x_kv, mask=mask)[0]

    def load_packed_in_proj(self, weight, bias=None):
        d = self.d_model
        weight = np.array(weight)
        if weight.shape != (3 * d, d):
            raise ValueError("a packed weight is [3d, d]")
        if bias is not None:
            bias = np.array(bias)
            if self.k_proj.bias is None:
                raise ValueError("no room for a bias")
            if bias.shape != (3 * d,):
                raise ValueError("a packed bias is [3d]")
            self.q_proj.bias.data[:], self.k_proj.bias.data[:], self.v_proj.bias.data[:] = bias.reshape(3, d)
        blocks = weight.reshape(3, d, d)
        self.q_proj.weight.data[:], self.k_proj.weight.data[:], self.v_proj.weight.data[:] = blocks
