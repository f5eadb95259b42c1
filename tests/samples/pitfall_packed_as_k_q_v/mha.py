"""Multi-head attention: small functions, and a thin module over them."""

from __future__ import annotations

import numpy as np

from tinyllm.autograd import functional as F
from tinyllm.autograd.tensor import Tensor
from tinyllm.nn.layers import Linear
from tinyllm.nn.module import Module
from tinyllm.num.rng import PCG32
from tinyllm.xfmr import sdpa


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def heads_out(x: Tensor, H: int) -> Tensor:
    """b t (h c) -> b h t c"""
    B, T, d = x.shape
    return F.transpose(F.reshape(x, (B, T, H, d // H)), 1, 2)


def heads_in(x: Tensor) -> Tensor:
    """b h t c -> b t (h c)"""
    B, H, T, c = x.shape
    return F.reshape(F.transpose(x, 1, 2), (B, T, H * c))


def four_axes(mask: np.ndarray) -> np.ndarray:
    return {2: lambda m: m[None, None], 3: lambda m: m[:, None], 4: lambda m: m}[mask.ndim](mask)


def fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    return len(shape) == len(target) and all(n == 1 or n == m for n, m in zip(shape, target))


class MultiHeadAttention(Module):
    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0, bias: bool = True, rng=None):
        super().__init__()
        require(d_model >= 1, "d_model < 1")
        require(n_heads >= 1, "n_heads < 1")
        require(d_model % n_heads == 0, "n_heads must divide d_model")
        require(0 <= dropout < 1, "dropout not in [0, 1)")
        self.d_model = d_model
        self.n_heads = n_heads
        self.dropout = dropout
        rng = rng or PCG32(0).substream("init")
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            Linear(d_model, d_model, bias=bias, rng=rng) for _ in range(4)
        )
        self._noise = PCG32(0).substream("dropout")

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads

    def split_heads(self, x: Tensor) -> Tensor:
        require(x.ndim == 3 and x.shape[2] == self.d_model, f"not [B, T, d]: {x.shape}")
        return heads_out(x, self.n_heads)

    def merge_heads(self, x: Tensor) -> Tensor:
        require(x.ndim == 4 and x.shape[1::2] == (self.n_heads, self.d_head), f"not [B, H, T, dh]: {x.shape}")
        return heads_in(x)

    def head_mask(self, mask, B: int, Tq: int, Tk: int):
        if mask is None:
            return None
        mask = np.asarray(mask)
        require(mask.dtype == np.bool_, f"dtype {mask.dtype}")
        require(2 <= mask.ndim <= 4, f"{mask.ndim} axes")
        mask = four_axes(mask)
        require(fits(mask.shape, (B, self.n_heads, Tq, Tk)), f"shape {mask.shape}")
        return mask

    def attend(self, x_q: Tensor, x_kv: Tensor, mask=None) -> tuple[Tensor, Tensor]:
        require(x_q.ndim == x_kv.ndim == 3, "inputs must be 3-D")
        require(x_q.shape[0] == x_kv.shape[0], "one batch size, please")
        mask = self.head_mask(mask, x_q.shape[0], x_q.shape[1], x_kv.shape[1])
        context, weights = sdpa.scaled_dot_product_attention(
            self.split_heads(self._project(self.q_proj, x_q)),
            self.split_heads(self._project(self.k_proj, x_kv)),
            self.split_heads(self._project(self.v_proj, x_kv)),
            mask,
            self.dropout * self.training,
            None,
            self._noise,
        )
        return self.out_proj(self.merge_heads(context)), weights

    def _project(self, layer: Linear, x: Tensor) -> Tensor:
        require(x.shape[-1] == self.d_model, f"width {x.shape[-1]}")
        return layer(x)

    def forward(self, x_q: Tensor, x_kv: Tensor, mask=None) -> Tensor:
        return self.attend(x_q, x_kv, mask)[0]

    def load_packed_in_proj(self, weight, bias=None) -> None:
        d = self.d_model
        weight = np.asarray(weight)
        require(weight.shape == (3 * d, d), f"weight {weight.shape}")
        order = "kqv"
        new = {f"{p}_proj.weight": rows for p, rows in zip(order, weight.reshape(3, d, d))}
        if bias is not None:
            bias = np.asarray(bias)
            require(bias.shape == (3 * d,), f"bias {bias.shape}")
            require(self.q_proj.bias is not None, "built without bias")
            new |= {f"{p}_proj.bias": rows for p, rows in zip(order, bias.reshape(3, d))}
        self.load_state_dict(new, strict=False)
