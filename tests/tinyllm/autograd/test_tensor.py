import copy
import operator
import subprocess
import sys

import numpy as np
import pytest
import torch

from tests.tinyllm.closeness import assert_close, assert_matches_torch
from tinyllm.autograd import functional as F
from tinyllm.autograd.tensor import Tensor, from_op

rng = np.random.default_rng(0)


def leaf(data, dtype=np.float32):
    return Tensor(data, requires_grad=True, dtype=dtype)


# --- construction -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [3, [1, 2], [[1.5], [2.5]], np.arange(4), np.float64(2.5), True])
def test_data_becomes_float32(data):
    t = Tensor(data)
    assert t.dtype == np.float32 and t.shape == np.shape(data) and t.ndim == np.ndim(data)
    assert t.grad is None and t.requires_grad is False
    np.testing.assert_array_equal(t.data, data)


def test_data_is_copied():
    source = np.zeros(3, dtype=np.float32)
    t = Tensor(source)
    source[0] = 1
    assert t.data[0] == 0


@pytest.mark.parametrize("dtype", [np.int64, bool, np.complex128, "int8", object])
def test_a_dtype_that_is_not_floating_is_refused(dtype):
    with pytest.raises(ValueError, match="dtype"):
        Tensor([1.0], dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, "float64"])
def test_floating_dtypes_are_kept(dtype):
    assert Tensor([1.0], dtype=dtype).dtype == np.dtype(dtype)


def test_len_is_the_first_axis():
    assert len(Tensor(np.zeros((4, 2)))) == 4
    with pytest.raises(TypeError):
        len(Tensor(1.0))


def test_numpy_is_the_array_itself_and_detach_shares_it():
    t = leaf([1.0, 2.0])
    assert t.numpy() is t.data
    d = (t * 1).detach()
    assert not d.requires_grad and t.detach().data is t.data
    with pytest.raises(RuntimeError):
        (d * 2).backward([1.0, 1.0])


def test_numpy_reads_a_tensor_as_one_array():
    t = leaf(rng.normal(size=(2, 3)))
    array = np.asarray(t)
    assert array.dtype == np.float32 and array.shape == (2, 3)
    np.testing.assert_array_equal(array, t.data)


# --- arithmetic -------------------------------------------------------------------------------------------

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv]
SHAPES = [
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((4,), (3, 4)),
    ((3, 1), (1, 4)),
    ((), (2, 3)),
    ((2, 1, 4), (3, 1)),
    ((), ()),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("op", BINARY)
def test_arithmetic_matches_torch_with_broadcasting(op, shapes):
    inputs = [rng.normal(size=s) + 3 for s in shapes]
    assert_matches_torch(op, op, inputs)


@pytest.mark.parametrize("op", BINARY)
def test_arithmetic_on_non_contiguous_inputs(op):
    assert_matches_torch(op, op, [rng.normal(size=(4, 3)).T + 3, rng.normal(size=(6, 4))[::2] + 3])


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
        ((2, 3, 4), (4, 5)),
    ],
)
def test_matmul_matches_torch(a, b):
    inputs = [rng.normal(size=a), rng.normal(size=b)]
    assert_matches_torch(operator.matmul, torch.matmul, inputs)
    assert_matches_torch(F.matmul, torch.matmul, inputs)


def test_matmul_refuses_a_number():
    with pytest.raises(ValueError):
        _ = Tensor(np.ones((2, 2))) @ 2.0


@pytest.mark.parametrize("n", [2, 3.0, -1, 0.5, 0, 1, np.float64(2), np.int64(3)])
def test_power_matches_torch(n):
    assert_matches_torch(lambda x: x**n, lambda x: x ** float(n), [rng.uniform(0.5, 2, size=(3, 2))])


def test_power_zero_has_zero_gradient_even_at_zero():
    x = leaf([0.0, 2.0])
    (x**0).backward([1.0, 1.0])
    assert x.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("exponent", [Tensor(2.0), np.array(2.0), np.array([2.0, 3.0]), "2"])
def test_an_exponent_that_is_not_a_number_is_refused(exponent):
    with pytest.raises(TypeError):
        leaf([1.0, 2.0]) ** exponent
    with pytest.raises(TypeError):
        2.0 ** leaf([1.0])
    with pytest.raises(TypeError):
        np.ones(2) ** leaf([1.0, 2.0])


def test_negation_matches_torch():
    assert_matches_torch(operator.neg, operator.neg, [rng.normal(size=(2, 3))])


CONSTANTS = [2, 2.5, np.float32(2), np.float64(2.5), np.int64(3), np.arange(1, 4), np.arange(1.0, 4.0), np.ones((2, 3))]


