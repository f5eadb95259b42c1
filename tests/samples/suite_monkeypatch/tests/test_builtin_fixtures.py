import numpy as np
import pytest

from tinyllm.autograd.tensor import Tensor
from tinyllm.xfmr.mha import MultiHeadAttention


def test_is_silent(capsys):
    x = Tensor(np.ones((1, 2, 4)))
    MultiHeadAttention(4, 2).attend(x, x)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_rate_can_be_changed_later(monkeypatch):
    mha = MultiHeadAttention(4, 2, dropout=0.0)
    x = Tensor(np.random.default_rng(0).normal(size=(1, 6, 4)))
    before = mha(x, x).data
    monkeypatch.setattr(mha, "training", False)
    np.testing.assert_array_equal(mha(x, x).data, before)


def test_environment_does_not_matter(monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "123")
    monkeypatch.delenv("HOME", raising=False)
    assert MultiHeadAttention(4, 2).d_head == 2


def test_refuses_odd_heads(caplog, recwarn):
    with pytest.raises(ValueError):
        MultiHeadAttention(4, 3)
    assert not caplog.records
    assert not recwarn.list
