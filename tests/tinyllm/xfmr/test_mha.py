import math

import numpy as np
import pytest
import torch

from tests.tinyllm.closeness import DTYPES, assert_close
from tinyllm.autograd.tensor import Tensor
from tinyllm.nn.layers import Linear
from tinyllm.num.gradcheck import gradcheck
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.masks import causal_mask, combine, padding_mask
from tinyllm.xfmr.mha import MultiHeadAttention

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


def random(seed, *shape, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def tensor(seed, *shape, dtype=np.float64):
    return Tensor(random(seed, *shape), requires_grad=True, dtype=dtype)


def module(d_model, n_heads, dtype=np.float64, seed=0, **how):
    """A module whose parameters, biases included, are random in `dtype`."""
    mha = MultiHeadAttention(d_model, n_heads, **how)
    for i, p in enumerate(mha.parameters()):
        p.data = random(1000 * seed + i, *p.shape, dtype=dtype) / math.sqrt(d_model)
    return mha


def torch_twin(mha, dtype):
    """torch's module with the same weights."""
    bias = mha.q_proj.bias is not None
    twin = torch.nn.MultiheadAttention(mha.d_model, mha.n_heads, bias=bias, batch_first=True, dtype=dtype)
    packed = [getattr(mha, name) for name in PROJECTIONS[:3]]
    with torch.no_grad():
        twin.in_proj_weight.copy_(torch.tensor(np.concatenate([p.weight.data for p in packed])))
        twin.out_proj.weight.copy_(torch.tensor(mha.out_proj.weight.data))
        if bias:
            twin.in_proj_bias.copy_(torch.tensor(np.concatenate([p.bias.data for p in packed])))
            twin.out_proj.bias.copy_(torch.tensor(mha.out_proj.bias.data))
    return twin.eval()


def masks(B, H, Tq, Tk):
    per_sequence = np.random.default_rng(5).random((B, Tq, Tk)) > 0.4
    per_sequence[..., 0] = True  # torch gives NaN where a query may attend nothing
    per_head = np.random.default_rng(6).random((B, H, Tq, Tk)) > 0.4
    per_head[..., 0] = True
    padding = padding_mask(np.arange(B) % Tk + 1, Tk)
    return {
        "no mask": None,
        "causal": causal_mask(Tq, Tk),
        "padding": padding[:, None, None, :],
        "causal and padding": combine(causal_mask(Tq, Tk), padding[:, None, :]),
        "per sequence": per_sequence,
        "per head": per_head,
        "one per head": per_head[:1],
        "one row": np.ones((1, Tk), dtype=bool),
    }


# --- against torch ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("n_heads", [1, 2, 3, 12])
@pytest.mark.parametrize("mask_name", list(masks(1, 1, 1, 1)))
@pytest.mark.parametrize("lengths", [(4, 4), (3, 5), (5, 2), (1, 1)], ids=str)
def test_outputs_weights_and_all_gradients_match_torch(lengths, mask_name, n_heads, bias, dtype):
    B, (Tq, Tk), d = 3, lengths, 12
    mha = module(d, n_heads, dtype=dtype, bias=bias)
    torch_dtype = torch.float64 if dtype == np.float64 else torch.float32
    twin = torch_twin(mha, torch_dtype)
    mask = masks(B, n_heads, Tq, Tk)[mask_name]

    x_q = tensor(1, B, Tq, d, dtype=dtype)
    x_kv = x_q if Tq == Tk else tensor(2, B, Tk, d, dtype=dtype)
    out, weights = mha.attend(x_q, x_kv, mask)

    t_q = torch.tensor(x_q.data, requires_grad=True)
    t_kv = t_q if x_kv is x_q else torch.tensor(x_kv.data, requires_grad=True)
    torch_mask = None
    if mask is not None:
        wide = mask[:, None] if mask.ndim == 3 else mask
        torch_mask = ~torch.tensor(np.broadcast_to(wide, (B, n_heads, Tq, Tk)).reshape(B * n_heads, Tq, Tk).copy())
    torch_out, torch_weights = twin(t_q, t_kv, t_kv, attn_mask=torch_mask, average_attn_weights=False)

    assert_close(out.data, torch_out.detach().numpy())
    assert_close(weights.data, torch_weights.detach().numpy())

    g = random(3, *out.shape, dtype=dtype)
    out.backward(g)
    torch_out.backward(torch.from_numpy(g))
    assert_close(x_q.grad, t_q.grad.numpy())
    assert_close(x_kv.grad, t_kv.grad.numpy())
    rows = np.concatenate([getattr(mha, name).weight.grad for name in PROJECTIONS[:3]])
    assert_close(rows, twin.in_proj_weight.grad.numpy())
    assert_close(mha.out_proj.weight.grad, twin.out_proj.weight.grad.numpy())
    if bias:
        rows = np.concatenate([getattr(mha, name).bias.grad for name in PROJECTIONS[:3]])
        assert_close(rows, twin.in_proj_bias.grad.numpy())
        assert_close(mha.out_proj.bias.grad, twin.out_proj.bias.grad.numpy())


def test_gradients_pass_central_differences_through_mask_and_dropout():
    B, Tq, Tk, d = 2, 3, 4, 4
    x_q, x_kv, g = random(1, B, Tq, d), random(2, B, Tk, d), random(3, B, Tq, d)
    mask = masks(B, 2, Tq, Tk)["per sequence"]
    start = [p.data for p in module(d, 2).parameters()]

    def run(*arrays):
        mha = module(d, 2, dropout=0.3)  # a new one each time: its dropout stream starts over
        for p, data in zip(mha.parameters(), arrays[2:], strict=True):
            p.data = data
        inputs = [Tensor(a, requires_grad=True, dtype=np.float64) for a in arrays[:2]]
        return mha, inputs, mha(*inputs, mask)

    mha, inputs, out = run(x_q, x_kv, *start)
    out.backward(g)
    claimed = [t.grad for t in (*inputs, *mha.parameters())]
    report = gradcheck(lambda *arrays: (run(*arrays)[2].data * g).sum(), [x_q, x_kv, *start], claimed)
    assert report.ok, report


def identity_module(n_heads):
    mha = MultiHeadAttention(4, n_heads)
    for name in PROJECTIONS:
        getattr(mha, name).weight.data = np.eye(4)
        getattr(mha, name).bias.data = np.zeros(4)
    return mha


def test_two_heads_by_hand():
    x_q = Tensor([[[1, 0, 0, 2]]], dtype=np.float64)
    x_kv = Tensor([[[1, 0, 0, 0], [0, 1, 0, 2]]], dtype=np.float64)
    first = 1 / (1 + math.exp(-1 / math.sqrt(2)))  # head 0: scores (1, 0) / sqrt 2
    second = 1 / (1 + math.exp(-4 / math.sqrt(2)))  # head 1: scores (0, 4) / sqrt 2
    out, weights = identity_module(2).attend(x_q, x_kv)
    assert_close(weights.data, np.array([[[[first, 1 - first]], [[1 - second, second]]]]))
    assert_close(out.data, np.array([[[first, 1 - first, 0, 2 * second]]]))


def test_one_head_by_hand():
    x_q = Tensor([[[1, 0, 0, 2]]], dtype=np.float64)
    x_kv = Tensor([[[1, 0, 0, 0], [0, 1, 0, 2]]], dtype=np.float64)
    p = 1 / (1 + math.exp(-1.5))  # scores (0.5, 2)
    out, weights = identity_module(1).attend(x_q, x_kv)
    assert_close(weights.data, np.array([[[[1 - p, p]]]]))
    assert_close(out.data, np.array([[[1 - p, p, 0, 2 * p]]]))


# --- construction -----------------------------------------------------------------------------------------


def test_attributes_and_state_keys():
    mha = MultiHeadAttention(6, 3, dropout=0.2)
    assert (mha.d_model, mha.n_heads, mha.d_head, mha.dropout) == (6, 3, 2, 0.2)
    shapes = {name: a.shape for name, a in mha.state_dict().items()}
    expected = {
        f"{name}.{kind}": (6, 6) if kind == "weight" else (6,) for name in PROJECTIONS for kind in ("weight", "bias")
    }
    assert list(shapes.items()) == list(expected.items())
    assert all(a.dtype == np.float32 for a in mha.state_dict().values())
    bare = MultiHeadAttention(6, 3, bias=False)
    assert list(bare.state_dict()) == [f"{name}.weight" for name in PROJECTIONS]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rng", [lambda: PCG32(9), lambda: None], ids=["given", "default"])
def test_projections_are_drawn_in_order_from_one_rng(rng, bias):
    mha = MultiHeadAttention(6, 2, bias=bias, rng=rng())
    stream = rng() or PCG32(0).substream("init")
    for name in PROJECTIONS:
        np.testing.assert_array_equal(getattr(mha, name).weight.data, Linear(6, 6, rng=stream).weight.data)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((0, 1), "at least 1"),
        ((4, 0), "at least 1"),
        ((-4, 2), "at least 1"),
        ((4, -2), "at least 1"),
        ((4, 3), "divide"),
        ((2, 4), "divide"),
        ((4, 2, 1.0), "dropout"),
        ((4, 2, -0.1), "dropout"),
        ((4, 2, math.nan), "dropout"),
    ],
)
def test_bad_sizes_and_dropout_are_refused(args, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(*args)


# --- heads ------------------------------------------------------------------------------------------------


def test_each_head_owns_its_slice_of_the_features():
    mha, x = MultiHeadAttention(12, 3), tensor(0, 2, 5, 12)
    heads = mha.split_heads(x)
    assert heads.shape == (2, 3, 5, 4)
    for h in range(3):
        np.testing.assert_array_equal(heads.data[:, h], x.data[:, :, 4 * h : 4 * h + 4])


def test_merge_is_the_inverse_of_split_forward_and_backward():
    mha, x, g = MultiHeadAttention(12, 3), tensor(0, 2, 5, 12), random(1, 2, 5, 12)
    merged = mha.merge_heads(mha.split_heads(x))
    np.testing.assert_array_equal(merged.data, x.data)
    merged.backward(g)
    np.testing.assert_array_equal(x.grad, g)


@pytest.mark.parametrize("shape", [(5, 12), (2, 5, 8), (2, 12, 5), (1, 2, 5, 12), (12,)], ids=str)
def test_split_refuses_another_shape(shape):
    with pytest.raises(ValueError, match=r"12.*got"):
        MultiHeadAttention(12, 3).split_heads(Tensor(np.zeros(shape)))


@pytest.mark.parametrize("shape", [(2, 5, 12), (2, 5, 3, 4), (2, 3, 5, 3), (2, 4, 5, 3), (3, 5, 4)], ids=str)
def test_merge_refuses_another_shape(shape):
    with pytest.raises(ValueError, match=r"\[B, 3, T, 4\], got"):
        MultiHeadAttention(12, 3).merge_heads(Tensor(np.zeros(shape)))


# --- masks ------------------------------------------------------------------------------------------------


def test_head_mask_inserts_the_head_axis_into_per_sequence_masks_only():
    mha, mask = MultiHeadAttention(12, 2), np.random.default_rng(0).random((2, 2, 3, 4)) > 0.5
    assert mha.head_mask(None, 2, 3, 4) is None
    np.testing.assert_array_equal(mha.head_mask(mask[0, 0], 2, 3, 4), mask[0, 0])
    np.testing.assert_array_equal(mha.head_mask(mask[:, 0], 2, 3, 4), mask[:, :1])
    for wide in (mask, mask[:, :1], mask[:1], mask[:, :, :1], mask[..., :1], mask[:1, :1, :1, :1]):
        np.testing.assert_array_equal(mha.head_mask(wide, 2, 3, 4), wide)


def test_masks_of_every_shape_agree_where_batch_and_heads_have_one_size():
    B = H = 2
    mha, x = module(8, H), tensor(0, B, 4, 8)
    per_sequence = masks(B, H, 4, 4)["per sequence"]
    full = np.repeat(per_sequence[:, None], H, axis=1)
    for a, b in zip(mha.attend(x, x, per_sequence), mha.attend(x, x, full), strict=True):
        np.testing.assert_array_equal(a.data, b.data)
    causal = causal_mask(4)
    for wide in (causal[None], np.broadcast_to(causal, (B, 4, 4)), np.broadcast_to(causal, (B, H, 4, 4))):
        np.testing.assert_array_equal(mha.attend(x, x, causal)[0].data, mha.attend(x, x, wide)[0].data)


@pytest.mark.parametrize(
    "mask",
    [
        np.ones((3, 4)),
        np.ones((3, 4), dtype=int),
        np.ones(4, dtype=bool),
        np.array(True),
        np.ones((1, 2, 2, 3, 4), dtype=bool),
        np.ones((4, 3), dtype=bool),
        np.ones((3, 3, 4), dtype=bool),
        np.ones((2, 3, 3, 4), dtype=bool),
        np.ones((3, 2, 3, 4), dtype=bool),
        np.ones((0, 4), dtype=bool),
    ],
    ids=lambda m: f"{m.dtype}{m.shape}",
)
def test_bad_masks_are_refused(mask):
    mha = MultiHeadAttention(12, 2)
    with pytest.raises(ValueError, match="mask"):
        mha.head_mask(mask, 2, 3, 4)
    with pytest.raises(ValueError, match="mask"):
        mha.attend(tensor(0, 2, 3, 12), tensor(1, 2, 4, 12), mask)


def test_masked_keys_weigh_nothing_and_cannot_change_the_output():
    mha, x_q, x_kv = module(12, 3), tensor(0, 2, 3, 12), tensor(1, 2, 5, 12)
    mask = padding_mask([2, 5], 5)[:, None, None, :]
    out, weights = mha.attend(x_q, x_kv, mask)
    x_kv.data[0, 2:] = 1e6
    again, _ = mha.attend(x_q, x_kv, mask)
    assert not weights.data[0, ..., 2:].any()
    np.testing.assert_array_equal(out.data, again.data)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_query_that_may_attend_nothing_gets_the_output_bias(dtype):
    mha, x = module(12, 3, dtype=dtype), tensor(0, 2, 4, 12, dtype=dtype)
    mask = np.ones((2, 4, 4), dtype=bool)
    mask[1, 2] = False
    out, weights = mha.attend(x, x, mask)
    assert_close(out.data[1, 2], mha.out_proj.bias.data)
    assert not weights.data[1, :, 2].any()
    out.backward(np.ones(out.shape))
    assert all(np.isfinite(t.grad).all() for t in (x, *mha.parameters()))


# --- attend and forward -----------------------------------------------------------------------------------


def test_forward_is_attend_without_the_weights():
    mha, x_q, x_kv = module(12, 3), tensor(0, 2, 3, 12), tensor(1, 2, 5, 12)
    mask = causal_mask(3, 5)
    out, weights = mha.attend(x_q, x_kv, mask)
    assert weights.shape == (2, 3, 3, 5) and not weights.requires_grad
    np.testing.assert_array_equal(mha(x_q, x_kv, mask=mask).data, out.data)


def test_float32_stays_float32():
    x = Tensor(random(0, 2, 3, 12))
    out, weights = MultiHeadAttention(12, 3).attend(x, x)
    assert out.dtype == weights.dtype == np.float32


def test_non_contiguous_inputs_give_the_same_numbers():
    mha, x = module(12, 3), tensor(0, 2, 4, 12)
    turned = Tensor(0.0, requires_grad=True)
    turned.data = np.ascontiguousarray(x.data.T).T
    assert not turned.data.flags.c_contiguous
    a, b = mha(x, x), mha(turned, turned)
    assert_close(b.data, a.data)
    a.backward(np.ones(a.shape))
    b.backward(np.ones(b.shape))
    assert_close(turned.grad, x.grad)


def test_inputs_and_parameters_are_left_alone():
    mha, x = module(12, 3), tensor(0, 2, 4, 12)
    mask = causal_mask(4)
    before = [x.data.copy(), mask.copy(), *mha.state_dict().values()]
    mha(x, x, mask).backward(np.ones((2, 4, 12)))
    for old, new in zip(before, [x.data, mask, *mha.state_dict().values()], strict=True):
        np.testing.assert_array_equal(old, new)


def test_positions_of_keys_are_a_set_and_of_queries_a_sequence():
    mha, x_q, x_kv = module(12, 3), tensor(0, 2, 3, 12), tensor(1, 2, 5, 12)
    order, rows = [3, 0, 4, 1, 2], [2, 0, 1]
    out = mha(x_q, x_kv)
    assert_close(mha(x_q, x_kv[:, order]).data, out.data)
    assert_close(mha(x_q[:, rows], x_kv).data, out.data[:, rows])


def test_weights_of_one_head_ignore_the_query_rows_of_another():
    mha, x = module(12, 3), tensor(0, 2, 4, 12)
    _, before = mha.attend(x, x)
    mha.q_proj.weight.data[4:8] += 1.0  # head 1
    _, after = mha.attend(x, x)
    np.testing.assert_array_equal(after.data[:, [0, 2]], before.data[:, [0, 2]])
    assert not np.allclose(after.data[:, 1], before.data[:, 1])


@pytest.mark.parametrize(
    ("q_shape", "kv_shape"),
    [
        ((3, 12), (2, 3, 12)),
        ((2, 3, 12), (3, 12)),
        ((2, 1, 3, 12), (2, 3, 12)),
        ((2, 3, 12), (3, 3, 12)),
        ((1, 3, 12), (2, 3, 12)),
        ((2, 3, 8), (2, 3, 12)),
        ((2, 3, 12), (2, 3, 8)),
    ],
    ids=str,
)
def test_inputs_of_other_shapes_are_refused(q_shape, kv_shape):
    mha = MultiHeadAttention(12, 3)
    for call in (mha.attend, mha):
        with pytest.raises(ValueError, match=r"\(.*\)"):
            call(Tensor(np.zeros(q_shape)), Tensor(np.zeros(kv_shape)))


# --- dropout ----------------------------------------------------------------------------------------------


def test_dropout_multiplies_the_weights_in_training_and_its_stream_advances():
    mha, x = module(12, 3, dropout=0.4), tensor(0, 2, 4, 12)
    stream = PCG32(0).substream("dropout")
    _, plain = module(12, 3).attend(x, x)
    v = mha.split_heads(mha.v_proj(x)).data
    outputs = []
    for _ in range(2):
        out, weights = mha.attend(x, x)
        mult = (stream.uniforms(plain.data.size).reshape(plain.shape) >= 0.4) / 0.6
        merged = ((plain.data * mult) @ v).transpose(0, 2, 1, 3).reshape(2, 4, 12)
        assert_close(out.data, merged @ mha.out_proj.weight.data.T + mha.out_proj.bias.data)
        assert_close(weights.data, plain.data)  # those before dropout
        outputs.append(out.data)
    assert not np.allclose(*outputs)


def test_eval_mode_equals_no_dropout_and_draws_nothing():
    mha, x = module(12, 3, dropout=0.4), tensor(0, 2, 4, 12)
    first = mha(x, x).data
    other = module(12, 3, dropout=0.4)
    other.eval()
    np.testing.assert_array_equal(other(x, x).data, module(12, 3)(x, x).data)
    other.train()
    np.testing.assert_array_equal(other(x, x).data, first)  # the stream was not touched in between


def test_the_init_rng_is_not_what_dropout_draws_from():
    a, b = (MultiHeadAttention(12, 3, dropout=0.4, rng=PCG32(seed)) for seed in (1, 2))
    b.load_state_dict(a.state_dict())
    x = tensor(0, 2, 4, 12)
    np.testing.assert_array_equal(a(x, x).data, b(x, x).data)


# --- packed weights ---------------------------------------------------------------------------------------


def test_packed_rows_are_queries_keys_values_and_are_copied_in_place():
    mha = MultiHeadAttention(4, 2)
    weight, bias = random(0, 12, 4), random(1, 12)
    arrays = [p.data for p in mha.parameters()]
    out_proj = mha.out_proj.weight.data.copy()
    mha.load_packed_in_proj(weight, bias)
    for i, name in enumerate(PROJECTIONS[:3]):
        np.testing.assert_array_equal(getattr(mha, name).weight.data, weight[4 * i : 4 * i + 4].astype(np.float32))
        np.testing.assert_array_equal(getattr(mha, name).bias.data, bias[4 * i : 4 * i + 4].astype(np.float32))
    assert all(p.data is a for p, a in zip(mha.parameters(), arrays, strict=True))
    np.testing.assert_array_equal(mha.out_proj.weight.data, out_proj)
    weight[...] = 0
    assert mha.q_proj.weight.data.any()


def test_no_bias_given_leaves_the_biases_alone():
    mha = module(4, 2)
    before = mha.state_dict()
    mha.load_packed_in_proj(random(0, 12, 4))
    assert all((before[f"{name}.bias"] == getattr(mha, name).bias.data).all() for name in PROJECTIONS)
    bare = MultiHeadAttention(4, 2, bias=False)
    bare.load_packed_in_proj(np.ones((12, 4)))
    assert (bare.v_proj.weight.data == 1).all()


@pytest.mark.parametrize(
    ("how", "shapes"),
    [
        ({}, [(12, 3)]),
        ({}, [(4, 12)]),
        ({}, [(48,)]),
        ({}, [(3, 4, 4)]),
        ({}, [(12, 4), (4,)]),
        ({}, [(12, 4), (12, 1)]),
        ({"bias": False}, [(12, 4), (12,)]),
    ],
    ids=str,
)
def test_bad_packed_arrays_are_refused_before_anything_is_copied(how, shapes):
    mha = MultiHeadAttention(4, 2, **how)
    before = mha.state_dict()
    with pytest.raises(ValueError, match="packed"):
        mha.load_packed_in_proj(*(np.ones(s) for s in shapes))
    assert all((before[name] == a).all() for name, a in mha.state_dict().items())