@pytest.mark.parametrize("constant", CONSTANTS, ids=lambda c: f"{type(c).__name__}{np.shape(c)}")
@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_constants_on_either_side_take_the_tensors_dtype(op, constant, dtype):
    for swap in (False, True):
        x = leaf([1.0, 2.0, 4.0], dtype)
        out = op(constant, x) if swap else op(x, constant)
        expected = op(constant, x.data.astype(np.float64)) if swap else op(x.data.astype(np.float64), constant)
        assert isinstance(out, Tensor) and out.dtype == dtype
        np.testing.assert_allclose(out.data, expected, rtol=1e-3)
        out.backward(np.ones(out.shape))
        assert x.grad.shape == (3,) and x.grad.dtype == dtype


def test_matmul_with_an_array_on_either_side():
    x, a = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    for ours, theirs in [
        (lambda t: a @ t, lambda t: torch.tensor(a) @ t),
        (lambda t: t @ a, lambda t: t @ torch.tensor(a)),
    ]:
        assert_matches_torch(ours, theirs, [x], dtypes=[np.float64])
    assert (a @ leaf(x)).dtype == np.float32


@pytest.mark.parametrize("other", ["1", None, [1.0, 2.0], {}])
def test_operands_of_other_types_are_refused(other):
    for op in (*BINARY, operator.matmul):
        with pytest.raises(TypeError):
            op(leaf([1.0, 2.0]), other)
        with pytest.raises(TypeError):
            op(other, leaf([1.0, 2.0]))


INDICES = [
    1,
    -1,
    slice(None, None, -2),
    (slice(1, 3), 2),
    (..., 0),
    (None, slice(None), None),
    [0, 0, 2],
    np.array([[1, 1], [1, 0]]),
    (np.array([0, 0, 1]), np.array([3, 3, 3])),
    (slice(None), [1, 1, -3]),
    np.arange(12).reshape(3, 4) % 5 == 0,
    (2, 3),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_matches_numpy_and_repeated_indices_accumulate(index):
    for dtype in (np.float32, np.float64):
        x = leaf(rng.normal(size=(3, 4)), dtype)
        out = x[index]
        assert out.dtype == dtype
        np.testing.assert_array_equal(out.data, x.data[index])
        g = rng.normal(size=out.shape).astype(dtype)
        out.backward(g)
        expected = np.zeros((3, 4))
        numbers = np.arange(12).reshape(3, 4)[index]
        for number, value in zip(np.ravel(numbers), g.ravel(), strict=True):
            expected[np.unravel_index(number, (3, 4))] += value
        assert_close(x.grad, expected.astype(dtype))


def test_an_index_out_of_range_is_refused():
    with pytest.raises(IndexError):
        leaf([1.0])[1]


# --- backward ---------------------------------------------------------------------------------------------


def test_a_tensor_used_twice_gets_both_contributions():
    x = leaf([2.0, 3.0])
    (x * x + x).backward([1.0, 1.0])
    assert x.grad.tolist() == [5.0, 7.0]


def test_a_diamond_is_walked_once_per_node():
    calls = []
    x = leaf(1.0)
    y = from_op(x.data * 2, (x,), lambda g: calls.append(float(g)) or (g * 2,), "double")
    (y * 3 + y * 4).backward()
    assert calls == [7.0] and x.grad == 14.0


def test_gradients_add_up_across_calls():
    x = leaf([1.0, 2.0])
    y = (x * 3).backward
    y([1.0, 1.0])
    first = x.grad
    y([1.0, 1.0])
    assert x.grad.tolist() == [6.0, 6.0] and first.tolist() == [3.0, 3.0]
    x.grad = None
    y([1.0, 1.0])
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_single_element_needs_no_gradient(shape):
    x = leaf(np.full(shape, 2.0))
    (x * 3).backward()
    assert type(x.grad) is np.ndarray and x.grad.shape == shape and x.grad.dtype == np.float32
    assert float(x.grad.reshape(())) == 3.0
    (x * 3).backward()
    assert type(x.grad) is np.ndarray and x.grad.shape == shape


def test_a_number_serves_as_gradient_of_a_0d_tensor():
    x = leaf([1.0, 2.0])
    F.sum(x).backward(2.5)
    assert x.grad.tolist() == [2.5, 2.5]


def test_backward_of_a_leaf_is_its_own_gradient():
    x = leaf([1.0, 2.0])
    seed = np.array([3.0, 4.0], dtype=np.float32)
    x.backward(seed)
    seed[0] = 99
    assert x.grad.tolist() == [3.0, 4.0]


def test_backward_without_gradient_needs_a_single_element():
    with pytest.raises(RuntimeError, match="single element"):
        (leaf([1.0, 2.0]) * 2).backward()


def test_backward_needs_a_graph():
    with pytest.raises(RuntimeError, match="requires grad"):
        Tensor(1.0).backward()
    with pytest.raises(RuntimeError, match="requires grad"):
        (Tensor([1.0, 2.0]) * 2).backward([1.0, 2.0, 3.0])


@pytest.mark.parametrize("grad", [1.0, [1.0], [[1.0, 1.0]], np.ones(3)])
def test_a_gradient_of_another_shape_is_refused(grad):
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match="shape"):
        (x * 2).backward(grad)
    assert x.grad is None


