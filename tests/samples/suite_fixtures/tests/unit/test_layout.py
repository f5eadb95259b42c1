import numpy as np
import pytest


@pytest.mark.layout
def test_first_head_has_the_first_features(mha, cases, as_tensor):
    heads = mha.split_heads(as_tensor(cases["x_q"])).data
    np.testing.assert_array_equal(heads[:, 0], cases["x_q"][..., : 8 // mha.n_heads])


@pytest.mark.layout
def test_round_trip(mha, cases, as_tensor):
    back = mha.merge_heads(mha.split_heads(as_tensor(cases["x_q"])))
    np.testing.assert_array_equal(back.data, cases["x_q"])
