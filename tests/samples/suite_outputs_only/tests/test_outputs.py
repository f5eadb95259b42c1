"""One oracle, outputs only: nothing about dropout, gradients, loading or bad arguments."""

import numpy as np
import pytest

from tinyllm.autograd.tensor import Tensor
from tinyllm.num.stable import softmax
from tinyllm.xfmr.masks import causal_mask
from tinyllm.xfmr.mha import MultiHeadAttention


def expected_output(mha, x_q, x_kv, mask):
    sd = {k: v.astype(np.float64) for k, v in mha.state_dict().items()}
    q = x_q @ sd["q_proj.weight"].T + sd["q_proj.bias"]
    k = x_kv @ sd["k_proj.weight"].T + sd["k_proj.bias"]
    v = x_kv @ sd["v_proj.weight"].T + sd["v_proj.bias"]
    B, Tq, d = q.shape
    H = mha.n_heads
    q, k, v = (a.reshape(B, -1, H, d // H).transpose(0, 2, 1, 3) for a in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(d / H)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    context = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(B, Tq, d)
    return context @ sd["out_proj.weight"].T + sd["out_proj.bias"]


@pytest.mark.parametrize("n_heads", [1, 2, 4])
@pytest.mark.parametrize("Tq, Tk", [(3, 3), (2, 6)])
@pytest.mark.parametrize("masked", [False, True])
def test_output(n_heads, Tq, Tk, masked):
    rng = np.random.default_rng(n_heads)
    mha = MultiHeadAttention(8, n_heads)
    mha.q_proj.bias.data[...] = rng.normal(size=8)
    mha.out_proj.bias.data[...] = rng.normal(size=8)
    x_q, x_kv = rng.normal(size=(2, Tq, 8)), rng.normal(size=(2, Tk, 8))
    mask = causal_mask(Tq, Tk) if masked else None
    out = mha.forward(Tensor(x_q), Tensor(x_kv), mask)
    assert np.allclose(out.data, expected_output(mha, x_q, x_kv, mask), rtol=1e-4, atol=1e-5)
