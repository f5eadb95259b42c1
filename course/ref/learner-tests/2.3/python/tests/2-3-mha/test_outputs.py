"""Outputs: against the loop over heads, torch's attention, and other calls of the function."""

import pytest
import torch
import torch.nn.functional as F
from head_loop import attend, drawn, expected, same


@pytest.mark.parametrize(
    ("num_heads", "shape"),
    [(1, (2, 5, 6)), (2, (2, 3, 8)), (3, (2, 5, 12)), (4, (3, 7, 8)), (6, (2, 4, 6)), (2, (1, 1, 8))],
)
def test_outputs_agree_with_a_loop_over_heads(num_heads, shape):
    tensors = drawn(*shape)
    same(attend(num_heads, tensors), expected(num_heads, tensors))


@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 4, 6)])
def test_other_leading_dimensions(shape):
    tensors = drawn(*shape, seed=1)
    same(attend(3, tensors), expected(3, tensors))


def test_non_contiguous_input():
    x, *weights = drawn(2, 5, 12, seed=2)
    swapped = x.transpose(0, 1).contiguous().transpose(0, 1)
    assert not swapped.is_contiguous()
    same(attend(3, [swapped, *weights]), expected(3, [x, *weights]))


def test_core_is_that_of_torch():
    x, wq, wk, wv, _ = drawn(2, 6, 12, seed=3)
    q, k, v = ((x @ w.T).reshape(2, 6, 3, 4).transpose(1, 2) for w in (wq, wk, wv))
    heads = F.scaled_dot_product_attention(q, k, v, dropout_p=0.0, is_causal=True)
    out = attend(3, [x, wq, wk, wv, torch.eye(12, dtype=torch.float64)])
    same(out, heads.transpose(1, 2).reshape(2, 6, 12))


@pytest.mark.parametrize("t", [1, 2, 3])
def test_later_positions_change_nothing_before_them(t):
    x, *weights = drawn(2, 4, 8, seed=4)
    before = attend(2, [x, *weights])
    other = x.clone()
    other[:, t:] += 3.0
    after = attend(2, [other, *weights])
    same(after[:, :t], before[:, :t])
    assert not torch.allclose(after[:, t], before[:, t])


def test_two_calls_agree_and_leave_the_arguments_alone():
    tensors = drawn(2, 8, 12, seed=5)
    kept = [tensor.clone() for tensor in tensors]
    first = attend(3, tensors)
    same(attend(3, tensors), first)
    for now, then in zip(tensors, kept, strict=True):
        assert torch.equal(now, then)
