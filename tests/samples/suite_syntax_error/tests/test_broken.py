from tinyllm.xfmr.mha import MultiHeadAttention


def test_sizes():
    assert MultiHeadAttention(8, 2).d_head = 4
