"""Everything as tables."""

import numpy as np
import pytest

from tinyllm.autograd.tensor import Tensor
from tinyllm.xfmr.mha import MultiHeadAttention

SIZES = [(4, 1, 1, 2, 2), (4, 2, 2, 3, 5), (6, 3, 3, 4, 4), (8, 4, 1, 1, 7)]


def reference(sd, H, x_q, x_kv, mask):
    heads = []
    for h in range(H):
        dh = x_q.shape[-1] // H
        rows = slice(h * dh, (h + 1) * dh)
        q = x_q @ sd["q_proj.weight"][rows].T + sd["q_proj.bias"][rows]
        k = x_kv @ sd["k_proj.weight"][rows].T + sd["k_proj.bias"][rows]
        v = x_kv @ sd["v_proj.weight"][rows].T + sd["v_proj.bias"][rows]
        s = np.matmul(q, np.swapaxes(k, 1, 2)) / np.sqrt(dh)
        s[~np.broadcast_to(mask, s.shape)] = -np.inf
        p = np.exp(s - s.max(axis=-1, keepdims=True))
        heads.append(p / p.sum(axis=-1, keepdims=True) @ v)
    return np.concatenate(heads, -1) @ sd["out_proj.weight"].T + sd["out_proj.bias"]


@pytest.mark.parametrize("kind", ["none", "2d", "3d", "4d"])
@pytest.mark.parametrize("d, H, B, Tq, Tk", SIZES, ids=lambda n: str(n))
def test_output(d, H, B, Tq, Tk, kind):
    rng = np.random.default_rng(d * 100 + H)
    mha = MultiHeadAttention(d, H, dropout=0.3)
    mha.eval()
    for _, p in mha.named_parameters():
        p.data = rng.normal(size=p.shape)
    x_q, x_kv = rng.normal(size=(B, Tq, d)), rng.normal(size=(B, Tk, d))
    full = rng.random((B, Tq, Tk)) < 0.5
    full[..., 0] = True
    given, meant = {
        "none": (None, np.ones((1, 1, 1), bool)),
        "2d": (full[0], full[0]),
        "3d": (full, full),
        "4d": (full[:, None], full),
    }[kind]
    out = mha(Tensor(x_q, dtype=np.float64), Tensor(x_kv, dtype=np.float64), given)
    np.testing.assert_allclose(out.data, reference(mha.state_dict(), H, x_q, x_kv, meant), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("part, rows", [("q", slice(0, 4)), ("k", slice(4, 8)), ("v", slice(8, 12))])
def test_packed(part, rows):
    packed = np.arange(48, dtype=float).reshape(12, 4)
    mha = MultiHeadAttention(4, 2)
    mha.load_packed_in_proj(packed, packed[:, 0])
    np.testing.assert_array_equal(mha.state_dict()[f"{part}_proj.weight"], packed[rows])
    np.testing.assert_array_equal(mha.state_dict()[f"{part}_proj.bias"], packed[rows, 0])


@pytest.mark.parametrize("bias", [True, False])
def test_names(bias):
    kinds = ["weight", "bias"] if bias else ["weight"]
    names = [f"{p}_proj.{kind}" for p in ["q", "k", "v", "out"] for kind in kinds]
    assert list(MultiHeadAttention(4, 2, bias=bias).state_dict()) == names


@pytest.mark.parametrize(
    "args", [pytest.param((0, 1), id="no width"), pytest.param((4, 3), id="3 of 4"), pytest.param((4, 2, 1.0), id="p=1")]
)
def test_refused(args):
    with pytest.raises(ValueError):
        MultiHeadAttention(*args)


@pytest.mark.parametrize("T", [1, 3])
def test_layout(T):
    x = np.arange(2 * T * 6, dtype=float).reshape(2, T, 6)
    mha = MultiHeadAttention(6, 2)
    heads = mha.split_heads(Tensor(x, dtype=np.float64))
    np.testing.assert_array_equal(heads.data[:, 1], x[..., 3:])
    np.testing.assert_array_equal(mha.merge_heads(heads).data, x)
