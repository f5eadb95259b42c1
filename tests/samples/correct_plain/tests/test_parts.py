import numpy as np
import pytest
from numpy_mha import t64

from tinyllm.num.gradcheck import gradcheck
from tinyllm.num.rng import PCG32
from tinyllm.prob.rv import normal
from tinyllm.xfmr.mha import MultiHeadAttention


def test_split_gives_each_head_its_own_features(make):
    x = np.arange(2 * 3 * 8, dtype=float).reshape(2, 3, 8)
    heads = make(8, 2).split_heads(t64(x)).data
    assert heads.shape == (2, 2, 3, 4)
    for h in range(2):
        np.testing.assert_array_equal(heads[:, h], x[:, :, 4 * h : 4 * h + 4])


def test_merge_puts_heads_side_by_side(make):
    heads = np.arange(2 * 2 * 3 * 4, dtype=float).reshape(2, 2, 3, 4)
    merged = make(8, 2).merge_heads(t64(heads)).data
    np.testing.assert_array_equal(merged, np.concatenate([heads[:, 0], heads[:, 1]], axis=-1))


@pytest.mark.parametrize("start", [None, 5])
def test_initial_values_come_from_one_stream(start):
    mha = MultiHeadAttention(6, 2) if start is None else MultiHeadAttention(6, 2, rng=PCG32(start))
    stream = PCG32(0).substream("init") if start is None else PCG32(start)
    state = mha.state_dict()
    assert list(state) == [f"{p}_proj.{kind}" for p in ("q", "k", "v", "out") for kind in ("weight", "bias")]
    for p in ("q", "k", "v", "out"):
        np.testing.assert_allclose(
            state[f"{p}_proj.weight"].ravel(), normal(stream, 36) / np.sqrt(6), rtol=1e-5, atol=1e-6
        )
        assert not state[f"{p}_proj.bias"].any()


def test_packed_weights_go_to_q_k_v(make, draw):
    mha = make(4, 2)
    before = mha.state_dict()
    weight, bias = draw.normal(size=(12, 4)), draw.normal(size=12)

    mha.load_packed_in_proj(weight)
    after = mha.state_dict()
    for i, name in enumerate(("q_proj", "k_proj", "v_proj")):
        np.testing.assert_allclose(after[name + ".weight"], weight[4 * i : 4 * i + 4])
        np.testing.assert_array_equal(after[name + ".bias"], before[name + ".bias"])
    np.testing.assert_array_equal(after["out_proj.weight"], before["out_proj.weight"])

    mha.load_packed_in_proj(weight, bias)
    for i, name in enumerate(("q_proj", "k_proj", "v_proj")):
        np.testing.assert_allclose(mha.state_dict()[name + ".bias"], bias[4 * i : 4 * i + 4])

    kept = mha.state_dict()
    weight[...] = 0
    bias[...] = 0
    for name, value in mha.state_dict().items():
        np.testing.assert_array_equal(value, kept[name])


def test_packed_weights_are_checked_before_anything_is_copied(make, draw):
    mha = make(4, 2)
    before = mha.state_dict()
    for weight, bias in [
        (np.zeros((4, 12)), None),
        (np.zeros((12, 4)), np.zeros(11)),
    ]:
        with pytest.raises(ValueError):
            mha.load_packed_in_proj(weight, bias)
    for name, value in mha.state_dict().items():
        np.testing.assert_array_equal(value, before[name])
    with pytest.raises(ValueError):
        make(4, 2, bias=False).load_packed_in_proj(np.zeros((12, 4)), np.zeros(12))


def test_gradients_agree_with_central_differences(make, draw):
    mha = make(4, 2)
    names = [name for name, _ in mha.named_parameters()]
    params = dict(mha.named_parameters())
    x_q, x_kv = draw.normal(size=(2, 2, 4)), draw.normal(size=(2, 3, 4))
    mask = np.array([[True, False, True], [True, True, True]])
    direction = draw.normal(size=(2, 2, 4))

    def run(*arrays):
        for name, array in zip(names, arrays, strict=False):
            params[name].data = array.copy()
        a, b = (t64(array, grad=True) for array in arrays[-2:])
        return a, b, mha(a, b, mask)

    def loss(*arrays):
        return float((run(*arrays)[2].data * direction).sum())

    arrays = [params[name].data.copy() for name in names] + [x_q, x_kv]
    a, b, out = run(*arrays)
    mha.zero_grad()
    out.backward(direction)
    grads = [params[name].grad for name in names] + [a.grad, b.grad]
    # the key bias cancels in the softmax: it may get no gradient at all
    where = names.index("k_proj.bias")
    if grads[where] is None:
        grads[where] = np.zeros(4)
    report = gradcheck(loss, arrays, grads)
    assert report.ok, report


@pytest.mark.parametrize(
    "d_model, n_heads, dropout",
    [(0, 1, 0.0), (4, 0, 0.0), (6, 4, 0.0), (4, 2, -0.1), (4, 2, 1.0)],
)
def test_bad_sizes_are_refused(d_model, n_heads, dropout):
    with pytest.raises(ValueError):
        MultiHeadAttention(d_model, n_heads, dropout=dropout)


def test_bad_inputs_and_masks_are_refused(make):
    mha = make(6, 2)
    x, y = t64(np.zeros((2, 3, 6))), t64(np.zeros((2, 4, 6)))
    for mask in [
        np.ones((3, 4)),
        np.ones((3, 4), dtype=int),
        np.ones(4, dtype=bool),
        np.ones((4, 3), dtype=bool),
        np.ones((5, 3, 4), dtype=bool),
        np.ones((1, 1, 1, 3, 4), dtype=bool),
    ]:
        with pytest.raises(ValueError):
            mha.attend(x, y, mask)
    for a, b in [
        (t64(np.zeros((3, 6))), y),
        (x, t64(np.zeros((1, 4, 6)))),
        (x, t64(np.zeros((2, 4, 5)))),
    ]:
        with pytest.raises(ValueError):
            mha.attend(a, b)
    with pytest.raises(ValueError):
        mha.split_heads(t64(np.zeros((2, 6))))
    with pytest.raises(ValueError):
        mha.merge_heads(t64(np.zeros((2, 3, 4, 3))))
