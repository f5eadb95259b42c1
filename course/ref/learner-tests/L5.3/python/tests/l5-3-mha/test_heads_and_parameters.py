"""Layout of heads, names and values of parameters, torch's packed weights, and what has to be refused."""

import numpy as np
import pytest
from mha_oracle import inputs, make, merge, split, tensor

from tinyllm.num.rng import PCG32
from tinyllm.prob.rv import normal
from tinyllm.xfmr.mha import MultiHeadAttention


def test_split_and_merge():
    (x,) = inputs((2, 5, 12))
    mha = make(12, 3)
    np.testing.assert_array_equal(mha.split_heads(tensor(x)).data, split(x, 3))
    np.testing.assert_array_equal(mha.merge_heads(tensor(split(x, 3))).data, merge(split(x, 3)))
    np.testing.assert_array_equal(mha.merge_heads(mha.split_heads(tensor(x))).data, x)


def test_head_mask_means_what_was_given():
    mha = make(6, 2)
    assert mha.head_mask(None, 2, 3, 4) is None
    mask = np.arange(24).reshape(2, 3, 4) % 5 > 1
    for given, meant in (
        (mask[0], mask[0]),
        (mask, mask[:, None]),
        (mask[:, None, :1], mask[:, None, :1]),
        (mask[None], mask[None]),
    ):
        if given.shape == (1, 2, 3, 4):  # one mask per head
            meant = given
        full = np.broadcast_to(mha.head_mask(given, 2, 3, 4), (2, 2, 3, 4))
        np.testing.assert_array_equal(full, np.broadcast_to(meant, (2, 2, 3, 4)))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("seed", [None, 5])
def test_parameters_are_named_and_drawn_in_order(bias, seed):
    mha = MultiHeadAttention(6, 2, bias=bias, rng=None if seed is None else PCG32(seed))
    assert (mha.d_model, mha.n_heads, mha.d_head, mha.dropout) == (6, 2, 3, 0.0)
    state = mha.state_dict()
    kinds = ("weight", "bias") if bias else ("weight",)
    assert list(state) == [f"{p}_proj.{kind}" for p in ("q", "k", "v", "out") for kind in kinds]
    rng = PCG32(0).substream("init") if seed is None else PCG32(seed)
    for name, array in state.items():
        if name.endswith("weight"):
            np.testing.assert_allclose(array, normal(rng, 36).reshape(6, 6) * 6**-0.5, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(array, np.zeros(6))


def test_packed_rows_are_q_then_k_then_v():
    weight, bias = inputs((12, 4), (12,))
    mha = make(4, 2)
    before = mha.state_dict()
    mha.load_packed_in_proj(weight)
    state = mha.state_dict()
    for i, name in enumerate(("q_proj", "k_proj", "v_proj")):
        np.testing.assert_array_equal(state[f"{name}.weight"], weight[4 * i : 4 * i + 4])
        np.testing.assert_array_equal(state[f"{name}.bias"], before[f"{name}.bias"])
    np.testing.assert_array_equal(state["out_proj.weight"], before["out_proj.weight"])
    mha.load_packed_in_proj(weight, bias)
    for i, name in enumerate(("q_proj", "k_proj", "v_proj")):
        np.testing.assert_array_equal(mha.state_dict()[f"{name}.bias"], bias[4 * i : 4 * i + 4])


def test_packed_weights_are_copied():
    (weight,) = inputs((12, 4))
    mha = make(4, 2)
    given = weight.copy()
    mha.load_packed_in_proj(given)
    given[...] = 0.0
    np.testing.assert_array_equal(mha.state_dict()["v_proj.weight"], weight[8:])


@pytest.mark.parametrize("bias", [True, False])
def test_nothing_is_loaded_when_something_is_wrong(bias):
    weight, packed = inputs((12, 4), (12,))
    mha = make(4, 2, bias=bias)
    before = mha.state_dict()
    for arguments in ((weight[1:],), (weight.T,), (weight, packed[1:]), *([] if bias else [(weight, packed)])):
        with pytest.raises(ValueError):
            mha.load_packed_in_proj(*arguments)
    for name, array in mha.state_dict().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("sizes", [(0, 1), (6, 0), (6, 4), (-6, 2), (6, -2), (6, 2, 1.0), (6, 2, -0.1)])
def test_sizes_and_rates_are_checked(sizes):
    with pytest.raises(ValueError):
        MultiHeadAttention(*sizes)


@pytest.mark.parametrize("shape", [(3, 6), (2, 3, 8), (1, 2, 3, 6)])
def test_shapes_to_split_are_checked(shape):
    with pytest.raises(ValueError):
        make(6, 2).split_heads(tensor(np.zeros(shape)))


@pytest.mark.parametrize("shape", [(2, 3, 6), (2, 3, 5, 2), (2, 2, 5, 4)])
def test_shapes_to_merge_are_checked(shape):
    with pytest.raises(ValueError):
        make(6, 2).merge_heads(tensor(np.zeros(shape)))


@pytest.mark.parametrize(
    "shapes", [((3, 6), (2, 5, 6)), ((2, 3, 6), (1, 5, 6)), ((2, 3, 8), (2, 5, 6)), ((2, 3, 6), (2, 5, 4))]
)
def test_shapes_to_attend_are_checked(shapes):
    x_q, x_kv = inputs(*shapes)
    with pytest.raises(ValueError):
        make(6, 2).attend(tensor(x_q), tensor(x_kv))


@pytest.mark.parametrize("shape", [(5,), (5, 3), (3, 3, 5), (2, 3, 3, 5), (1, 1, 2, 3, 5)])
def test_shapes_of_masks_are_checked(shape):
    with pytest.raises(ValueError):
        make(6, 2).head_mask(np.ones(shape, dtype=bool), 2, 3, 5)


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_masks_have_to_be_bool(dtype):
    with pytest.raises(ValueError):
        make(6, 2).head_mask(np.ones((3, 5), dtype=dtype), 2, 3, 5)
