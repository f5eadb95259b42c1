import copy

import numpy as np
import pytest

from tinyllm.autograd.tensor import Tensor
from tinyllm.nn.layers import Dropout, Linear, ModuleList, Sequential
from tinyllm.nn.module import Module


def parameter(*values):
    return Tensor(values, requires_grad=True)


class Pair(Module):
    def __init__(self):
        super().__init__()
        self.first = Linear(2, 3)
        self.scale = parameter(1.0)
        self.label = "plain"
        self.constant = Tensor([1.0])
        self.second = Linear(3, 2, bias=False)

    def forward(self, x, *, twice=False):
        x = self.second(self.first(x)) * self.scale
        return x * 2 if twice else x


def test_parameters_are_named_in_order_of_assignment():
    m = Pair()
    names = [name for name, _ in m.named_parameters()]
    assert names == ["first.weight", "first.bias", "scale", "second.weight"]
    assert [id(p) for p in m.parameters()] == [id(p) for _, p in m.named_parameters()]
    assert list(m.state_dict()) == names


def test_modules_are_named_from_the_root():
    m = Pair()
    assert [(name, type(module)) for name, module in m.named_modules()] == [
        ("", Pair),
        ("first", Linear),
        ("second", Linear),
    ]
    nested = Sequential(ModuleList([m]))
    assert [name for name, _ in nested.named_modules()] == ["", "0", "0.0", "0.0.first", "0.0.second"]


def test_calling_a_module_calls_forward_with_all_arguments():
    m, x = Pair(), Tensor(np.ones((1, 2)))
    np.testing.assert_array_equal(m(x, twice=True).data, 2 * m.forward(x).data)


def test_a_module_without_forward_says_so():
    with pytest.raises(TypeError, match="ModuleList defines no forward"):
        ModuleList()(1)


@pytest.mark.parametrize("value", [parameter(1.0), Linear(1, 1)])
def test_forgetting_super_init_is_an_attribute_error_that_names_the_fix(value):
    class Forgetful(Module):
        def __init__(self):
            self.size = 3  # an ordinary attribute may come first
            self.part = value

    with pytest.raises(AttributeError, match=r"super\(\).__init__\(\).*Forgetful"):
        Forgetful()


def test_forgetting_super_init_shows_at_the_latest_when_parameters_are_asked_for():
    class Forgetful(Module):
        def __init__(self):
            pass

    for ask in (lambda m: list(m.parameters()), lambda m: m.eval(), lambda m: m.state_dict()):
        with pytest.raises(AttributeError, match=r"super\(\).__init__\(\)"):
            ask(Forgetful())


def test_plain_attributes_may_be_set_before_super_init():
    class Early(Module):
        def __init__(self):
            self.size = 3
            super().__init__()
            self.w = parameter(1.0)

    assert [name for name, _ in Early().named_parameters()] == ["w"] and Early().size == 3


def test_a_replaced_or_deleted_attribute_is_no_longer_registered():
    m = Pair()
    m.scale = None
    del m.second
    assert list(m.state_dict()) == ["first.weight", "first.bias"]
    m.first = Linear(2, 5)
    assert m.state_dict()["first.weight"].shape == (5, 2)
    assert not hasattr(m, "second")


def test_a_frozen_parameter_stays_in_the_state():
    m = Linear(2, 2)
    m.weight.requires_grad = False
    m(Tensor(np.ones((1, 2)))).backward([[1.0, 1.0]])
    assert m.weight.grad is None and m.bias.grad is not None
    assert "weight" in m.state_dict()


class Tied(Module):
    def __init__(self):
        super().__init__()
        self.a = Linear(2, 2, bias=False)
        self.b = Linear(2, 2, bias=False)
        self.b.weight = self.a.weight


