"""Run once by the template before it forks, so that no child pays for pytest's first pass, failure or example."""

import unittest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def vector(request: pytest.FixtureRequest) -> np.ndarray:
    return np.arange(3.0)


@pytest.mark.parametrize("size", [1, 2])
def test_parametrised(size: int, vector: np.ndarray) -> None:
    assert vector.shape == (3,) and size


def test_assertion_fails(vector: np.ndarray) -> None:
    assert vector.sum() == 4.0, "expected"


def test_arrays_differ(vector: np.ndarray) -> None:
    np.testing.assert_allclose(vector, vector + 1)


def test_raises_and_approx() -> None:
    with pytest.raises(ValueError, match="shape"):
        np.ones(3).reshape(2, 2) if False else _refuse()
    assert pytest.approx(0.3) == 0.1 + 0.2


def _refuse() -> None:
    raise ValueError("shape")


def test_random_and_linear_algebra() -> None:
    generator = np.random.default_rng(0)
    weights = generator.standard_normal((4, 4)).astype(np.float32)
    assert np.isfinite(np.einsum("ij,jk->ik", weights, weights) @ weights).all()


@pytest.mark.skip(reason="expected")
def test_skipped() -> None: ...


@pytest.mark.xfail(reason="expected")
def test_expected_failure() -> None:
    raise AssertionError


@given(st.integers(0, 5), st.lists(st.floats(0, 1), max_size=2))
def test_property(number: int, floats: list[float]) -> None:
    assert number >= 0


class TestGrouped(unittest.TestCase):
    def test_member(self) -> None:
        with self.subTest("part"):
            self.assertEqual(1, 1)
