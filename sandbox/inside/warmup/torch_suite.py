"""Run once by the template of the torch runtime, so that no child pays for what torch imports when it is first used:
the first comparison by torch.testing alone loads five hundred modules, in almost a second."""

import torch
from torch import nn


def test_comparisons() -> None:
    one = torch.ones(2, 3, dtype=torch.float64)
    torch.testing.assert_close(one, one.clone())
    torch.testing.assert_close(one, one + 1)  # fails, as the message is what takes long


def test_gradients() -> None:
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: torch.softmax(a, -1) @ a.mT, [x])
    assert torch.autograd.grad(torch.einsum("ij,kj->ik", x, x).sum(), x)[0].shape == x.shape
    assert repr(x)


def test_modules_and_attention() -> None:
    x = torch.ones(1, 3, 4)
    linear = nn.Linear(4, 4)
    torch.func.functional_call(linear, dict(linear.named_parameters()), (x,))
    nn.MultiheadAttention(4, 2, batch_first=True)(x, x, x)
    nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
