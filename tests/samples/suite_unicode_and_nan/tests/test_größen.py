import math

import numpy as np

from tinyllm.autograd.tensor import Tensor
from tinyllm.xfmr.mha import MultiHeadAttention


def test_prüft_köpfe_und_druckt():
    print("Köpfe: 二つ 🧠 \x1b[31mrot\x1b[0m \x00", math.nan, math.inf)
    assert MultiHeadAttention(8, 2).d_head == 4, "さて"


def test_gewichte():
    x = Tensor(np.ones((1, 3, 4)))
    _, weights = MultiHeadAttention(4, 2).attend(x, x)
    total = weights.data.sum(axis=-1)
    assert np.allclose(total, 1), f"Σ = {total}, erwartet 1, nicht {math.nan} 🙈"


def test_teilt_gerecht():
    x = np.arange(12.0).reshape(1, 3, 4)
    heads = MultiHeadAttention(4, 2).split_heads(Tensor(x)).data
    fehler = np.where(heads[0, 1] == x[0, :, 2:], math.nan, math.inf)
    assert np.isnan(fehler).all(), f"falsch \u202e verteilt \x07: {fehler}"
