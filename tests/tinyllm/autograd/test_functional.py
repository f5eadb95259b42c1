import math

import numpy as np
import pytest
import torch

from tests.tinyllm.closeness import DTYPES, assert_close, assert_matches_torch
from tinyllm.autograd import functional as F
from tinyllm.autograd.tensor import Tensor
from tinyllm.num.rng import PCG32

rng = np.random.default_rng(0)
X = rng.normal(size=(3, 4, 5))
LAYOUTS = {"C order": X, "transposed": X.T, "strided": np.repeat(X, 2, axis=1)[:, ::2], "0-d": np.array(0.7)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (F.exp, torch.exp),
        (F.tanh, torch.tanh),
        (F.sigmoid, torch.sigmoid),
        (F.relu, torch.relu),
        (F.gelu, torch.nn.functional.gelu),
        (lambda x: F.gelu(x, "tanh"), lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
        (lambda x: F.log(x * x + 1), lambda x: torch.log(x * x + 1)),
    ],
    ids=["exp", "tanh", "sigmoid", "relu", "gelu", "gelu_tanh", "log"],
)
def test_pointwise_functions_match_torch(ours, theirs, layout):
    assert_matches_torch(ours, theirs, [LAYOUTS[layout]])


def test_relu_passes_no_gradient_at_zero():
    x = Tensor([-1.0, 0.0, 1.0], requires_grad=True)
    F.relu(x).backward(np.ones(3))
    assert x.grad.tolist() == [0.0, 0.0, 1.0]


def test_sigmoid_and_tanh_saturate_without_warnings():
    extremes = np.array([-1000.0, -40.0, 0.0, 40.0, 1000.0])
    assert_matches_torch(F.sigmoid, torch.sigmoid, [extremes])
    assert F.sigmoid(Tensor([-80.0], dtype=np.float64)).data[0] == pytest.approx(math.exp(-80))


def test_gelu_refuses_another_approximation():
    with pytest.raises(ValueError, match="approximate"):
        F.gelu(Tensor(1.0), approximate="quick")


AXES = [None, 0, 1, -1, (0, 2), (-1, 0), (0, 1, 2)]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ["sum", "mean", "max", "var", "var1"])
def test_reductions_match_torch(name, axis, keepdims):
    dims = (0, 1, 2) if axis is None else axis
    ours, theirs = {
        "sum": (F.sum, torch.sum),
        "mean": (F.mean, torch.mean),
        "max": (F.max, torch.amax),
        "var": (F.var, lambda x, dim, keepdim: torch.var(x, dim, correction=0, keepdim=keepdim)),
        "var1": (
            lambda x, **how: F.var(x, correction=1, **how),
            lambda x, dim, keepdim: torch.var(x, dim, keepdim=keepdim),
        ),
    }[name]
    assert_matches_torch(
        lambda x: ours(x, axis=axis, keepdims=keepdims), lambda x: theirs(x, dim=dims, keepdim=keepdims), [X]
    )


@pytest.mark.parametrize("reduce", [F.sum, F.mean, F.max, F.var])
def test_reductions_of_a_0d_tensor(reduce):
    x = Tensor(3.0, requires_grad=True)
    reduce(x).backward()
    assert type(x.grad) is np.ndarray and x.grad.shape == () and np.isfinite(x.grad)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)], ids=str)
