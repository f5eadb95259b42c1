import time

import numpy as np

from tinyllm.autograd.tensor import Tensor
from tinyllm.xfmr.mha import MultiHeadAttention


def test_before():
    assert MultiHeadAttention(8, 2).d_head == 4


def test_waits_for_a_server_that_never_comes():
    while True:
        time.sleep(1)


def test_after():
    x = Tensor(np.arange(24.0).reshape(1, 3, 8))
    heads = MultiHeadAttention(8, 2).split_heads(x)
    np.testing.assert_array_equal(heads.data[0, 1], x.data[0, :, 4:])
