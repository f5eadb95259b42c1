import math

import numpy as np
from numpy_mha import assert_same, numpy_attend, t64

from tinyllm.num.rng import PCG32
from tinyllm.xfmr.masks import causal_mask, padding_mask
from tinyllm.xfmr.mha import MultiHeadAttention


def sigmoid(z):
    return 1.0 / (1.0 + math.exp(-z))


def test_worked_example():
    mha = MultiHeadAttention(4, 2)
    for name, p in mha.named_parameters():
        p.data = np.eye(4) if "weight" in name else np.zeros(4)
    query = np.array([[[1.0, 0, 0, 2]]])
    keys = np.array([[[1.0, 0, 0, 0], [0, 1, 0, 2]]])
    out, weights = mha.attend(t64(query), t64(keys))
    a, b = sigmoid(1 / math.sqrt(2)), sigmoid(-4 / math.sqrt(2))
    np.testing.assert_allclose(weights.data[0, :, 0], [[a, 1 - a], [b, 1 - b]], rtol=1e-9)
    np.testing.assert_allclose(out.data[0, 0], [a, 1 - a, 0, 2 * (1 - b)], rtol=1e-9, atol=1e-12)


def test_self_attention(make, draw):
    x = draw.normal(size=(2, 5, 12))
    assert_same(make(12, 3), x, x)


def test_cross_attention(make, draw):
    assert_same(make(12, 4), draw.normal(size=(2, 3, 12)), draw.normal(size=(2, 7, 12)))


def test_cross_attention_when_lengths_happen_to_match(make, draw):
    assert_same(make(8, 2), draw.normal(size=(3, 4, 8)), draw.normal(size=(3, 4, 8)))


def test_without_bias(make, draw):
    mha = make(6, 2, bias=False)
    assert [name for name, _ in mha.named_parameters()] == [f"{p}_proj.weight" for p in ("q", "k", "v", "out")]
    assert_same(mha, draw.normal(size=(1, 3, 6)), draw.normal(size=(1, 4, 6)))


def test_causal_mask(make, draw):
    x = draw.normal(size=(2, 5, 6))
    assert_same(make(6, 3), x, x, causal_mask(5))


def test_one_mask_per_sequence_with_as_many_heads_as_sequences(make, draw):
    x = draw.normal(size=(3, 4, 6))
    mask = causal_mask(4)[None] & padding_mask([4, 2, 3], 4)[:, None, :]
    assert_same(make(6, 3), x, x, mask, mask[:, None])


def test_one_mask_per_head(make, draw):
    x_q, x_kv = draw.normal(size=(2, 3, 6)), draw.normal(size=(2, 5, 6))
    mask = draw.random((2, 2, 3, 5)) < 0.6
    mask[..., 0] = True
    assert_same(make(6, 2), x_q, x_kv, mask)
    keys_only = padding_mask([5, 2], 5)[:, None, None, :]
    assert_same(make(6, 2), x_q, x_kv, keys_only)


def test_forward_is_the_output_of_attend(make, draw):
    mha = make(6, 2)
    x_q, x_kv = draw.normal(size=(2, 3, 6)), draw.normal(size=(2, 5, 6))
    mask = draw.random((3, 5)) < 0.7
    mask[:, 1] = True
    np.testing.assert_allclose(mha(t64(x_q), t64(x_kv), mask).data, numpy_attend(mha, x_q, x_kv, mask)[0], rtol=1e-9)


def test_eval_mode_never_drops(make, draw):
    mha = make(6, 2, dropout=0.5)
    mha.eval()
    x = draw.normal(size=(2, 4, 6))
    assert_same(mha, x, x)
    assert_same(mha, x, x)


def test_training_follows_the_dropout_stream(make, draw):
    mha = make(6, 2, dropout=0.25)
    x = draw.normal(size=(2, 3, 6))
    stream = PCG32(0).substream("dropout")
    for _ in range(2):
        keep = (stream.uniforms(2 * 2 * 3 * 3) >= 0.25).reshape(2, 2, 3, 3) / 0.75
        assert_same(mha, x, x, keep=keep)
