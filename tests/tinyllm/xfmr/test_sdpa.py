import numpy as np
import pytest
import torch

from tests.tinyllm.closeness import DTYPES, assert_close
from tinyllm.autograd.tensor import Tensor
from tinyllm.num.gradcheck import gradcheck
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.sdpa import scaled_dot_product_attention, sdpa_backward, sdpa_forward

rng = np.random.default_rng(0)
Q, K, V = rng.normal(size=(2, 3, 4, 6)), rng.normal(size=(2, 3, 5, 6)), rng.normal(size=(2, 3, 5, 7))
MASK = rng.normal(size=(2, 1, 4, 5)) > -0.3
MASK[..., 0] = True  # nobody without a key; masked rows have tests of their own
MASKS = {
    "none": None,
    "2-D": MASK[0, 0],
    "per sequence": MASK,
    "keys": MASK[0, 0, :1],
    "all": np.broadcast_to(MASK, (2, 3, 4, 5)),
}


def tensors(dtype=np.float64, arrays=(Q, K, V)):
    return [Tensor(a, requires_grad=True, dtype=dtype) for a in arrays]


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("scale", [None, 0.3, np.float64(2.0)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_matches_torch(dtype, mask, scale):
    q, k, v = tensors(dtype)
    tq, tk, tv = (torch.tensor(t.data, requires_grad=True) for t in (q, k, v))
    out, weights = scaled_dot_product_attention(q, k, v, mask=mask, scale=scale)
    torch_mask = None if mask is None else torch.tensor(np.array(mask))
    torch_out = torch.nn.functional.scaled_dot_product_attention(tq, tk, tv, attn_mask=torch_mask, scale=scale)
    assert_close(out.data, torch_out.detach().numpy())
    g = rng.normal(size=out.shape).astype(dtype)
    out.backward(g)
    torch_out.backward(torch.from_numpy(g))
    for ours, theirs in zip((q, k, v), (tq, tk, tv), strict=True):
        assert_close(ours.grad, theirs.grad.numpy())
    assert not weights.requires_grad and weights.dtype == dtype
    assert_close(weights.data @ v.data, out.data)
    if mask is not None:
        assert (weights.data[~np.broadcast_to(mask, weights.shape)] == 0).all()


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_any_number_of_leading_axes(shape):
    q, k, v = (a[(0,) * (2 - len(shape))] if shape != (1,) else a[:1, 0] for a in (Q, K, V))
    out, p = sdpa_forward(q, k, v)
    assert out.shape == (*q.shape[:-1], 7) and p.shape == (*q.shape[:-1], 5)
    np.testing.assert_allclose(p.sum(-1), 1)


def test_numpy_forward_and_backward_are_what_the_node_uses():
    q, k, v = tensors()
    out, weights = scaled_dot_product_attention(q, k, v, mask=MASK, scale=0.7)
    o, p = sdpa_forward(Q, K, V, MASK, 0.7)
    assert_close(out.data, o)
    assert_close(weights.data, p)
    g = rng.normal(size=o.shape)
    out.backward(g)
    for tensor, expected in zip((q, k, v), sdpa_backward(Q, K, V, p, g, 0.7), strict=True):
        assert_close(tensor.grad, expected)


def test_the_gradient_through_dropout_passes_gradcheck():
    g = rng.normal(size=(2, 3, 4, 7))

    def run(q, k, v):
        return scaled_dot_product_attention(q, k, v, mask=MASK, dropout_p=0.4, rng=PCG32(5))[0]

    leaves = tensors()
    run(*leaves).backward(g)
    report = gradcheck(
        lambda *arrays: (run(*tensors(arrays=arrays)).data * g).sum(), [Q, K, V], [t.grad for t in leaves]
    )
    assert report.ok, report


@pytest.mark.parametrize("dropout_p", [0.25, 1.0])
def test_dropout_multiplies_the_weights_by_the_drawn_factors(dropout_p):
    q, k, v = tensors()
    stream, expected_stream = PCG32(5), PCG32(5)
    out, weights = scaled_dot_product_attention(q, k, v, dropout_p=dropout_p, rng=stream)
    _, p = sdpa_forward(Q, K, V)
    kept = expected_stream.uniforms(p.size).reshape(p.shape) >= dropout_p
    mult = kept / (1 - dropout_p) if dropout_p < 1 else np.zeros(p.shape)
    assert_close(weights.data, p)  # before dropout
    assert_close(out.data, (p * mult) @ V)
    g = rng.normal(size=out.shape)
    out.backward(g)
    for tensor, expected in zip((q, k, v), sdpa_backward(Q, K, V, p, g, dropout_mult=mult), strict=True):
        assert_close(tensor.grad, expected)
    assert stream.state() == expected_stream.state()


def test_without_dropout_nothing_is_drawn():
    stream = PCG32(5)
    scaled_dot_product_attention(*tensors(), dropout_p=0.0, rng=stream)
    assert stream.state() == PCG32(5).state()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_query_that_may_attend_nothing_gets_zeros_and_passes_no_gradient(dtype):
    mask = np.ones((4, 5), dtype=bool)
    mask[1] = False
    q, k, v = tensors(dtype)
    out, weights = scaled_dot_product_attention(q, k, v, mask=mask)
    out.backward(np.ones(out.shape))
    assert not out.data[..., 1, :].any() and not weights.data[..., 1, :].any() and not q.grad[..., 1, :].any()
    assert all(np.isfinite(t.grad).all() for t in (q, k, v))
    nothing, _ = scaled_dot_product_attention(q, k, v, mask=np.zeros((4, 5), dtype=bool))
    for t in (q, k, v):
        t.grad = None
    nothing.backward(np.ones(out.shape))
    assert not any(t.grad.any() for t in (q, k, v))


def test_huge_scores_do_not_overflow():
    out, weights = scaled_dot_product_attention(*tensors(np.float32, (Q * 1e4, K * 1e4, V)))
    assert np.isfinite(out.data).all() and np.isfinite(weights.data).all()


def test_writing_into_the_returned_weights_does_not_change_the_gradients():
    expected, spoiled = tensors(), tensors()
    for leaves, spoil in ((expected, False), (spoiled, True)):
        out, weights = scaled_dot_product_attention(*leaves)
        if spoil:
            weights.data[...] = 0
        out.backward(np.ones(out.shape))
    for a, b in zip(spoiled, expected, strict=True):
        assert_close(a.grad, b.grad)


def test_non_contiguous_inputs_give_the_same_numbers():
    views = [np.moveaxis(np.moveaxis(a, 1, 2).copy(), 2, 1) for a in (Q, K, V)]
    assert not views[0].flags.c_contiguous
    for a, b in zip(sdpa_forward(*views, MASK), sdpa_forward(Q, K, V, MASK), strict=True):
        assert_close(a, b)


@pytest.mark.parametrize(
    "shapes",
    [
        ((6,), (5, 6), (5, 7)),
        ((4, 6), (6,), (5, 7)),
        ((4, 6), (5, 6), (5,)),
        ((4, 6), (5, 3), (5, 7)),
        ((4, 6), (5, 6), (3, 7)),
        ((2, 4, 6), (3, 5, 6), (2, 5, 7)),
        ((2, 4, 6), (2, 5, 6), (5, 7)),
        ((2, 4, 6), (1, 5, 6), (1, 5, 7)),
        ((4, 0), (5, 0), (5, 7)),
    ],
    ids=str,
)
def test_shapes_that_disagree_are_refused(shapes):
    arrays = [np.ones(s) for s in shapes]
    with pytest.raises(ValueError):
        sdpa_forward(*arrays)
    with pytest.raises(ValueError):
        scaled_dot_product_attention(*tensors(arrays=arrays))


@pytest.mark.parametrize(
    "how",
    [
        {"mask": MASK.astype(float)},
        {"mask": MASK.astype(int)},
        {"mask": np.ones((5, 4), dtype=bool)},
        {"mask": np.ones((3, 1, 4, 5), dtype=bool)},
        {"mask": np.ones((1, 2, 3, 4, 5), dtype=bool)},
        {"scale": 0.0},
        {"scale": -1.0},
        {"scale": np.inf},
        {"scale": np.nan},
    ],
    ids=str,
)
def test_bad_masks_and_scales_are_refused(how):
    with pytest.raises(ValueError):
        sdpa_forward(Q, K, V, **how)
    with pytest.raises(ValueError):
        scaled_dot_product_attention(*tensors(), **how)


@pytest.mark.parametrize("dropout_p", [-0.1, 1.1, np.nan])
def test_a_dropout_probability_outside_0_and_1_is_refused(dropout_p):
    with pytest.raises(ValueError, match="dropout_p"):
        scaled_dot_product_attention(*tensors(), dropout_p=dropout_p, rng=PCG32(0))


def test_dropout_without_an_rng_is_refused():
    with pytest.raises(ValueError, match="rng"):
        scaled_dot_product_attention(*tensors(), dropout_p=0.5)
