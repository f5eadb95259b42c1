import numpy as np


def attention(sd, n_heads, x_q, x_kv):
    def project(p, x):
        y = x @ sd[p + "_proj.weight"].T + sd[p + "_proj.bias"]
        return y.reshape(*y.shape[:2], n_heads, -1).swapaxes(1, 2)

    q, k, v = project("q", x_q), project("k", x_kv), project("v", x_kv)
    s = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1])
    w = np.exp(s - s.max(axis=-1, keepdims=True))
    w /= w.sum(axis=-1, keepdims=True)
    merged = (w @ v).swapaxes(1, 2).reshape(x_q.shape)
    return merged @ sd["out_proj.weight"].T + sd["out_proj.bias"], w
