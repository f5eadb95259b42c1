"""Gradients of the input and of all four weights, under one cotangent, against those of the loop over heads."""

import pytest
import torch
from head_loop import NAMES, attend, drawn, expected, gradients, same


@pytest.mark.parametrize(("num_heads", "shape"), [(1, (2, 4, 6)), (2, (2, 3, 8)), (3, (2, 5, 12))])
def test_gradients_agree_with_a_loop_over_heads(num_heads, shape):
    tensors = drawn(*shape, seed=6)
    cotangent = drawn(*shape, seed=7)[0]
    found = gradients(attend, num_heads, tensors, cotangent)
    wanted = gradients(expected, num_heads, tensors, cotangent)
    for name, actual, want in zip(NAMES, found, wanted, strict=True):
        assert actual.shape == want.shape, name
        same(actual, want)


def test_gradients_agree_with_finite_differences():
    tensors = [tensor.requires_grad_() for tensor in drawn(1, 3, 4, seed=8)]
    assert torch.autograd.gradcheck(lambda *given: attend(2, given), tensors)
