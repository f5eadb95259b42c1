import numpy as np
import pytest

from tinyllm.autograd.tensor import Tensor
from tinyllm.xfmr.mha import MultiHeadAttention
from tinyllm.xfmr.sdpa import sdpa_forward


def build():
    rng = np.random.default_rng(3)
    return MultiHeadAttention(8, 2, dropout=0.1), rng.standard_normal((2, 5, 8)).astype(np.float32)


def test_bitwise_equal_to_my_own_formula():
    mha, x = build()
    mha.eval()
    W = mha.state_dict()
    q, k, v = (
        (x @ W[f"{p}_proj.weight"].T + W[f"{p}_proj.bias"]).reshape(2, 5, 2, 4).transpose(0, 2, 1, 3) for p in "qkv"
    )
    o, p = sdpa_forward(q, k, v)
    want = o.transpose(0, 2, 1, 3).reshape(2, 5, 8) @ W["out_proj.weight"].T + W["out_proj.bias"]
    out, weights = mha.attend(Tensor(x), Tensor(x))
    assert (weights.data == p).all()
    assert (out.data == want).all()


def test_message_names_both_numbers():
    with pytest.raises(ValueError, match="n_heads must divide d_model, got 3 heads for width 8"):
        MultiHeadAttention(8, 3)


def test_dropout_rng_is_kept_under_its_name():
    mha, _ = build()
    assert hasattr(mha, "_dropout_rng")


def test_eval_is_repeatable():
    mha, x = build()
    mha.eval()
    np.testing.assert_array_equal(mha(Tensor(x), Tensor(x)).data, mha(Tensor(x), Tensor(x)).data)


def test_projections_come_in_one_order(monkeypatch):
    mha, x = build()
    order = []
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        linear = getattr(mha, name)
        original = linear.forward
        monkeypatch.setattr(linear, "forward", lambda x, n=name, f=original: (order.append(n), f(x))[1])
    mha(Tensor(x), Tensor(x))
    assert order == ["q_proj", "k_proj", "v_proj", "out_proj"]


def test_steps_come_in_one_order(monkeypatch):
    mha, x = build()
    order = []
    for name in ("split_heads", "merge_heads"):
        original = getattr(mha, name)
        monkeypatch.setattr(mha, name, lambda x, n=name, f=original: (order.append(n), f(x))[1])
    mha(Tensor(x), Tensor(x))
    assert order == ["split_heads"] * 3 + ["merge_heads"]


def test_bitwise_equal_to_another_correct_formula():
    mha, x = build()
    mha.eval()
    W = mha.state_dict()
    q, k, v = (x @ W[f"{p}_proj.weight"].T + W[f"{p}_proj.bias"] for p in "qkv")
    heads = []
    for h in (slice(0, 4), slice(4, 8)):
        scores = np.einsum("bqd,bkd->bqk", q[..., h].astype(np.float64), k[..., h]) / 2.0
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        heads.append(powers / powers.sum(-1, keepdims=True) @ v[..., h])
    want = np.concatenate(heads, -1) @ W["out_proj.weight"].T + W["out_proj.bias"]
    np.testing.assert_array_equal(mha(Tensor(x), Tensor(x)).data, want.astype(np.float32))


def test_inputs_are_checked_by_a_private_method():
    mha, x = build()
    mha._check_input("x_q", Tensor(x))
