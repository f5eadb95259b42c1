import numpy as np
import pytest

from tests.tinyllm.closeness import assert_close
from tinyllm.autograd.vjp import matmul_vjp, softmax_vjp, unbroadcast


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1), (1, 4), (3, 4), (2, 1, 1), (1, 3, 4), (2, 3, 4)])
def test_unbroadcast_is_the_adjoint_of_broadcasting(shape):
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=shape), rng.normal(size=(2, 3, 4))
    back = unbroadcast(g, shape)
    assert back.shape == shape
    assert np.isclose((np.broadcast_to(x, g.shape) * g).sum(), (x * back).sum())


@pytest.mark.parametrize("shape", [(2,), (3, 3), (5, 2, 3, 4)])
def test_unbroadcast_refuses_a_shape_that_does_not_broadcast(shape):
    with pytest.raises(ValueError, match="broadcast"):
        unbroadcast(np.zeros((2, 3, 4)), shape)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4, 5)),
        ((4,), (4,)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((2, 1, 3, 4), (6, 4, 5)),
        ((4,), (2, 4, 5)),
        ((2, 3, 4), (4,)),
        ((1, 3, 4), (2, 4, 5)),
    ],
)
def test_matmul_vjp_is_the_adjoint_of_matmul(a, b):
    rng = np.random.default_rng(1)
    A, B, dA, dB = (rng.normal(size=s) for s in (a, b, a, b))
    g = rng.normal(size=(A @ B).shape)
    gA, gB = matmul_vjp(g, A, B)
    assert gA.shape == a and gB.shape == b
    assert np.isclose(((dA @ B + A @ dB) * g).sum(), (gA * dA).sum() + (gB * dB).sum())


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_vjp_is_the_jacobian_product(axis):
    rng = np.random.default_rng(2)
    e = np.exp(rng.normal(size=(3, 4)))
    y, g = e / e.sum(axis, keepdims=True), rng.normal(size=(3, 4))
    rows, gs = (np.moveaxis(a, axis, -1) for a in (y, g))
    expected = np.stack([(np.diag(p) - np.outer(p, p)) @ h for p, h in zip(rows, gs, strict=True)])
    assert_close(softmax_vjp(g, y, axis), np.moveaxis(expected, -1, axis))


def test_softmax_vjp_of_a_row_of_zeros_is_zeros():
    assert not softmax_vjp(np.ones((2, 3)), np.zeros((2, 3))).any()
