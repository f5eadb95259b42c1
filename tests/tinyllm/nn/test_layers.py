import numpy as np
import pytest
import torch

from tests.tinyllm.closeness import DTYPES, assert_close
from tinyllm.autograd import functional as F
from tinyllm.autograd.tensor import Tensor
from tinyllm.nn.layers import GELU, Dropout, Embedding, LayerNorm, Linear, ModuleList, ReLU, Sequential, Tanh
from tinyllm.num.rng import PCG32
from tinyllm.prob.rv import normal

rng = np.random.default_rng(0)


def assert_layers_match(ours, theirs, x):
    """Give both the same parameters; compare output, input gradient and every parameter gradient, by torch's names."""
    for dtype in DTYPES:
        theirs = theirs.to(torch.float32 if dtype == np.float32 else torch.float64)
        theirs.zero_grad()
        ours.zero_grad()
        names = [name for name, _ in theirs.named_parameters()]
        assert [name for name, _ in ours.named_parameters()] == names
        for name, p in ours.named_parameters():
            p.data = rng.normal(size=p.shape).astype(dtype)
            with torch.no_grad():
                dict(theirs.named_parameters())[name].copy_(torch.from_numpy(p.data))
        a = Tensor(x, requires_grad=True, dtype=dtype)
        b = torch.tensor(np.array(x, dtype=dtype), requires_grad=True)
        out, torch_out = ours(a), theirs(b)
        assert_close(out.data, torch_out.detach().numpy())
        g = rng.normal(size=out.shape).astype(dtype)
        out.backward(g)
        torch_out.backward(torch.from_numpy(g))
        assert_close(a.grad, b.grad.numpy())
        for (name, p), (_, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
            assert p.grad is not None, name
            assert_close(p.grad, q.grad.numpy())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3)], ids=str)
def test_linear_matches_torch(shape, bias):
    assert_layers_match(Linear(3, 5, bias=bias), torch.nn.Linear(3, 5, bias=bias), rng.normal(size=shape))


def test_linear_on_a_non_contiguous_input():
    assert_layers_match(Linear(3, 5), torch.nn.Linear(3, 5), rng.normal(size=(3, 4)).T)


def test_linear_starts_from_scaled_normals_and_zeros():
    layer = Linear(3, 5, rng=PCG32(7))
    expected = (normal(PCG32(7), 15) * 3**-0.5).astype(np.float32).reshape(5, 3)
    np.testing.assert_array_equal(layer.weight.data, expected)
    assert layer.bias.data.tolist() == [0] * 5 and layer.bias.dtype == np.float32
    assert layer.bias.requires_grad and layer.weight.requires_grad
    assert Linear(3, 5, bias=False).bias is None


@pytest.mark.parametrize("make", [lambda rng: Linear(4, 3, rng=rng), lambda rng: Embedding(4, 3, rng=rng)])
def test_without_an_rng_the_init_stream_of_seed_0_is_used(make):
    np.testing.assert_array_equal(make(None).weight.data, make(PCG32(0).substream("init")).weight.data)


def test_one_rng_is_drawn_from_in_turn():
    stream = PCG32(1)
    first, second = Linear(3, 3, rng=stream), Linear(3, 3, rng=stream)
    assert not np.array_equal(first.weight.data, second.weight.data)


@pytest.mark.parametrize("shape", [(), (4,), (2, 1)])
def test_linear_refuses_another_width(shape):
    with pytest.raises(ValueError, match="3"):
        Linear(3, 5)(Tensor(np.ones(shape)))


@pytest.mark.parametrize("make", [Linear, Embedding])
@pytest.mark.parametrize("sizes", [(0, 1), (1, 0), (-1, 2)])
def test_sizes_below_1_are_refused(make, sizes):
    with pytest.raises(ValueError, match="at least 1"):
        make(*sizes)