@pytest.mark.parametrize("wrong", [np.ones(3), np.ones((1, 2)), np.float32(1)])
def test_an_op_that_returns_a_gradient_of_the_wrong_shape_is_named_and_changes_nothing(wrong):
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    bad = from_op(x.data, (x,), lambda g: (wrong,), "crooked")
    with pytest.raises(RuntimeError, match="crooked"):
        (y + bad).backward([1.0, 1.0])
    assert x.grad is None and y.grad is None


def test_an_op_that_returns_too_few_gradients_is_refused():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="2 parents"):
        from_op(x.data, (x, x), lambda g: (g,), "short").backward()


def test_none_means_no_gradient():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    from_op(x.data, (x * 2, y), lambda g: (None, g), "skip").backward([1.0, 1.0])
    assert x.grad is None and y.grad.tolist() == [1.0, 1.0]


def test_only_leaves_that_require_grad_get_one():
    x, constant = leaf([1.0, 2.0]), Tensor([3.0, 4.0])
    middle = x * constant
    out = middle + 1
    out.backward([1.0, 1.0])
    assert x.grad is not None
    assert middle.grad is None and out.grad is None and constant.grad is None


def test_gradients_never_share_memory():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    z = x + y
    seed = np.ones(2, dtype=np.float32)
    z.backward(seed)
    arrays = [x.grad, y.grad, x.data, y.data, z.data, seed]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[i + 1 :])
    x.grad[...] = 9
    z.backward(seed)
    assert x.grad.tolist() == [10.0, 10.0] and y.grad.tolist() == [2.0, 2.0]


def test_a_summed_gradient_can_be_written_into():
    x = leaf(np.ones((2, 3)))
    F.sum(x).backward()
    x.grad += 1  # broadcasting inside must not leave a read-only view
    assert (x.grad == 2).all()


def test_each_leaf_keeps_its_own_dtype_where_dtypes_mix():
    x, y = leaf([1.0, 2.0], np.float32), leaf([3.0, 4.0], np.float64)
    out = x * y
    assert out.dtype == np.float64
    out.backward([1.0, 1.0])
    assert x.grad.dtype == np.float32 and y.grad.dtype == np.float64


def test_an_op_receives_the_gradient_in_the_dtype_of_its_output():
    seen = []
    x = leaf([1.0, 2.0], np.float32)
    middle = from_op(x.data, (x,), lambda g: seen.append(g.dtype) or (g,), "watch")
    (middle * leaf([3.0, 4.0], np.float64)).backward([1.0, 1.0])
    assert seen == [np.float32]


def test_assigned_and_written_data_take_effect_at_the_next_forward():
    x = leaf([1.0, 2.0])
    (x * x).backward([1.0, 1.0])
    x.data = np.array([1e-9 + 1, 2.0])
    x.data[1] = 5.0
    x.grad = None
    out = x * x
    assert out.dtype == np.float64 and out.data[0] != 1.0
    out.backward([1.0, 1.0])
    assert x.grad.dtype == np.float64 and x.grad[1] == 10.0


def test_from_op_records_only_what_can_need_a_gradient():
    def never(g):
        raise AssertionError

    assert not from_op(np.ones(2), (Tensor([1.0, 2.0]),), never, "constant").requires_grad
    assert from_op(np.ones(2), (Tensor(1.0), leaf(1.0)), never).requires_grad


def test_a_deep_copy_of_a_leaf_shares_nothing():
    x = leaf([1.0, 2.0])
    twin = copy.deepcopy(x)
    twin.data[0] = 7
    assert x.data[0] == 1 and twin.requires_grad


CHAIN = """
import gc
from tinyllm.autograd.tensor import Tensor, from_op
x = Tensor(1.0, requires_grad=True)
y = x
for _ in range(100_000):
    y = y + 1
y.backward()
assert x.grad == 1 and y.data == 100_001
del y
y = x
for _ in range(100_000):
    y = from_op(y.data, (y,), (lambda held: lambda g: (g + 0 * held.data,))(y))  # an op that keeps a Tensor
y.backward()
assert x.grad == 2
del y
gc.collect()
print("freed")
"""


def test_a_chain_of_100_000_ops_is_differentiated_and_freed():
    # In a process of its own: a chain freed recursively would overflow the C stack and end this one.
    done = subprocess.run(
        [sys.executable, "-c", CHAIN], capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert (done.stdout.strip(), done.returncode) == ("freed", 0), done.stderr
