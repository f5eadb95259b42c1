import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tinyllm.autograd.tensor import Tensor
from tinyllm.xfmr.mha import MultiHeadAttention

sizes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4))
numbers = st.floats(-3, 3, width=32)


def oracle(mha, x_q, x_kv, mask):
    sd = mha.state_dict()
    q, k, v = (
        x @ sd[f"{p}_proj.weight"].T + sd[f"{p}_proj.bias"] for p, x in (("q", x_q), ("k", x_kv), ("v", x_kv))
    )
    dh = mha.d_model // mha.n_heads
    out = []
    for h in range(mha.n_heads):
        cut = slice(h * dh, h * dh + dh)
        s = np.where(mask, q[..., cut] @ k[..., cut].transpose(0, 2, 1) * dh**-0.5, -np.inf)
        e = np.exp(s - s.max(-1, keepdims=True))
        out.append(e / e.sum(-1, keepdims=True) @ v[..., cut])
    return np.concatenate(out, axis=-1) @ sd["out_proj.weight"].T + sd["out_proj.bias"]


def build(d, H, seed, **options):
    rng = np.random.default_rng(seed)
    mha = MultiHeadAttention(d, H, **options)
    for _, p in mha.named_parameters():
        p.data = rng.normal(size=p.shape)
    return mha, rng


@settings(max_examples=25)
@given(sizes, st.integers(0, 1000))
def test_attend_is_the_oracle(size, seed):
    H, dh, B, Tq, Tk = size
    mha, rng = build(H * dh, H, seed, dropout=0.5)
    mha.eval()
    x_q, x_kv = rng.normal(size=(B, Tq, H * dh)), rng.normal(size=(B, Tk, H * dh))
    mask = rng.random((B, Tq, Tk)) < 0.6
    mask[..., 0] = True
    got = mha(Tensor(x_q, dtype=np.float64), Tensor(x_kv, dtype=np.float64), mask)
    np.testing.assert_allclose(got.data, oracle(mha, x_q, x_kv, mask), rtol=1e-7, atol=1e-9)


@settings(max_examples=25)
@given(arrays(np.float64, (2, 3, 6), elements=numbers), st.sampled_from([1, 2, 3, 6]))
def test_merge_undoes_split(x, H):
    mha = MultiHeadAttention(6, H)
    heads = mha.split_heads(Tensor(x, dtype=np.float64))
    for h in range(H):
        np.testing.assert_array_equal(heads.data[:, h], x[..., h * 6 // H : (h + 1) * 6 // H])
    np.testing.assert_array_equal(mha.merge_heads(heads).data, x)


@settings(max_examples=10)
@given(st.permutations(range(5)))
def test_keys_are_a_set(order):
    mha, rng = build(4, 2, 1)
    x_q, x_kv = rng.normal(size=(1, 2, 4)), rng.normal(size=(1, 5, 4))
    a = mha(Tensor(x_q, dtype=np.float64), Tensor(x_kv, dtype=np.float64)).data
    b = mha(Tensor(x_q, dtype=np.float64), Tensor(x_kv[:, list(order)], dtype=np.float64)).data
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@given(arrays(np.float64, (12, 4), elements=numbers))
@settings(max_examples=10)
def test_packed_rows(packed):
    packed[:, 0] = np.arange(12)
    mha = MultiHeadAttention(4, 2)
    mha.load_packed_in_proj(packed)
    for i, p in enumerate("qkv"):
        np.testing.assert_allclose(mha.state_dict()[p + "_proj.weight"], packed[4 * i : 4 * i + 4])
