"""Multi-head attention with explicit axis orders, the scale handed over, and errors of a class of its own."""

import numpy as np

import tinyllm.autograd.functional as F
import tinyllm.nn.layers as layers
import tinyllm.nn.module as module
import tinyllm.num.rng as random
from tinyllm.xfmr.sdpa import scaled_dot_product_attention

HEADS_FIRST = (0, 2, 1, 3)  # its own inverse


class AttentionError(ValueError):
    """Raised for everything the contract calls a ValueError."""


def require(condition, what):
    if not condition:
        raise AttentionError(what)


class MultiHeadAttention(module.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True, rng=None):
        super().__init__()
        require(d_model >= 1 and n_heads >= 1, f"bad sizes {d_model}, {n_heads}")
        require(d_model % n_heads == 0, f"{n_heads} heads cannot share {d_model} features")
        require(0 <= dropout < 1, f"bad dropout {dropout}")
        self.dropout = dropout
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.d_model = d_model
        self.scale = self.d_head**-0.5
        self.generators = {"dropout": random.PCG32(0).substream("dropout")}
        if rng is None:
            rng = random.PCG32(0).substream("init")
        self.q_proj = layers.Linear(d_model, d_model, bias=bias, rng=rng)
        self.k_proj = layers.Linear(d_model, d_model, bias=bias, rng=rng)
        self.v_proj = layers.Linear(d_model, d_model, bias=bias, rng=rng)
        self.out_proj = layers.Linear(d_model, d_model, bias=bias, rng=rng)

    def split_heads(self, x):
        require(len(x.shape) == 3 and x.shape[-1] == self.d_model, f"cannot split {x.shape}")
        return F.permute(F.reshape(x, (*x.shape[:2], self.n_heads, self.d_head)), HEADS_FIRST)

    def merge_heads(self, x):
        require(
            len(x.shape) == 4 and (x.shape[1], x.shape[3]) == (self.n_heads, self.d_head), f"cannot merge {x.shape}"
        )
        return F.reshape(F.permute(x, HEADS_FIRST), (x.shape[0], x.shape[2], self.d_model))

    def head_mask(self, mask, B, Tq, Tk):
        if mask is None:
            return None
        mask = np.asarray(mask)
        require(mask.dtype.kind == "b", f"a mask is bool, not {mask.dtype}")
        require(2 <= mask.ndim <= 4, f"a mask has 2 to 4 axes, not {mask.ndim}")
        # Every mask leaves with four axes: [1, 1, Tq, Tk] or [B, 1, Tq, Tk] for the shorter ones.
        four = mask[None, None] if mask.ndim == 2 else mask[:, None] if mask.ndim == 3 else mask
        fits = all(have in (1, want) for have, want in zip(four.shape, (B, self.n_heads, Tq, Tk), strict=True))
        require(fits, f"a mask of {mask.shape} does not fit")
        return four

    def attend(self, x_q, x_kv, mask=None):
        require(x_q.ndim == x_kv.ndim == 3, "inputs have three axes")
        (B, Tq, width), (other_B, Tk, other_width) = x_q.shape, x_kv.shape
        require(other_B == B, f"batches of {B} and {other_B}")
        require(width == other_width == self.d_model, f"widths {width} and {other_width}")
        ready = self.head_mask(mask, B, Tq, Tk)
        heads = [self.split_heads(p(x)) for p, x in ((self.q_proj, x_q), (self.k_proj, x_kv), (self.v_proj, x_kv))]
        rate = self.dropout if self.training else 0
        mixed, weights = scaled_dot_product_attention(
            *heads, mask=ready, dropout_p=rate, scale=self.scale, rng=self.generators["dropout"]
        )
        return self.out_proj(self.merge_heads(mixed)), weights

    def forward(self, x_q, x_kv, mask=None):
        return self.attend(x_q, x_kv, mask)[0]

    def load_packed_in_proj(self, weight, bias=None):
        require(np.shape(weight) == (3 * self.d_model, self.d_model), f"bad weight {np.shape(weight)}")
        if bias is not None:
            require(self.q_proj.bias is not None, "built without biases")
            require(np.shape(bias) == (3 * self.d_model,), f"bad bias {np.shape(bias)}")
        inner = (self.q_proj, self.k_proj, self.v_proj)
        for linear, rows in zip(inner, np.split(np.asarray(weight), 3), strict=True):
            np.copyto(linear.weight.data, rows, casting="same_kind")
        if bias is not None:
            for linear, entries in zip(inner, np.split(np.asarray(bias), 3), strict=True):
                np.copyto(linear.bias.data, entries, casting="same_kind")
