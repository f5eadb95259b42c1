"""An array and what it should be arrive; nothing leaves unless shape, dtype, finiteness or a value differs."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from tinyllm.autograd.tensor import Tensor

torch.set_num_threads(1)  # the arrays are tiny: threads only wait for each other

DTYPES = (np.float32, np.float64)


def assert_close(
    actual: NDArray[Any], expected: NDArray[Any], rtol: float | None = None, atol: float | None = None
) -> None:
    """|actual - expected| <= atol + rtol |expected|.

    Default tolerances: 1e-12 + 1e-10 |e| in float64; 5e-6 max(1, max |e|) + 1e-5 |e| in float32, which leaves
    room for sums taken in another order.
    """
    assert type(actual) is np.ndarray
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(actual[~finite], expected[~finite])
    assert np.isfinite(actual[finite]).all()
    if atol is None:
        largest = np.abs(expected[finite]).max(initial=1.0)
        atol = 1e-12 * largest if expected.dtype == np.float64 else 5e-6 * largest
    if rtol is None:
        rtol = 1e-10 if expected.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(actual[finite], expected[finite], rtol=rtol, atol=atol)


def assert_matches_torch(
    ours: Callable[..., Tensor],
    theirs: Callable[..., torch.Tensor],
    inputs: Sequence[ArrayLike],
    dtypes: Sequence[Any] = DTYPES,
) -> None:
    """Run both on the same inputs in each dtype; compare the output and, for a random cotangent, every gradient."""
    for dtype in dtypes:
        leaves = [Tensor(x, requires_grad=True, dtype=dtype) for x in inputs]
        torch_leaves = [torch.tensor(np.array(x, dtype=dtype), requires_grad=True) for x in inputs]
        out, torch_out = ours(*leaves), theirs(*torch_leaves)
        assert_close(out.data, torch_out.detach().numpy())
        cotangent = np.random.default_rng(7).normal(size=out.shape).astype(dtype)
        out.backward(cotangent)
        torch_out.backward(torch.from_numpy(cotangent))
        for leaf, torch_leaf in zip(leaves, torch_leaves, strict=True):
            assert leaf.grad is not None and torch_leaf.grad is not None
            assert_close(leaf.grad, torch_leaf.grad.numpy())
