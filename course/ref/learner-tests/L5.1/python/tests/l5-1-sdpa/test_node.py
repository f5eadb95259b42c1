"""scaled_dot_product_attention: its results, its gradients, dropout by the course's draws, and what it refuses."""

import numpy as np
import pytest
from sdpa_oracle import attention, close, drawn, gradients, tensors

from tinyllm.autograd.mode import no_grad
from tinyllm.autograd.tensor import Tensor
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.sdpa import scaled_dot_product_attention

MASK = np.array([[True, True, False, True], [True, False, True, True], [False, False, False, False]])


def check(arrays, dout, mult=None, mask=None, scale=None, **options):
    leaves = tensors(*arrays)
    out, weights = scaled_dot_product_attention(*leaves, mask=mask, scale=scale, **options)
    factor = 1.0 if mult is None else mult
    expected, expected_weights = attention(*arrays, mask, scale, factor)
    close(weights.data, expected_weights)
    close(out.data, expected)
    assert out.requires_grad
    assert not weights.requires_grad
    out.backward(dout)
    for leaf, right in zip(leaves, gradients(*arrays, expected_weights, dout, scale, factor), strict=True):
        close(leaf.grad, right)


@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize("scale", [None, 0.4])
def test_output_and_gradients(mask, scale):
    *arrays, dout = drawn((2, 3, 2), (2, 4, 2), (2, 4, 5), (2, 3, 5))
    check(arrays, dout, mask=mask, scale=scale)


@pytest.mark.parametrize("rate", [0.2, 0.6])
def test_dropout(rate):
    *arrays, dout = drawn((2, 3, 2), (2, 4, 2), (2, 4, 5), (2, 3, 5))
    keep = PCG32(11).uniforms(24).reshape(2, 3, 4) >= rate
    check(arrays, dout, keep / (1 - rate), MASK, dropout_p=rate, rng=PCG32(11))


def test_everything_dropped():
    *arrays, dout = drawn((3, 2), (4, 2), (4, 5), (3, 5))
    check(arrays, dout, np.zeros((3, 4)), dropout_p=1.0, rng=PCG32(11))


@pytest.mark.parametrize("rate", [0.0, 0.25])
def test_draws(rate):
    rng, other = PCG32(3), PCG32(3)
    scaled_dot_product_attention(*tensors(*drawn((2, 3, 2), (2, 4, 2), (2, 4, 5))), dropout_p=rate, rng=rng)
    if rate:
        other.uniforms(24)
    assert rng.next_u32() == other.next_u32()


@pytest.mark.parametrize("asking", range(3))
def test_each_input_alone(asking):
    arrays = drawn((3, 2), (4, 2), (4, 5))
    leaves = [Tensor(array, requires_grad=i == asking, dtype=np.float64) for i, array in enumerate(arrays)]
    scaled_dot_product_attention(*leaves)[0].backward(np.ones((3, 5)) + np.arange(5))
    assert [leaf.grad is not None for leaf in leaves] == [i == asking for i in range(3)]


def test_no_grad():
    with no_grad():
        out, _ = scaled_dot_product_attention(*tensors(*drawn((3, 2), (4, 2), (4, 5))))
    assert not out.requires_grad


def test_dtype():
    leaves = tensors(*(array.astype(np.float32) for array in drawn((3, 2), (4, 2), (4, 5))))
    found = scaled_dot_product_attention(*leaves, mask=MASK, dropout_p=0.5, rng=PCG32(1))
    assert [tensor.dtype for tensor in found] == [np.float32, np.float32]


@pytest.mark.parametrize(
    "options",
    [
        {"dropout_p": 0.5},
        {"dropout_p": -0.1, "rng": PCG32(1)},
        {"dropout_p": 1.1, "rng": PCG32(1)},
        {"scale": 0.0},
        {"scale": -1.0},
        {"scale": np.inf},
        {"mask": np.ones((3, 4))},
        {"mask": np.ones((4, 3), dtype=bool)},
        {"mask": np.ones((2, 3, 4), dtype=bool)},
    ],
)
def test_options_are_checked(options):
    with pytest.raises(ValueError):
        scaled_dot_product_attention(*tensors(*drawn((3, 2), (4, 2), (4, 5))), **options)


@pytest.mark.parametrize("shapes", [((3, 2), (4, 3), (4, 5)), ((3, 2), (4, 2), (3, 5)), ((3, 2), (4, 2), (1, 4, 5))])
def test_shapes_are_checked(shapes):
    with pytest.raises(ValueError):
        scaled_dot_product_attention(*tensors(*drawn(*shapes)))
