"""Two sequences and a mask arrive; every query's answer from all heads leaves, and the weights behind it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinyllm.autograd import functional as F
from tinyllm.autograd.tensor import Tensor
from tinyllm.nn.layers import Linear
from tinyllm.nn.module import Module
from tinyllm.num.rng import PCG32, Rng
from tinyllm.xfmr.sdpa import scaled_dot_product_attention


class MultiHeadAttention(Module):
    """Multi-head attention (Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2).

        head_h = softmax(Q_h K_hᵀ / sqrt(dh)) V_h,    out = [head_0; ...; head_(H-1)] W_oᵀ + b_o,

    where Q_h, K_h and V_h are features h * dh to (h + 1) * dh - 1 of the projected inputs. Letters in shapes:
    B batch, Tq and Tk query and key lengths, d = d_model, H = n_heads, dh = d_head = d / H.

    The projections are drawn from `rng` in the order q, k, v, out; None means PCG32(0).substream("init").
    ValueError for a size below 1, heads that do not divide d_model, or dropout outside [0, 1).
    """

    def __init__(
        self, d_model: int, n_heads: int, dropout: float = 0.0, bias: bool = True, rng: Rng | None = None
    ) -> None:
        super().__init__()
        if d_model < 1 or n_heads < 1:
            raise ValueError(f"d_model and n_heads must be at least 1, got {d_model} and {n_heads}")
        if d_model % n_heads != 0:
            raise ValueError(f"n_heads must divide d_model, got {n_heads} heads for width {d_model}")
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout must be in [0, 1), got {dropout}")
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.dropout = dropout
        rng = PCG32(0).substream("init") if rng is None else rng
        self.q_proj = Linear(d_model, d_model, bias=bias, rng=rng)
        self.k_proj = Linear(d_model, d_model, bias=bias, rng=rng)
        self.v_proj = Linear(d_model, d_model, bias=bias, rng=rng)
        self.out_proj = Linear(d_model, d_model, bias=bias, rng=rng)
        self._dropout_rng = PCG32(0).substream("dropout")

    def split_heads(self, x: Tensor) -> Tensor:
        """[B, T, d] -> [B, H, T, dh]; ValueError for another shape."""
        if x.ndim != 3 or x.shape[2] != self.d_model:
            raise ValueError(f"split_heads expects [B, T, {self.d_model}], got {x.shape}")
        B, T, _ = x.shape
        x = F.reshape(x, (B, T, self.n_heads, self.d_head))  # [B, T, d] -> [B, T, H, dh]
        x = F.transpose(x, 1, 2)  # [B, T, H, dh] -> [B, H, T, dh]
        return x

    def merge_heads(self, x: Tensor) -> Tensor:
        """[B, H, T, dh] -> [B, T, d], the inverse of split_heads; ValueError for another shape."""
        if x.ndim != 4 or x.shape[1] != self.n_heads or x.shape[3] != self.d_head:
            raise ValueError(f"merge_heads expects [B, {self.n_heads}, T, {self.d_head}], got {x.shape}")
        B, _, T, _ = x.shape
        x = F.transpose(x, 1, 2)  # [B, H, T, dh] -> [B, T, H, dh]
        x = F.reshape(x, (B, T, self.d_model))  # [B, T, H, dh] -> [B, T, d]
        return x

    def head_mask(self, mask: ArrayLike | None, B: int, Tq: int, Tk: int) -> NDArray[np.bool_] | None:
        """A mask for every head: None, [Tq, Tk], [B, 1, Tq, Tk] from [B, Tq, Tk], or a 4-D mask unchanged.

        ValueError for a mask that is not bool, is not 2-, 3- or 4-D, or does not broadcast to [B, H, Tq, Tk].
        """
        if mask is None:
            return None
        mask = np.asarray(mask)
        if mask.dtype != np.bool_:
            raise ValueError(f"mask must be bool (True = may attend), got dtype {mask.dtype}")
        if mask.ndim not in (2, 3, 4):
            raise ValueError(f"mask must be [Tq, Tk], [B, Tq, Tk] or 4-D, got shape {mask.shape}")
        expected, given = (B, self.n_heads, Tq, Tk), mask.shape
        if mask.ndim == 3:
            mask = mask[:, None, :, :]  # [B, Tq, Tk] -> [B, 1, Tq, Tk], or numpy would align B with the heads
        if any(n not in (1, size) for n, size in zip(mask.shape[::-1], expected[::-1], strict=False)):
            raise ValueError(f"mask must broadcast to {expected}, got shape {given}")
        return mask

    def attend(self, x_q: Tensor, x_kv: Tensor, mask: ArrayLike | None = None) -> tuple[Tensor, Tensor]:
        """Let x_q [B, Tq, d] attend x_kv [B, Tk, d]: out [B, Tq, d] and weights [B, H, Tq, Tk].

        The weights are those before dropout, a constant. Dropout acts on them in training mode only.
        ValueError for inputs that are not 3-D, of different batch sizes or another width, or a bad mask.
        """
        self._check_input("x_q", x_q)
        self._check_input("x_kv", x_kv)
        if x_q.shape[0] != x_kv.shape[0]:
            raise ValueError(f"x_q and x_kv need one batch size, got shapes {x_q.shape} and {x_kv.shape}")
        B, Tq, Tk = x_q.shape[0], x_q.shape[1], x_kv.shape[1]
        mask = self.head_mask(mask, B, Tq, Tk)

        q = self.q_proj(x_q)  # [B, Tq, d]
        k = self.k_proj(x_kv)  # [B, Tk, d]
        v = self.v_proj(x_kv)  # [B, Tk, d]
        q = self.split_heads(q)  # [B, Tq, d] -> [B, H, Tq, dh]
        k = self.split_heads(k)  # [B, Tk, d] -> [B, H, Tk, dh]
        v = self.split_heads(v)  # [B, Tk, d] -> [B, H, Tk, dh]

        dropout_p = self.dropout if self.training else 0.0
        scale = self.d_head**-0.5  # a dot product of dh unit-variance terms has variance dh
        context, weights = scaled_dot_product_attention(
            q, k, v, mask=mask, dropout_p=dropout_p, scale=scale, rng=self._dropout_rng
        )
        merged = self.merge_heads(context)  # [B, H, Tq, dh] -> [B, Tq, d]
        out = self.out_proj(merged)  # [B, Tq, d]
        return out, weights

    def forward(self, x_q: Tensor, x_kv: Tensor, mask: ArrayLike | None = None) -> Tensor:
        """attend(...) without the weights: [B, Tq, d]."""
        return self.attend(x_q, x_kv, mask)[0]

    def load_packed_in_proj(self, weight: ArrayLike, bias: ArrayLike | None = None) -> None:
        """Copy torch's in_proj_weight [3d, d] and in_proj_bias [3d], rows q, then k, then v, in place.

        No bias given leaves the biases alone. ValueError for another shape, or for a bias when the module has
        none; everything is checked before anything is copied.
        """
        d = self.d_model
        projections = (self.q_proj, self.k_proj, self.v_proj)
        rows = (slice(0, d), slice(d, 2 * d), slice(2 * d, 3 * d))  # q, k, v
        weight = np.asarray(weight)
        if weight.shape != (3 * d, d):
            raise ValueError(f"packed weight must have shape {(3 * d, d)}, got {weight.shape}")
        if bias is not None:
            bias = np.asarray(bias)
            if bias.shape != (3 * d,):
                raise ValueError(f"packed bias must have shape {(3 * d,)}, got {bias.shape}")
            if self.q_proj.bias is None:
                raise ValueError("got a packed bias, but the module was built with bias=False")
        for projection, part in zip(projections, rows, strict=True):
            projection.weight.data[...] = weight[part]
            if bias is not None and projection.bias is not None:
                projection.bias.data[...] = bias[part]

    def _check_input(self, name: str, x: Tensor) -> None:
        if x.ndim != 3 or x.shape[2] != self.d_model:
            raise ValueError(f"{name} must be [B, T, {self.d_model}], got {x.shape}")