def test_embedding_matches_torch():
    ids = np.array([[0, 3, 3], [1, 0, 3]])
    ours, theirs = Embedding(4, 2), torch.nn.Embedding(4, 2)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    ours.load_state_dict({"weight": theirs.weight.detach().numpy()})
    out, torch_out = ours(ids), theirs(torch.tensor(ids))
    assert_close(out.data, torch_out.detach().numpy())
    g = rng.normal(size=out.shape).astype(np.float32)
    out.backward(g)
    torch_out.backward(torch.from_numpy(g))
    assert_close(ours.weight.grad, theirs.weight.grad.numpy())


@pytest.mark.parametrize("how", [{}, {"elementwise_affine": False}, {"bias": False}, {"eps": 0.1}], ids=str)
@pytest.mark.parametrize("normalized", [4, (4,), (3, 4)], ids=str)
def test_layer_norm_matches_torch(normalized, how):
    x = rng.normal(size=(2, 3, 4)) * 3 + 1
    assert_layers_match(LayerNorm(normalized, **how), torch.nn.LayerNorm(normalized, **how), x)


def test_layer_norm_of_a_constant_row_is_its_bias():
    x = Tensor(np.full((2, 4), 3.0), requires_grad=True)
    out = LayerNorm(4)(x)
    out.backward(np.ones((2, 4)))
    assert not out.data.any() and np.isfinite(x.grad).all()


def test_layer_norm_starts_at_the_identity_and_refuses_another_shape():
    layer = LayerNorm(4)
    assert layer.eps == 1e-5
    assert layer.weight.data.tolist() == [1] * 4 and layer.bias.data.tolist() == [0] * 4
    with pytest.raises(ValueError, match="LayerNorm"):
        layer(Tensor(np.ones((4, 3))))
    with pytest.raises(ValueError, match="LayerNorm"):
        LayerNorm((3, 4))(Tensor(np.ones(4)))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (ReLU(), torch.nn.ReLU()),
        (Tanh(), torch.nn.Tanh()),
        (GELU(), torch.nn.GELU()),
        (GELU(approximate="tanh"), torch.nn.GELU(approximate="tanh")),
    ],
    ids=["relu", "tanh", "gelu", "gelu_tanh"],
)
def test_activations_match_torch(ours, theirs):
    assert_layers_match(ours, theirs, rng.normal(size=(3, 4)))


def test_a_sequential_model_matches_torch():
    ours = Sequential(Linear(3, 8), GELU(), LayerNorm(8), Linear(8, 2, bias=False))
    theirs = torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2, bias=False)
    )
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert_layers_match(ours, theirs, rng.normal(size=(5, 3)))


def test_dropout_acts_in_training_only_and_its_stream_advances():
    x = Tensor(np.ones((4, 50)))
    layer = Dropout(0.4, rng=PCG32(3))
    first, second = layer(x), layer(x)
    stream = PCG32(3)
    np.testing.assert_array_equal(first.data, F.dropout(x, 0.4, True, stream).data)
    np.testing.assert_array_equal(second.data, F.dropout(x, 0.4, True, stream).data)
    assert layer.eval()(x) is x


def test_dropout_without_an_rng_uses_the_dropout_stream_of_seed_0():
    x = Tensor(np.ones((4, 50)))
    assert Dropout().p == 0.5
    np.testing.assert_array_equal(Dropout()(x).data, Dropout(rng=PCG32(0).substream("dropout"))(x).data)


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
def test_dropout_refuses_p_outside_0_and_1(p):
    with pytest.raises(ValueError, match="p"):
        Dropout(p)


def test_a_module_list_is_a_list_whose_parameters_count():
    a, b, c = (Linear(1, 1) for _ in range(3))
    modules = ModuleList([a])
    modules.append(b)
    modules.append(c)
    assert len(modules) == 3 and list(modules) == [a, b, c]
    assert modules[0] is a and modules[-1] is c
    assert list(modules.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias"]
    with pytest.raises(IndexError):
        modules[3]
    with pytest.raises(TypeError, match="Module"):
        modules.append(Tensor(1.0))
    assert len(ModuleList()) == 0
