"""One formula for outputs."""

import numpy as np

from tinyllm.xfmr.sdpa import sdpa_forward


def test_output_and_weights():
    draw = np.random.default_rng(3)
    q, k, v = draw.normal(size=(2, 3, 4)), draw.normal(size=(2, 5, 4)), draw.normal(size=(2, 5, 6))
    for mask in (None, np.array([True, True, False, True, False])):
        scores = np.where(True if mask is None else mask, q @ k.transpose(0, 2, 1) / 2, -np.inf)
        p = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
        out, weights = sdpa_forward(q, k, v, mask)
        np.testing.assert_allclose(weights, p)
        np.testing.assert_allclose(out, p @ v)
