import numpy as np
import pytest

from tinyllm.autograd.tensor import Tensor
from tinyllm.num.gradcheck import gradcheck
from tinyllm.xfmr.mha import MultiHeadAttention


@pytest.fixture
def mha():
    rng = np.random.default_rng(5)
    module = MultiHeadAttention(4, 2)
    for _, p in module.named_parameters():
        p.data = rng.normal(size=p.shape)
    return module


def check(mha, x_q, x_kv, names=()):
    """Analytic gradients of a weighted sum of the output against central differences."""
    weights = np.random.default_rng(1).normal(size=(*x_q.shape[:2], 4))
    params = dict(mha.named_parameters())

    def run(q, kv, *values):
        for name, value in zip(names, values):
            params[name].data = value
        return mha.attend(q, kv)[0]

    def number(a, b, *values):
        out = run(Tensor(a, dtype=np.float64), Tensor(b, dtype=np.float64), *values)
        return (out.data * weights).sum()

    values = [params[name].data.copy() for name in names]
    q = Tensor(x_q, requires_grad=True, dtype=np.float64)
    kv = Tensor(x_kv, requires_grad=True, dtype=np.float64)
    run(q, kv, *values).backward(weights)
    analytic = [q.grad, kv.grad, *(params[name].grad for name in names)]
    assert gradcheck(number, [x_q, x_kv, *values], analytic).ok


def test_gradients_of_the_inputs(mha):
    rng = np.random.default_rng(2)
    check(mha, rng.normal(size=(2, 2, 4)), rng.normal(size=(2, 3, 4)))


@pytest.mark.parametrize("name", ["q_proj.weight", "k_proj.weight", "v_proj.weight", "out_proj.weight", "v_proj.bias"])
def test_gradients_of_the_parameters(mha, name):
    rng = np.random.default_rng(3)
    check(mha, rng.normal(size=(1, 2, 4)), rng.normal(size=(1, 3, 4)), [name])


def test_gradients_reach_every_parameter(mha):
    x = Tensor(np.random.default_rng(4).normal(size=(2, 3, 4)), dtype=np.float64)
    out, _ = mha.attend(x, x)
    out.backward(np.ones(out.shape))
    assert all(p.grad is not None for name, p in mha.named_parameters() if name != "k_proj.bias")
