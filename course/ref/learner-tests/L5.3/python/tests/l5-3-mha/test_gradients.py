"""backward against central differences, in float64."""

import numpy as np
from mha_oracle import inputs, make, tensor

from tinyllm.num.gradcheck import gradcheck


def assert_gradients(mha, x_q, x_kv, mask, same=False):
    """Every parameter's and input's gradient; with `same`, x_q is also where keys and values come from."""
    parameters = dict(mha.named_parameters())
    names = list(parameters)
    cotangent = inputs(x_q.shape, seed=9)[0]

    def run(arrays):
        for name, array in zip(names, arrays, strict=False):
            parameters[name].data = array.copy()
        leaves = [tensor(array, requires_grad=True) for array in arrays[len(names) :]]
        return leaves, mha.forward(leaves[0], leaves[-1], mask)

    def f(*arrays):
        return float((run(arrays)[1].data * cotangent).sum())

    start = [parameters[name].data.copy() for name in names] + ([x_q] if same else [x_q, x_kv])
    leaves, out = run(start)
    mha.zero_grad()
    out.backward(cotangent)
    grads = [parameters[name].grad for name in names] + [leaf.grad for leaf in leaves]
    # The bias of the keys moves all scores of a query alike: no gradient is as right as a gradient of zeros.
    for i, name in enumerate(names):
        if name == "k_proj.bias" and grads[i] is None:
            grads[i] = np.zeros_like(start[i])
    assert all(grad is not None for grad in grads)
    assert gradcheck(f, start, grads).ok


def test_gradients_of_cross_attention():
    x_q, x_kv = inputs((1, 2, 4), (1, 3, 4))
    assert_gradients(make(4, 2), x_q, x_kv, np.array([[True, True, False], [True, True, True]]))


def test_gradients_of_self_attention():
    (x,) = inputs((2, 2, 4))
    assert_gradients(make(4, 2, bias=False), x, x, None, same=True)