def test_a_tied_tensor_is_one_parameter_under_two_keys_of_the_state():
    m = Tied()
    assert len(list(m.parameters())) == 1
    assert [name for name, _ in m.named_parameters()] == ["a.weight"]
    assert list(m.state_dict()) == ["a.weight", "b.weight"]
    m.b(m.a(Tensor([[1.0, 0.0]]))).backward([[1.0, 1.0]])
    assert m.a.weight.grad is m.b.weight.grad is not None
    m.load_state_dict({"a.weight": np.ones((2, 2)), "b.weight": np.ones((2, 2))})
    assert m.a.weight is m.b.weight and (m.a.weight.data == 1).all()


def test_a_module_used_twice_is_one_module():
    shared = Linear(2, 2)
    m = Sequential(shared, shared)
    assert [name for name, _ in m.named_modules()] == ["", "0"]
    assert len(list(m.parameters())) == 2


def test_train_and_eval_reach_every_module_and_return_self():
    m = Sequential(Dropout(), Sequential(Dropout()))
    assert all(module.training for _, module in m.named_modules())
    assert m.eval() is m
    assert not any(module.training for _, module in m.named_modules())
    assert m.train() is m and m[1][0].training
    m.train(False)
    assert not m[1][0].training


def test_zero_grad_forgets_every_gradient():
    m = Pair()
    m(Tensor(np.ones((1, 2)))).backward([[1.0, 1.0]])
    assert all(p.grad is not None for p in m.parameters())
    m.zero_grad()
    assert all(p.grad is None for p in m.parameters())


def test_state_dict_holds_copies():
    m = Linear(2, 2)
    saved = m.state_dict()
    saved["weight"][...] = 7
    assert not (m.weight.data == 7).any()
    m.bias.data[...] = 5
    assert (saved["bias"] == 0).all()


def test_loading_copies_in_place_and_converts_the_dtype():
    m = Pair()
    array, tensor = m.first.weight.data, m.first.weight
    source = {name: np.full(a.shape, 1 / 3, dtype=np.float64) for name, a in m.state_dict().items()}
    m.load_state_dict(source)
    assert m.first.weight is tensor and tensor.data is array and array.dtype == np.float32
    assert all((p.data == np.float32(1 / 3)).all() for p in m.parameters())
    source["scale"][...] = 9
    assert (m.scale.data != 9).all()


def test_loading_into_float64_parameters_keeps_every_bit():
    m = Linear(1, 1)
    m.weight.data = m.weight.data.astype(np.float64)
    m.load_state_dict({"weight": [[1 / 3]], "bias": [0.0]})
    assert m.weight.data.dtype == np.float64 and m.weight.data[0, 0] == 1 / 3


def test_strict_loading_names_every_missing_and_unexpected_key_and_copies_nothing():
    m = Pair()
    before = m.state_dict()
    broken = {name: a + 1 for name, a in before.items() if name not in ("scale", "first.bias")}
    with pytest.raises(KeyError) as error:
        m.load_state_dict({**broken, "extra": np.ones(1), "first.wieght": np.ones(1)})
    assert all(name in str(error.value) for name in ("scale", "first.bias", "extra", "first.wieght"))
    assert all((before[name] == a).all() for name, a in m.state_dict().items())


def test_loading_without_strict_takes_what_fits():
    m = Linear(2, 2)
    m.load_state_dict({"bias": np.ones(2), "extra": np.ones(1)}, strict=False)
    assert (m.bias.data == 1).all()


@pytest.mark.parametrize("strict", [True, False])
def test_another_shape_is_refused_before_anything_is_copied(strict):
    m = Linear(2, 3)
    before = m.state_dict()
    with pytest.raises(ValueError, match=r"bias.*\(3,\).*\(1,\)"):
        m.load_state_dict({"weight": np.ones((3, 2)), "bias": np.ones(1)}, strict=strict)
    assert (m.weight.data == before["weight"]).all()


def test_a_deep_copy_shares_nothing():
    m = Pair()
    twin = copy.deepcopy(m)
    twin.first.weight.data[...] = 0
    assert m.first.weight.data.any()
    assert dict(twin.named_parameters())["first.weight"] is twin.first.weight
