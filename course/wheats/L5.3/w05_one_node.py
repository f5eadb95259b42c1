"""Multi-head attention whose core, from projections to merged contexts, is one node with a backward pass by hand."""

import numpy as np

from tinyllm.autograd import functional as F
from tinyllm.autograd.tensor import Tensor, from_op
from tinyllm.nn.layers import Linear
from tinyllm.nn.module import Module
from tinyllm.num.rng import PCG32


def _split(x, n_heads):
    """[B, T, d] -> [B, H, T, dh], arrays."""
    return x.reshape(*x.shape[:2], n_heads, -1).swapaxes(1, 2)


def _merge(x):
    """[B, H, T, dh] -> [B, T, d], arrays."""
    swapped = x.swapaxes(1, 2)
    return swapped.reshape(*swapped.shape[:2], -1)


def _weights(scores, mask):
    """Softmax over the allowed keys; rows of zeros where none is allowed."""
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isneginf(top), 0, top).astype(scores.dtype))
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1, total).astype(scores.dtype)


def _core(q, k, v, n_heads, mask, multiplier):
    """Tensors q, k, v [B, T, d] -> the merged contexts as one node, and the weights."""
    Q, K, V = (_split(t.data, n_heads) for t in (q, k, v))
    scale = Q.shape[-1] ** -0.5
    P = _weights(np.einsum("bhqd,bhkd->bhqk", Q, K) * scale, mask)
    M = 1 if multiplier is None else multiplier.astype(P.dtype)

    def vjp(g):
        G = _split(g, n_heads)
        dP = np.einsum("bhqd,bhkd->bhqk", G, V) * M
        dS = P * (dP - (dP * P).sum(axis=-1, keepdims=True)) * scale
        return (
            _merge(dS @ K),
            _merge(np.einsum("bhqk,bhqd->bhkd", dS, Q)),
            _merge(np.einsum("bhqk,bhqd->bhkd", P * M, G)),
        )

    return from_op(_merge((P * M) @ V), (q, k, v), vjp, op="heads"), P


class MultiHeadAttention(Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True, rng=None):
        super().__init__()
        for size in (d_model, n_heads):
            if size < 1:
                raise ValueError(size)
        if d_model % n_heads:
            raise ValueError(d_model, n_heads)
        if dropout >= 1 or dropout < 0:
            raise ValueError(dropout)
        self.d_model, self.n_heads, self.dropout = d_model, n_heads, dropout
        self.d_head = d_model // n_heads
        self._dropout_rng = PCG32(0).substream("dropout")
        shared = PCG32(0).substream("init") if rng is None else rng
        self.q_proj = Linear(in_f=d_model, out_f=d_model, bias=bias, rng=shared)
        self.k_proj = Linear(in_f=d_model, out_f=d_model, bias=bias, rng=shared)
        self.v_proj = Linear(in_f=d_model, out_f=d_model, bias=bias, rng=shared)
        self.out_proj = Linear(in_f=d_model, out_f=d_model, bias=bias, rng=shared)

    def split_heads(self, x):
        if x.shape[2:] != (self.d_model,) or x.ndim != 3:
            raise ValueError(x.shape)
        return F.permute(F.reshape(x, (x.shape[0], x.shape[1], self.n_heads, self.d_head)), (0, 2, 1, 3))

    def merge_heads(self, x):
        if x.ndim != 4 or x.shape[1::2] != (self.n_heads, self.d_head):
            raise ValueError(x.shape)
        return F.reshape(F.transpose(x, 1, 2), (x.shape[0], x.shape[2], self.d_model))

    def head_mask(self, mask, B, Tq, Tk):
        if mask is None:
            return None
        mask = np.asarray(mask)
        if mask.dtype.type is not np.bool_ or mask.ndim in (0, 1) or mask.ndim > 4:
            raise ValueError(mask.dtype, mask.shape)
        with_heads = mask if mask.ndim != 3 else mask[:, None, :, :]
        np.broadcast_to(with_heads, (B, self.n_heads, Tq, Tk))  # raises ValueError
        return with_heads.copy()

    def attend(self, x_q, x_kv, mask=None):
        if x_q.ndim != 3 or x_kv.ndim != 3:
            raise ValueError(x_q.ndim, x_kv.ndim)
        if x_q.shape[0] != x_kv.shape[0]:
            raise ValueError(x_q.shape, x_kv.shape)
        if not x_q.shape[2] == x_kv.shape[2] == self.d_model:
            raise ValueError(x_q.shape, x_kv.shape)
        shape = (x_q.shape[0], self.n_heads, x_q.shape[1], x_kv.shape[1])
        mask = self.head_mask(mask, shape[0], *shape[2:])
        multiplier = None
        if self.training and self.dropout > 0:
            keep = self._dropout_rng.uniforms(int(np.prod(shape))).reshape(shape) >= self.dropout
            multiplier = keep / (1.0 - self.dropout)
        merged, P = _core(self.q_proj(x_q), self.k_proj(x_kv), self.v_proj(x_kv), self.n_heads, mask, multiplier)
        return self.out_proj(merged), Tensor(P, dtype=P.dtype)

    def forward(self, x_q, x_kv, mask=None):
        return self.attend(x_q, x_kv, mask)[0]

    def load_packed_in_proj(self, weight, bias=None):
        d = self.d_model
        weight, bias = np.asarray(weight), None if bias is None else np.asarray(bias)
        if weight.shape != (3 * d, d) or (bias is not None and bias.shape != (3 * d,)):
            raise ValueError("packed shapes")
        if bias is not None and self.v_proj.bias is None:
            raise ValueError("packed bias")
        rows = {"q": slice(0, d), "k": slice(d, 2 * d), "v": slice(2 * d, None)}
        for name, part in rows.items():
            linear = getattr(self, f"{name}_proj")
            linear.weight.data.flat = weight[part].ravel()
            if bias is not None:
                linear.bias.data.flat = bias[part].ravel()
