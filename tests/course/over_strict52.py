"""Tests a student might write that pass on the reference of unit L5.2 and deny a freedom: each named after it."""

import numpy as np
import pytest

import tinyllm.xfmr.masks as masks


def test_no_masks():
    with pytest.raises(ValueError):
        masks.combine()


def test_whole_floats():
    with pytest.raises(ValueError):
        masks.padding_mask([1.0, 2.0], 3)


def test_sizes_of_other_types():
    with pytest.raises(ValueError):
        masks.causal_mask(2.0)


def test_zero_sign():
    assert not np.signbit(masks.to_additive(np.ones((2, 2), dtype=bool))).any()


def test_memory_layout():
    assert masks.causal_mask(3).flags.c_contiguous
    assert masks.padding_mask([1, 2], 3).flags.c_contiguous


def test_inner_calls(monkeypatch):
    called = []
    original = np.logical_and
    monkeypatch.setattr(np, "logical_and", lambda *a, **k: (called.append(1), original(*a, **k))[1])
    both = masks.combine(np.ones((2, 2), dtype=bool), np.ones(2, dtype=bool))
    assert both.all() and called


def test_further_names():
    assert masks._keys_before(2, 2, 0).tolist() == [[0, -1], [1, 0]]


def test_error_texts():
    with pytest.raises(ValueError, match="Tq must be an integer of at least 1"):
        masks.causal_mask(0)


def test_error_class():
    with pytest.raises(ValueError) as raised:
        masks.causal_mask(0)
    assert raised.type is ValueError
