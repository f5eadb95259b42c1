"""One test for every width up to 201, made in a loop."""

from tinyllm.xfmr.mha import MultiHeadAttention


def make(width):
    def test():
        assert MultiHeadAttention(width, 1).d_head == width

    return test


for width in range(1, 202):
    globals()[f"test_width_{width}"] = make(width)
