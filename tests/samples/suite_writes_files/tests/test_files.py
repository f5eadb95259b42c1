"""Saves and loads checkpoints: with tmp_path, and, not so nicely, beside the test."""

import json
from pathlib import Path

import numpy as np

from tinyllm.autograd.tensor import Tensor
from tinyllm.xfmr.mha import MultiHeadAttention

HERE = Path(__file__).parent


def test_checkpoint_round_trip(tmp_path):
    a, b = MultiHeadAttention(8, 2), MultiHeadAttention(8, 2)
    for _, p in a.named_parameters():
        p.data[...] = np.random.default_rng(4).normal(size=p.shape)
    np.savez(tmp_path / "mha.npz", **a.state_dict())
    with np.load(tmp_path / "mha.npz") as saved:
        b.load_state_dict(dict(saved))
    x = Tensor(np.random.default_rng(5).normal(size=(2, 3, 8)))
    np.testing.assert_array_equal(a(x, x).data, b(x, x).data)


def test_writes_beside_itself():
    log = HERE / "log.txt"
    assert not log.exists(), "left over from another run"
    log.write_text("split, attend, merge")
    assert log.read_text().count(",") == 2
    assert MultiHeadAttention(8, 2).d_head == 4


def test_reads_expected_values():
    expected = json.loads((HERE / "expected" / "split.json").read_text())
    x = np.array(expected["x"], dtype=float)
    heads = MultiHeadAttention(4, 2).split_heads(Tensor(x))
    np.testing.assert_array_equal(heads.data, expected["heads"])
