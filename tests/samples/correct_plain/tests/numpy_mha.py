"""Multi-head attention once more, head after head, in plain numpy."""

import numpy as np

from tinyllm.autograd.tensor import Tensor


def t64(array, grad=False):
    return Tensor(array, requires_grad=grad, dtype=np.float64)


def linear(params, name, x):
    y = x @ params[name + ".weight"].T
    if name + ".bias" in params:
        y = y + params[name + ".bias"]
    return y


def numpy_attend(module, x_q, x_kv, mask=None, keep=None):
    """out, weights. `mask` broadcasts to [B, H, Tq, Tk]; `keep` is what dropout multiplies the weights by."""
    params = module.state_dict()
    q, k, v = linear(params, "q_proj", x_q), linear(params, "k_proj", x_kv), linear(params, "v_proj", x_kv)
    B, Tq, d = q.shape
    Tk = k.shape[1]
    H = module.n_heads
    width = d // H
    if mask is None:
        mask = np.ones((1, 1, 1, 1), dtype=bool)
    mask = np.broadcast_to(mask, (B, H, Tq, Tk))
    weights = np.zeros((B, H, Tq, Tk))
    context = np.zeros((B, Tq, d))
    for b in range(B):
        for h in range(H):
            mine = slice(h * width, (h + 1) * width)
            scores = q[b, :, mine] @ k[b, :, mine].T / np.sqrt(width)
            for i in range(Tq):
                allowed = mask[b, h, i]
                if allowed.any():
                    e = np.exp(scores[i, allowed] - scores[i, allowed].max())
                    weights[b, h, i, allowed] = e / e.sum()
            used = weights[b, h] if keep is None else weights[b, h] * keep[b, h]
            context[b, :, mine] = used @ v[b, :, mine]
    return linear(params, "out_proj", context), weights


def assert_same(module, x_q, x_kv, mask=None, oracle_mask=None, keep=None):
    out, weights = module.attend(t64(x_q), t64(x_kv), mask)
    want_out, want_weights = numpy_attend(module, x_q, x_kv, mask if oracle_mask is None else oracle_mask, keep)
    np.testing.assert_allclose(weights.data, want_weights, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(out.data, want_out, rtol=1e-9, atol=1e-11)
