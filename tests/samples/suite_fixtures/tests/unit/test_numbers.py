import numpy as np
from support.oracle import attention


def test_output_and_weights(mha, cases, as_tensor):
    out, weights = mha.attend(as_tensor(cases["x_q"]), as_tensor(cases["x_kv"]))
    want, want_weights = attention(mha.state_dict(), mha.n_heads, cases["x_q"], cases["x_kv"])
    np.testing.assert_allclose(out.data, want, rtol=1e-8)
    np.testing.assert_allclose(weights.data, want_weights, rtol=1e-8)


def test_packed(mha, cases):
    mha.load_packed_in_proj(cases["packed"])
    np.testing.assert_array_equal(mha.state_dict()["k_proj.weight"], cases["packed"][8:16])
