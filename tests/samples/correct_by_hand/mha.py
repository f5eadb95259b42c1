import numpy as np
from tinyllm.nn.module import Module
from tinyllm.nn.layers import Linear
from tinyllm.num.rng import PCG32
from tinyllm.autograd import functional as F

# no sdpa import on purpose, i wanted to see if i can do it myself


class MultiHeadAttention(Module):
    def __init__(self, d_model, n_heads, dropout=0.0, bias=True, rng=None):
        super().__init__()
        assert_ok(d_model > 0 and n_heads > 0, "sizes must be positive")
        assert_ok(d_model % n_heads == 0, "d_model % n_heads must be 0")
        assert_ok(dropout >= 0 and dropout < 1, "dropout must be in [0,1)")
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = int(d_model / n_heads)
        self.dropout = dropout
        if rng == None:
            rng = PCG32(0).substream("init")
        self.q_proj = Linear(d_model, d_model, bias=bias, rng=rng)
        self.k_proj = Linear(d_model, d_model, bias=bias, rng=rng)
        self.v_proj = Linear(d_model, d_model, bias=bias, rng=rng)
        self.out_proj = Linear(d_model, d_model, bias=bias, rng=rng)
        self.rng2 = PCG32(0).substream("dropout")

    def split_heads(self, x):
        assert_ok(x.ndim == 3, "3 dims please")
        assert_ok(x.shape[2] == self.d_model, "last dim must be d_model")
        B, T, d = x.shape
        x = F.reshape(x, (B, T, self.n_heads, self.d_head))
        x = F.transpose(x, 1, 2)
        return x

    def merge_heads(self, x):
        assert_ok(x.ndim == 4, "4 dims please")
        B, H, T, dh = x.shape
        assert_ok(H == self.n_heads and dh == self.d_head, "wrong heads")
        x = F.transpose(x, 1, 2)
        x = F.reshape(x, (B, T, H * dh))
        return x

    def head_mask(self, mask, B, Tq, Tk):
        if mask is None:
            return None
        mask = np.asarray(mask)
        assert_ok(mask.dtype == np.bool_, "mask must be bool")
        if mask.ndim == 2:
            mask = mask[None, None, :, :]
        elif mask.ndim == 3:
            mask = mask[:, None, :, :]
        else:
            assert_ok(mask.ndim == 4, "mask must be 2d 3d or 4d")
        for i, n in enumerate([B, self.n_heads, Tq, Tk]):
            assert_ok(mask.shape[i] == 1 or mask.shape[i] == n, "mask does not fit")
        return mask

    def attend(self, x_q, x_kv, mask=None):
        assert_ok(x_q.ndim == 3 and x_kv.ndim == 3, "3 dims please")
        assert_ok(x_q.shape[0] == x_kv.shape[0], "different batch")
        assert_ok(x_q.shape[2] == self.d_model and x_kv.shape[2] == self.d_model, "wrong width")
        B, Tq, d = x_q.shape
        Tk = x_kv.shape[1]
        mask = self.head_mask(mask, B, Tq, Tk)
        Q = self.split_heads(self.q_proj(x_q))  # B H Tq dh
        K = self.split_heads(self.k_proj(x_kv))  # B H Tk dh
        V = self.split_heads(self.v_proj(x_kv))  # B H Tk dh
        S = F.matmul(Q, F.transpose(K, 2, 3))  # B H Tq Tk
        S = S / self.d_head**0.5
        if mask is not None:
            S = F.masked_fill(S, np.broadcast_to(~mask, S.shape), -np.inf)
        P = F.softmax(S, axis=-1)
        W = F.dropout(P, self.dropout, self.training, self.rng2)
        O = F.matmul(W, V)
        return self.out_proj(self.merge_heads(O)), P.detach()

    def forward(self, x_q, x_kv, mask=None):
        o, p = self.attend(x_q, x_kv, mask)
        return o

    def load_packed_in_proj(self, weight, bias=None):
        weight = np.asarray(weight)
        d = self.d_model
        assert_ok(weight.shape == (3 * d, d), "weight must be [3d, d]")
        if bias is not None:
            bias = np.asarray(bias)
            assert_ok(bias.shape == (3 * d,), "bias must be [3d]")
            assert_ok(self.q_proj.bias is not None, "i have no bias")
        self.q_proj.weight.data[...] = weight[0:d]
        self.k_proj.weight.data[...] = weight[d:2 * d]
        self.v_proj.weight.data[...] = weight[2 * d:3 * d]
        if bias is not None:
            self.q_proj.bias.data[...] = bias[0:d]
            self.k_proj.bias.data[...] = bias[d:2 * d]
            self.v_proj.bias.data[...] = bias[2 * d:3 * d]


def assert_ok(condition, text):
    if not condition:
        raise ValueError(text)