def test_ties_in_max_share_the_gradient_evenly(axis):
    tied = np.array([[1.0, 3.0, 3.0], [3.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    dims = (0, 1) if axis is None else axis
    assert_matches_torch(lambda x: F.max(x, axis=axis), lambda x: torch.amax(x, dim=dims), [tied])
    x = Tensor(tied, requires_grad=True)
    F.max(x, axis=1).backward([6.0, 6.0, 6.0])
    assert x.grad.tolist() == [[0, 3, 3], [3, 0, 3], [2, 2, 2]]


def test_var_needs_more_elements_than_its_correction():
    with pytest.raises(ValueError, match="correction"):
        F.var(Tensor([[1.0], [2.0]]), axis=1, correction=1)


SHAPING = {
    "reshape": (lambda x: F.reshape(x, (5, 12)), lambda x: x.reshape(5, 12)),
    "reshape -1": (lambda x: F.reshape(x, (2, -1)), lambda x: x.reshape(2, -1)),
    "flatten": (lambda x: F.reshape(x, -1), lambda x: x.reshape(-1)),
    "transpose": (lambda x: F.transpose(x, 0, 2), lambda x: x.transpose(0, 2)),
    "transpose negative": (lambda x: F.transpose(x, -1, 1), lambda x: x.transpose(-1, 1)),
    "permute": (lambda x: F.permute(x, (2, 0, 1)), lambda x: x.permute(2, 0, 1)),
    "permute negative": (lambda x: F.permute(x, [-1, 0, -2]), lambda x: x.permute(-1, 0, -2)),
    "reshape after transpose": (
        lambda x: F.reshape(F.transpose(x, 1, 2), (3, 20)),
        lambda x: x.transpose(1, 2).reshape(3, 20),
    ),
}


@pytest.mark.parametrize("name", SHAPING)
def test_shaping_matches_torch(name):
    assert_matches_torch(*SHAPING[name], [X])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_and_stack_match_torch(axis):
    parts = [rng.normal(size=(2, 3)) for _ in range(3)]
    assert_matches_torch(lambda *xs: F.stack(xs, axis), lambda *xs: torch.stack(xs, axis), parts)
    assert_matches_torch(lambda *xs: F.concat(xs, axis), lambda *xs: torch.cat(xs, axis), parts)
    uneven = [np.moveaxis(rng.normal(size=(n, 2)), 0, axis) for n in (1, 3, 2)]
    assert_matches_torch(lambda *xs: F.concat(list(xs), axis=axis), lambda *xs: torch.cat(xs, axis), uneven)


def test_one_tensor_stacked_with_itself_gets_both_gradients():
    x = Tensor([1.0, 2.0], requires_grad=True)
    F.stack([x, x]).backward([[1.0, 2.0], [3.0, 4.0]])
    assert x.grad.tolist() == [4.0, 6.0]


def test_where_matches_torch_and_broadcasts_all_three():
    cond = rng.normal(size=(3, 1)) > 0
    inputs = [rng.normal(size=(4,)), rng.normal(size=(2, 1, 4))]
    assert_matches_torch(lambda a, b: F.where(cond, a, b), lambda a, b: torch.where(torch.tensor(cond), a, b), inputs)
    x = Tensor([1.0, 2.0], requires_grad=True, dtype=np.float64)
    out = F.where([True, False], x, -1)
    out.backward([5.0, 5.0])
    assert out.dtype == np.float64 and out.data.tolist() == [1, -1] and x.grad.tolist() == [5, 0]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_matches_torch_and_repeated_indices_accumulate(axis):
    shape = [3, 4, 5]
    shape[axis] = 7  # more picks than rows: some must repeat
    idx = rng.integers(0, X.shape[axis], size=shape)
    assert_matches_torch(
        lambda x: F.gather(x, idx, axis), lambda x: torch.take_along_dim(x, torch.tensor(idx), axis), [X]
    )


def test_gather_broadcasts_as_take_along_axis_does():
    x, idx = Tensor(rng.normal(size=(3, 4)), requires_grad=True), np.array([[1, 1]])
    out = F.gather(x, idx, 1)
    np.testing.assert_array_equal(out.data, np.take_along_axis(x.data, idx, 1))
    out.backward(np.ones(out.shape))
    assert x.grad.tolist() == [[0, 2, 0, 0]] * 3


def test_embedding_matches_torch_and_repeated_ids_accumulate():
    ids = np.array([[0, 2, 2], [4, 2, 0]])
    assert_matches_torch(
        lambda w: F.embedding(w, ids),
        lambda w: torch.nn.functional.embedding(torch.tensor(ids), w),
        [rng.normal(size=(5, 3))],
    )
    assert F.embedding(Tensor(np.ones((5, 3))), []).shape == (0, 3)


@pytest.mark.parametrize("ids", [[5], [-1], [[0, 99]], [0.0], [True]])
def test_embedding_refuses_ids_outside_the_table_and_other_dtypes(ids):
    with pytest.raises(ValueError, match="ids"):
        F.embedding(Tensor(np.ones((5, 3))), ids)


@pytest.mark.parametrize("value", [0.0, -1e9, -np.inf])
def test_masked_fill_matches_torch(value):
    mask = rng.normal(size=(4, 1)) > 0
    assert_matches_torch(
        lambda x: F.masked_fill(x, mask, value), lambda x: x.masked_fill(torch.tensor(mask), value), [X]
    )


def test_masked_fill_refuses_masks_that_are_not_bool_or_too_large():
    with pytest.raises(ValueError, match="bool"):
        F.masked_fill(Tensor(X), np.ones((4, 1)), 0.0)
    with pytest.raises(ValueError):
        F.masked_fill(Tensor(X), np.ones((2, 3, 4, 5), dtype=bool), 0.0)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_softmax_family_matches_torch(axis, scale):
    x = X * scale
    assert_matches_torch(lambda t: F.softmax(t, axis), lambda t: torch.softmax(t, axis), [x])
    assert_matches_torch(lambda t: F.log_softmax(t, axis), lambda t: torch.log_softmax(t, axis), [x])
    assert_matches_torch(lambda t: F.logsumexp(t, axis), lambda t: torch.logsumexp(t, axis), [x])
    assert_matches_torch(
        lambda t: F.logsumexp(t, axis, keepdims=True), lambda t: torch.logsumexp(t, axis, keepdim=True), [x]
    )


def test_partly_masked_rows_match_torch():
    x = np.where(rng.normal(size=X.shape) > 0.3, -np.inf, X)
    x[..., 0] = 1.0
    assert_matches_torch(F.softmax, lambda t: torch.softmax(t, -1), [x])
    assert_matches_torch(F.logsumexp, lambda t: torch.logsumexp(t, -1), [x])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("f", "value"), [(F.softmax, 0.0), (F.log_softmax, -np.inf), (F.logsumexp, -np.inf)])
def test_a_fully_masked_row_is_defined_and_passes_no_gradient(f, value, dtype):
    x = Tensor([[-np.inf] * 3, [0.0, 1.0, 2.0]], requires_grad=True, dtype=dtype)
    out = f(x)
    out.backward(np.ones(out.shape))
    assert (out.data[0] == value).all() and np.isfinite(out.data[1]).all()
    assert (x.grad[0] == 0).all() and np.isfinite(x.grad).all()


# --- dropout ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_where_the_draw_is_at_least_p(p, dtype):
    x = Tensor(X.T, requires_grad=True, dtype=dtype)  # not C order in memory; the draws still are
    out = F.dropout(x, p, True, PCG32(3))
    draws = PCG32(3)
    u = np.array([draws.uniform() for _ in range(x.data.size)]).reshape(x.shape)
    factor = ((u >= p) / (1 - p)).astype(dtype)
    assert_close(out.data, x.data * factor)
    out.backward(np.ones(out.shape))
    assert_close(x.grad, factor)


def test_dropout_of_everything_is_zeros_and_still_draws():
    stream = PCG32(3)
    x = Tensor(X, requires_grad=True)
    out = F.dropout(x, 1.0, True, stream)
    out.backward(np.ones(out.shape))
    assert not out.data.any() and not x.grad.any()
    expected = PCG32(3)
    expected.uniforms(X.size)
    assert stream.state() == expected.state()


@pytest.mark.parametrize(("p", "training"), [(0.0, True), (0.5, False), (1.0, False)])
def test_dropout_that_does_nothing_returns_x_itself_and_draws_nothing(p, training):
    stream = PCG32(3)
    x = Tensor(X)
    assert F.dropout(x, p, training, stream) is x
    assert stream.state() == PCG32(3).state()


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
@pytest.mark.parametrize("training", [True, False])
def test_dropout_refuses_p_outside_0_and_1(p, training):
    with pytest.raises(ValueError, match="p"):
        F.dropout(Tensor(X), p, training, PCG32(0))


def test_dropout_asks_its_rng_for_uniforms_only():
    class Scripted:
        def uniforms(self, n):
            return np.arange(n) / n

    out = F.dropout(Tensor(np.ones(4)), 0.5, True, Scripted())
    assert out.data.tolist() == [0.0, 0.0, 2.0, 2.0]
