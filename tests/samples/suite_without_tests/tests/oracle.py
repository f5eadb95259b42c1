"""The oracle is done; the tests that use it are still to be written."""

import numpy as np


def softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def check_softmax():
    assert np.allclose(softmax(np.zeros(4)), 0.25)
