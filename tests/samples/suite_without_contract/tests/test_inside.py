import numpy as np

from tinyllm.autograd.engine import topological_order
from tinyllm.autograd.tensor import Tensor, as_tensor
from tinyllm.xfmr.mha import MultiHeadAttention


def test_graph_is_short():
    x = as_tensor(np.ones((1, 2, 4)))
    assert len(topological_order(MultiHeadAttention(4, 2)(x, Tensor(x.data)))) < 50
