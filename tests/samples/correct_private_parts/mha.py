from dataclasses import dataclass

import numpy as np

from tinyllm.autograd.functional import permute, reshape
from tinyllm.autograd.tensor import Tensor
from tinyllm.nn.layers import Linear
from tinyllm.nn.module import Module
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.sdpa import scaled_dot_product_attention as sdpa


class ShapeError(ValueError):
    """An argument of the wrong shape."""


@dataclass(frozen=True)
class _Sizes:
    d_model: int
    n_heads: int
    dropout: float

    def __post_init__(self):
        if min(self.d_model, self.n_heads) < 1:
            raise ShapeError("sizes start at one")
        if self.d_model % self.n_heads:
            raise ShapeError("heads do not tile the features")
        if not 0 <= self.dropout < 1:
            raise ValueError("dropout is a rate below one")

    @property
    def d_head(self):
        return self.d_model // self.n_heads


class _Layout:
    """How features are dealt out to heads."""

    def split_heads(self, x):
        self._expect(x, (None, None, self._sizes.d_model))
        b, t, _ = x.shape
        return permute(reshape(x, (b, t, self._sizes.n_heads, self._sizes.d_head)), (0, 2, 1, 3))

    def merge_heads(self, x):
        self._expect(x, (None, self._sizes.n_heads, None, self._sizes.d_head))
        b, _, t, _ = x.shape
        return reshape(permute(x, (0, 2, 1, 3)), (b, t, self._sizes.d_model))

    @staticmethod
    def _expect(x, pattern):
        matches = x.ndim == len(pattern) and all(p in (None, n) for p, n in zip(pattern, x.shape))
        if not matches:
            raise ShapeError(f"{x.shape} does not match {pattern}")


class MultiHeadAttention(_Layout, Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True, rng=None):
        super().__init__()
        self._sizes = _Sizes(d_model, n_heads, dropout)
        self.d_model, self.n_heads, self.d_head = d_model, n_heads, self._sizes.d_head
        self.dropout = dropout
        rng = PCG32(0).substream("init") if rng is None else rng
        self.q_proj = Linear(d_model, d_model, bias=bias, rng=rng)
        self.k_proj = Linear(d_model, d_model, bias=bias, rng=rng)
        self.v_proj = Linear(d_model, d_model, bias=bias, rng=rng)
        self.out_proj = Linear(d_model, d_model, bias=bias, rng=rng)
        self.__stream = PCG32(0).substream("dropout")

    def head_mask(self, mask, B, Tq, Tk):
        match mask:
            case None:
                return None
            case np.ndarray(dtype=np.dtype(kind="b"), ndim=2):
                shaped = mask[np.newaxis, np.newaxis]
            case np.ndarray(dtype=np.dtype(kind="b"), ndim=3):
                shaped = mask[:, np.newaxis]
            case np.ndarray(dtype=np.dtype(kind="b"), ndim=4):
                shaped = mask
            case _:
                raise ShapeError("a mask is a bool array of two to four axes")
        for given, wanted in zip(shaped.shape, (B, self.n_heads, Tq, Tk)):
            if given not in (1, wanted):
                raise ShapeError(f"mask {mask.shape} for {(B, self.n_heads, Tq, Tk)}")
        return shaped

    def attend(self, x_q, x_kv, mask=None):
        self._expect(x_q, (None, None, self.d_model))
        self._expect(x_kv, (x_q.shape[0], None, self.d_model))
        q, k, v = (
            self.split_heads(proj(x))
            for proj, x in ((self.q_proj, x_q), (self.k_proj, x_kv), (self.v_proj, x_kv))
        )
        mixed, weights = sdpa(
            q, k, v, mask=self.head_mask(mask, x_q.shape[0], x_q.shape[1], x_kv.shape[1]), **self.__noise()
        )
        return self.out_proj(self.merge_heads(mixed)), weights

    def __noise(self):
        return {"dropout_p": self.dropout, "rng": self.__stream} if self.training else {}

    def forward(self, x_q, x_kv, mask=None):
        return self.attend(x_q, x_kv, mask=mask)[0]

    def load_packed_in_proj(self, weight, bias=None):
        weight = np.asarray(weight)
        if weight.shape != (3 * self.d_model, self.d_model):
            raise ShapeError(f"weight {weight.shape}")
        if bias is not None:
            bias = np.asarray(bias)
            if bias.shape != (3 * self.d_model,):
                raise ShapeError(f"bias {bias.shape}")
            if self.q_proj.bias is None:
                raise ValueError("bias=False")
        for start, proj in zip(range(0, 3 * self.d_model, self.d_model), (self.q_proj, self.k_proj, self.v_proj)):
            rows = slice(start, start + self.d_model)
            np.copyto(proj.weight.data, weight[rows], casting="same_kind")
            if bias is not None:
                np.copyto(proj.bias.data, bias[rows], casting="same_kind")
