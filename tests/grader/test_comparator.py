"""The comparator believes nothing but finite numbers of the right dtype and shape, close enough everywhere."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from grader.comparator import (
    DTYPES,
    EXACT,
    Difference,
    Expectation,
    Kind,
    Tolerance,
    closeness,
    compare,
    findings,
    worst_closeness,
    worst_of_agreeing,
)

CLOSE = Tolerance(rtol=1e-5, atol=1e-6)
FLOATS = (np.float16, np.float32, np.float64)

shapes = npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
tolerances = st.builds(Tolerance, st.floats(0, 1e-2), st.floats(0, 1e-2), st.booleans())


def finite(dtype: Any, shape: Any = shapes) -> st.SearchStrategy[NDArray[Any]]:
    limit = 1e4 if dtype == np.float16 else 1e30
    width = np.dtype(dtype).itemsize * 8
    bound = float(np.array(limit, dtype=dtype))
    return npst.arrays(dtype, shape, elements=st.floats(-bound, bound, width=width, allow_nan=False))


def ones(*shape: int, dtype: Any = np.float32) -> NDArray[Any]:
    return np.ones(shape, dtype=dtype)


def kind(actual: Any, expected: NDArray[Any], tolerance: Tolerance = CLOSE) -> Kind | None:
    difference = compare(actual, expected, tolerance)
    return difference.kind if difference else None


# --- what does agree -----------------------------------------------------------------------------------------------


@given(st.sampled_from(FLOATS).flatmap(finite))
def test_an_array_agrees_with_its_copy_exactly(expected: NDArray[Any]) -> None:
    assert compare(expected.copy(), expected, EXACT) is None
    assert closeness(expected.copy(), expected, EXACT) == 0.0


@given(npst.arrays(st.sampled_from([np.bool_, np.int64]), shapes))
def test_integers_and_truth_values_agree_exactly_or_not_at_all(expected: NDArray[Any]) -> None:
    assert compare(expected.copy(), expected, EXACT) is None
    assume(expected.size)
    actual = expected.copy()
    actual.flat[-1] = not actual.flat[-1] if expected.dtype == bool else actual.flat[-1] ^ 1
    found = compare(actual, expected, EXACT)
    assert found is not None
    assert found.kind is Kind.VALUE
    assert found.index == tuple(n - 1 for n in expected.shape)
    assert (found.actual, found.expected) == (str(actual.flat[-1]), str(expected.flat[-1]))


def test_large_integers_are_not_rounded_before_they_are_compared() -> None:
    assert kind(np.array([2**60 + 1]), np.array([2**60]), EXACT) is Kind.VALUE


@settings(max_examples=300)
@given(st.data(), st.sampled_from(FLOATS), tolerances)
def test_verdict_is_that_of_a_loop_over_python_numbers(data: Any, dtype: Any, tolerance: Tolerance) -> None:
    expected = data.draw(finite(dtype))
    noise = data.draw(npst.arrays(np.float64, expected.shape, elements=st.floats(-2, 2)))
    size = [abs(float(e)) for e in expected.flat]
    scale = max([1.0, *size]) if tolerance.scaled else 1.0
    allowed = [tolerance.atol * scale + tolerance.rtol * s for s in size]
    moved = expected.astype(np.float64) + noise * np.reshape(allowed, expected.shape)
    with np.errstate(over="ignore"):
        actual = np.asarray(moved, dtype=dtype).reshape(expected.shape)
    assume(np.isfinite(actual).all())
    errors = [abs(float(a) - float(e)) for a, e in zip(actual.flat, expected.flat, strict=True)]
    found = compare(actual, expected, tolerance)
    assert (found is None) == all(error <= allow for error, allow in zip(errors, allowed, strict=True))
    ratios = [error / allow if allow else math.inf for error, allow in zip(errors, allowed, strict=True) if error]
    if found is None:
        assert closeness(actual, expected, tolerance) == pytest.approx(max(ratios, default=0.0))
    else:
        assert found.kind is Kind.VALUE
        assert found.ratio == (None if math.inf in ratios else pytest.approx(max(ratios)))
        assert found.index is not None
        place = int(np.ravel_multi_index(found.index, expected.shape)) if found.index else 0
        assert errors[place] > allowed[place]
        assert dtype(found.actual) == actual[found.index], "the text is that number's alone"


# --- what never agrees ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
def test_one_number_that_is_not_finite_anywhere_is_a_difference(data: Any, dtype: Any, bad: float) -> None:
    expected = data.draw(finite(dtype, npst.array_shapes(min_dims=0, max_dims=3, max_side=4)))
    place = data.draw(st.integers(0, expected.size - 1))
    actual = expected.copy()
    actual.flat[place] = bad
    found = compare(actual, expected, Tolerance(rtol=1.0, atol=1.0))
    assert found is not None
    assert found.kind is Kind.NOT_FINITE
    assert found.index == np.unravel_index(place, expected.shape)
    assert found.actual == str(bad)


def test_nan_everywhere_is_a_difference() -> None:
    assert kind(np.full((2, 3), np.nan, np.float32), ones(2, 3)) is Kind.NOT_FINITE


@given(shapes, shapes, st.sampled_from(DTYPES))
def test_another_shape_is_a_difference_also_where_numpy_would_broadcast(one: Any, other: Any, dtype: Any) -> None:
    assume(one != other)
    found = compare(np.ones(one, dtype), np.ones(other, dtype), EXACT)
    assert found == Difference(Kind.SHAPE, str(list(other)), str(list(one)))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0,), (0, 4), (1, 0), (4,), (4, 1), (1, 1, 4), (1, 4, 1)])
def test_scalars_and_empty_arrays_do_not_stand_for_a_row_of_four(shape: tuple[int, ...]) -> None:
    assert kind(ones(*shape), ones(1, 4)) is Kind.SHAPE


@pytest.mark.parametrize("expected", FLOATS)
@pytest.mark.parametrize(
    "actual", ["float16", "float32", "float64", ">f2", ">f4", ">f8", "complex64", "int64", "bool", "O", "U3", "V4"]
)
def test_another_dtype_or_byte_order_is_a_difference(actual: str, expected: Any) -> None:
    if np.dtype(actual) == expected:
        return
    assert kind(np.zeros((2, 2), actual), np.zeros((2, 2), expected)) is Kind.DTYPE


def test_fields_are_not_numbers() -> None:
    assert kind(np.zeros(2, [("x", "<f4")]), ones(2)) is Kind.DTYPE


class AlwaysEqual:
    def __eq__(self, other: object) -> bool:
        return True

    __array_priority__ = 1e9
    shape, dtype, size = (2,), np.dtype(np.float32), 2


def test_an_object_whose_equality_is_always_true_is_a_difference() -> None:
    assert kind(AlwaysEqual(), ones(2)) is Kind.TYPE
    assert kind(np.array([AlwaysEqual(), AlwaysEqual()]), ones(2)) is Kind.DTYPE


class Agreeable(np.ndarray):
    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        return True


@pytest.mark.parametrize(
    "actual",
    [
        np.zeros(2, np.float32).view(Agreeable),
        np.ma.masked_array(np.zeros(2, np.float32), mask=True),
        np.zeros(2, np.float32).view(np.recarray),
        [1.0, 1.0],
        np.float32(1.0),
        None,
    ],
)
def test_subclasses_sequences_and_scalars_are_differences(actual: Any) -> None:
    assert kind(actual, np.float32([1, 1]) if actual is not None else ones(2)) is Kind.TYPE


def test_tolerance_grows_with_the_expected_value_never_with_the_actual_one() -> None:
    assert kind(np.array([1e30]), np.array([1.0]), Tolerance(rtol=0.9, atol=0.0)) is Kind.VALUE
    assert kind(np.array([1.0]), np.array([1e30]), Tolerance(rtol=0.9, atol=0.0)) is Kind.VALUE
    assert kind(np.array([1e-30]), np.array([0.0]), Tolerance(rtol=0.9, atol=0.0)) is Kind.VALUE


def test_numbers_infinitely_far_apart_in_float64_differ() -> None:
    assert kind(np.array([1.7e308]), np.array([-1.7e308]), CLOSE) is Kind.VALUE


def test_one_wrong_number_among_many_is_found_where_it_is() -> None:
    expected = np.linspace(-1, 1, 10_000).reshape(10, 20, 50)
    actual = expected.copy()
    actual[3, 7, 11] += 1e-3
    actual[9, 9, 9] += 1e-2
    found = compare(actual, expected, CLOSE)
    assert found is not None
    assert found.index == (9, 9, 9)
    assert found.ratio is not None
    assert found.ratio > 1000


def test_scaled_tolerance_follows_the_largest_expected_value() -> None:
    expected = np.float32([0.0, 1000.0])
    assert kind(np.float32([1e-3, 1000.0]), expected, Tolerance(0.0, 5e-6)) is Kind.VALUE
    assert kind(np.float32([1e-3, 1000.0]), expected, Tolerance(0.0, 5e-6, scaled=True)) is None
    assert kind(np.float32([6e-3, 1000.0]), expected, Tolerance(0.0, 5e-6, scaled=True)) is Kind.VALUE
    assert kind(np.float32([1e-5, 0.1]), np.float32([0.0, 0.1]), Tolerance(0.0, 5e-6, scaled=True)) is Kind.VALUE


# --- what we may not ask for ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [math.nan, math.inf, -1.0])
def test_a_tolerance_that_would_accept_everything_cannot_be_made(number: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Tolerance(rtol=number)
    with pytest.raises(ValueError, match="finite"):
        Tolerance(atol=number)


@pytest.mark.parametrize(
    "expected",
    [np.array([np.nan]), np.array([np.inf]), np.array(["a"]), np.array([None]), np.array([1], ">i8"), np.array([1j])],
)
def test_an_expectation_that_says_nothing_is_our_error(expected: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match=r"expect"):
        compare(expected.copy(), expected, EXACT)


def test_integers_with_a_tolerance_and_an_overflowing_tolerance_are_our_errors() -> None:
    with pytest.raises(ValueError, match="exactly"):
        compare(np.array([1]), np.array([1]), CLOSE)
    with pytest.raises(ValueError, match="too large"):
        compare(np.array([1e308]), np.array([1e308]), Tolerance(rtol=10.0))


# --- a whole result ------------------------------------------------------------------------------------------------


def test_findings_name_what_is_missing_wrong_and_too_much() -> None:
    expected = {
        "out": Expectation(ones(2), CLOSE, "the output"),
        "grad": Expectation(ones(2), CLOSE, "the gradient"),
        "may": Expectation(ones(2), CLOSE, "what may be left out", optional=True),
        "end": Expectation(np.array(1), EXACT, "the end", values=("no error", "ValueError")),
    }
    right = {"out": ones(2), "grad": ones(2), "end": np.array(1)}
    assert findings(right, expected) == ()
    assert worst_closeness(right, expected) == 0.0
    wrong = {"out": ones(2) * 2, "may": ones(2) * 2, "end": np.array(0), "\x1b[2J": ones(2)}
    found = findings(wrong, expected)
    assert [(f.name, f.difference.kind) for f in found] == [
        ("out", Kind.VALUE),
        ("grad", Kind.MISSING),
        ("may", Kind.VALUE),
        ("end", Kind.VALUE),
        ("", Kind.UNEXPECTED),
    ]
    assert (found[3].difference.expected, found[3].difference.actual) == ("ValueError", "no error")
    assert "\x1b" not in repr(found)


@given(npst.arrays(np.int64, (), elements=st.integers(-(2**63), 2**63 - 1)))
def test_a_code_that_stands_for_nothing_is_told_without_failing(code: NDArray[Any]) -> None:
    expected = {"end": Expectation(np.array(1), EXACT, "the end", values=("no error", "ValueError"))}
    found = findings({"end": code}, expected)
    assert (found == ()) == (code == 1)
    assert all(f.difference.actual in ("no error", "something else") for f in found)


parts = st.one_of(
    st.sampled_from(FLOATS).flatmap(finite), npst.arrays(st.sampled_from([np.bool_, np.int64, np.int32]), shapes)
)


@given(st.lists(st.tuples(parts, tolerances, st.booleans()), max_size=5), st.data())
def test_all_cases_at_once_agree_just_when_each_has_no_findings(
    wanted: list[tuple[NDArray[Any], Tolerance, bool]], data: st.DataObject
) -> None:
    cases = []
    for array, tolerance, optional in wanted:
        fitting = tolerance if array.dtype.kind == "f" else EXACT
        expected = {"y": Expectation(array, fitting, "the result", optional)}
        changes: dict[str, Any] = {
            "none": lambda array: {"y": array.copy()},
            "a little": lambda array: {"y": (array * 0.999).astype(array.dtype)},
            "another form": lambda array: {"y": array[None]},
            "missing": lambda array: {},
            "too much": lambda array: {"y": array, "z": array},
        }
        weights = ["none", "none", "none", "a little", "a little", "another form", "missing", "too much"]
        cases.append((changes[data.draw(st.sampled_from(weights))](array), expected))
    try:
        agree = all(findings(result, expected) == () for result, expected in cases)
    except ValueError:  # what is expected is our error: to be told, so not to be passed over
        assert worst_of_agreeing(cases) is None
        return
    worst = worst_of_agreeing(cases)
    if agree:
        assert worst == max((worst_closeness(result, expected) for result, expected in cases), default=0.0)
    else:
        assert worst is None


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1.0 + 1.2e-5, 1.7e308])
def test_one_wrong_number_in_the_last_case_is_never_agreement(number: float) -> None:
    expected = {"y": Expectation(ones(3, dtype=np.float64), CLOSE, "the result")}
    right, wrong = ones(3, dtype=np.float64), np.array([1.0, 1.0, number])
    assert worst_of_agreeing([({"y": right}, expected)] * 3) == 0.0
    assert worst_of_agreeing([({"y": right}, expected), ({"y": wrong}, expected)]) is None


def test_an_expectation_is_read_from_what_an_oracle_says() -> None:
    said = {
        "array": ones(2),
        "rtol": 1e-5,
        "atol": 5e-6,
        "scaled": True,
        "says": "the gradient",
        "optional": False,
        "values": [],
    }
    read = Expectation.of(said)
    assert (read.tolerance, read.says, read.values) == (Tolerance(1e-5, 5e-6, scaled=True), "the gradient", ())
