"""attend and forward against the numpy oracle and the chapter's example."""

import math

import numpy as np
from mha_oracle import attention, check, inputs, make, tensor

from tinyllm.autograd.tensor import Tensor
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.mha import MultiHeadAttention


def test_worked_example_with_two_heads():
    mha = MultiHeadAttention(4, 2)
    for name, parameter in mha.named_parameters():
        parameter.data[...] = np.eye(4) if name.endswith("weight") else 0.0
    query = Tensor([[[1, 0, 0, 2]]])
    keys = Tensor([[[1, 0, 0, 0], [0, 1, 0, 2]]])
    out, weights = mha.attend(query, keys)
    a = 1 / (1 + math.exp(-1 / math.sqrt(2)))
    b = 1 / (1 + math.exp(4 / math.sqrt(2)))
    np.testing.assert_allclose(weights.data, [[[[a, 1 - a]], [[b, 1 - b]]]], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(out.data, [[[a, 1 - a, 0, 2 * (1 - b)]]], rtol=1e-5, atol=1e-6)
    assert out.dtype == np.float32
    assert weights.dtype == np.float32


def test_self_attention():
    (x,) = inputs((2, 5, 12))
    check(make(12, 3), x, x)


def test_cross_attention_with_other_lengths():
    x_q, x_kv = inputs((2, 3, 12), (2, 5, 12))
    check(make(12, 3), x_q, x_kv)


def test_cross_attention_with_equal_lengths():
    x_q, x_kv = inputs((2, 4, 12), (2, 4, 12))
    check(make(12, 3), x_q, x_kv)


def test_without_biases():
    x_q, x_kv = inputs((1, 3, 8), (1, 4, 8))
    check(make(8, 4, bias=False), x_q, x_kv)


def test_one_mask_for_all():
    (x,) = inputs((2, 4, 6))
    check(make(6, 3), x, x, np.tril(np.ones((4, 4), dtype=bool)))


def test_a_mask_per_sequence_where_batch_and_heads_are_equal():
    x_q, x_kv = inputs((3, 2, 6), (3, 4, 6))
    mask = np.repeat((np.arange(4) < np.array([4, 2, 1])[:, None])[:, None, :], 2, axis=1)
    check(make(6, 3), x_q, x_kv, mask, mask[:, None])


def test_masks_of_four_axes():
    x_q, x_kv = inputs((2, 3, 6), (2, 4, 6))
    mha = make(6, 2)
    keys = (np.arange(4) < np.array([3, 2])[:, None])[:, None, None, :]
    check(mha, x_q, x_kv, keys)
    full = np.tril(np.ones((3, 4), dtype=bool))[None, None] & np.ones((2, 2, 1, 1), dtype=bool)
    full[0, 1] = full[0, 1, :, ::-1]
    check(mha, x_q, x_kv, full)


def test_a_query_without_keys_reads_nothing():
    x_q, x_kv = inputs((2, 3, 6), (2, 4, 6))
    mask = np.ones((2, 3, 4), dtype=bool)
    mask[1, 0] = False
    check(make(6, 2), x_q, x_kv, mask, mask[:, None])


def test_eval_mode_drops_nothing():
    x_q, x_kv = inputs((2, 3, 6), (2, 4, 6))
    mha = make(6, 2, dropout=0.5)
    mha.eval()
    check(mha, x_q, x_kv)


def test_training_drops_weights_by_one_stream():
    x_q, x_kv = inputs((2, 3, 6), (2, 4, 6))
    mha = make(6, 2, dropout=0.5)
    mha.train()
    stream = PCG32(0).substream("dropout")
    for _ in range(2):
        keep = stream.uniforms(2 * 2 * 3 * 4).reshape(2, 2, 3, 4) >= 0.5
        expected, expected_weights = attention(mha, x_q, x_kv, multiplier=keep / 0.5)
        out, weights = mha.attend(tensor(x_q), tensor(x_kv))
        np.testing.assert_allclose(weights.data, expected_weights, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(out.data, expected, rtol=1e-9, atol=1e-11)
