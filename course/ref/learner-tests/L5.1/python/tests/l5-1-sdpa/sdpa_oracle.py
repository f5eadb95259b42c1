"""Scaled dot-product attention again, in float64, one query at a time, with the Jacobian of the softmax written out."""

import numpy as np

from tinyllm.autograd.tensor import Tensor


def drawn(*shapes, seed=1):
    draw = np.random.default_rng(seed)
    return [draw.standard_normal(shape) for shape in shapes]


def tensors(*arrays):
    return [Tensor(array, requires_grad=True, dtype=array.dtype) for array in arrays]


def attention(q, k, v, mask=None, scale=None, mult=1.0):
    """The output and the weights before dropout; `mult` is what dropout multiplies the weights by."""
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    shape = (*q.shape[:-1], k.shape[-2])
    mask = np.broadcast_to(True if mask is None else mask, shape)
    weights = np.zeros(shape)
    for at in np.ndindex(shape[:-1]):
        seen = mask[at]
        if seen.any():
            scores = scale * (k[at[:-1]][seen] @ q[at])
            powers = np.exp(scores - scores.max())
            weights[at][seen] = powers / powers.sum()
    return np.einsum("...ij,...jv->...iv", weights * mult, v), weights


def gradients(q, k, v, weights, dout, scale=None, mult=1.0):
    """The gradients of q, k and v."""
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    mult = np.broadcast_to(mult, weights.shape)
    jacobian = np.einsum("...j,jl->...jl", weights, np.eye(weights.shape[-1]))
    jacobian = jacobian - np.einsum("...j,...l->...jl", weights, weights)
    ds = scale * np.einsum("...ijl,...il,...iv,...lv->...ij", jacobian, mult, dout, v)
    dq = np.einsum("...ij,...jd->...id", ds, k)
    dk = np.einsum("...ij,...id->...jd", ds, q)
    return dq, dk, np.einsum("...ij,...ij,...iv->...jv", weights, mult, dout)


def close(found, expected):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
