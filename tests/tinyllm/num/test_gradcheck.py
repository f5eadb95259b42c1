import math

import numpy as np
import pytest

from tinyllm.num.gradcheck import gradcheck, numerical_grad

A = np.random.default_rng(0).normal(size=(2, 3))
B = np.random.default_rng(1).normal(size=(3,))


def loss(a, b):
    return np.sum(np.sin(a) @ b)


def gradients():
    return [np.cos(A) * B, np.sin(A).sum(0)]


def test_numerical_gradients_match_the_formula():
    for numeric, exact in zip(numerical_grad(loss, [A, B]), gradients(), strict=True):
        assert numeric.dtype == np.float64 and numeric.shape == exact.shape
        np.testing.assert_allclose(numeric, exact, rtol=1e-7, atol=1e-9)


def test_correct_gradients_pass():
    report = gradcheck(loss, [A, B], gradients())
    assert report.ok and report.max_abs_err < 1e-8 and report.max_rel_err < 1e-6


def test_a_wrong_element_fails_and_is_named():
    wrong = gradients()
    wrong[0][1, 2] += 0.5
    report = gradcheck(loss, [A, B], wrong)
    assert not report.ok and (report.worst_input, report.worst_index) == (0, (1, 2))
    assert report.max_abs_err == pytest.approx(0.5, abs=1e-6)


def test_the_error_must_stay_within_atol_plus_rtol():
    x, exact = [np.array([2.0])], np.array([4.0])

    def square(a):
        return float(a[0] ** 2)

    assert gradcheck(square, x, [exact + 0.009], rtol=0, atol=0.01).ok
    assert not gradcheck(square, x, [exact + 0.011], rtol=0, atol=0.01).ok
    assert gradcheck(square, x, [exact + 0.035], rtol=0.01, atol=0).ok
    assert not gradcheck(square, x, [exact + 0.045], rtol=0.01, atol=0).ok


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_fail_on_either_side(bad):
    claimed = gradients()
    claimed[1][1] = bad
    report = gradcheck(loss, [A, B], claimed)
    assert not report.ok and (report.worst_input, report.worst_index) == (1, (1,))
    assert not gradcheck(lambda a: bad, [np.zeros(2)], [np.zeros(2)]).ok


def test_the_callers_arrays_are_never_modified():
    inputs, claimed = [A.copy(), B.copy()], gradients()

    def vandal(a, b):
        value = loss(a, b)
        a[...] = 0
        b += 1
        return value

    assert gradcheck(vandal, inputs, claimed).ok
    np.testing.assert_array_equal(inputs[0], A)
    np.testing.assert_array_equal(inputs[1], B)


def test_f_is_given_float64():
    seen = set()
    numerical_grad(lambda a: seen.add(a.dtype) or 0.0, [np.ones(2, dtype=np.float32)])
    assert seen == {np.dtype(np.float64)}


def test_f_may_return_any_form_of_one_number():
    for wrap in (float, np.float64, np.array, lambda v: np.array([v])):
        assert gradcheck(lambda a, wrap=wrap: wrap(a.sum() * 2), [np.ones(2)], [np.full(2, 2.0)]).ok
    with pytest.raises(ValueError, match="one number"):
        numerical_grad(lambda a: a, [np.ones(2)])


def test_0d_and_empty_inputs():
    assert gradcheck(lambda a: a * 3, [np.array(1.0)], [np.array(3.0)]).ok
    empty = gradcheck(lambda a: 0.0, [np.zeros((0, 2))], [np.zeros((0, 2))])
    assert empty.ok and empty.worst_input is None and empty.max_abs_err == 0


@pytest.mark.parametrize("claimed", [[np.zeros((2, 3))], [np.zeros((2, 3)), np.zeros((3, 1))], []])
def test_mismatched_lengths_and_shapes_are_refused(claimed):
    with pytest.raises(ValueError):
        gradcheck(loss, [A, B], claimed)


@pytest.mark.parametrize("eps", [0.0, -1e-6, math.nan, math.inf])
def test_a_bad_eps_is_refused(eps):
    with pytest.raises(ValueError, match="eps"):
        gradcheck(loss, [A, B], gradients(), eps=eps)
    with pytest.raises(ValueError, match="eps"):
        numerical_grad(loss, [A, B], eps=eps)


@pytest.mark.parametrize("tolerance", [{"rtol": -1.0}, {"atol": math.nan}])
def test_a_bad_tolerance_is_refused(tolerance):
    with pytest.raises(ValueError, match="tolerances"):
        gradcheck(loss, [A, B], gradients(), **tolerance)
