"""An array that untrusted code returned and the one expected come in; what sets them apart leaves, or None.

The only comparison the grader believes. It never broadcasts, never converts, and compares nothing but finite numbers of
one dtype and one shape, so that NaN, infinities, scalars, empty arrays and objects with an == of their own are
differences, not agreement (docs/decisions/0080).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

DTYPES = tuple(np.dtype(name) for name in ("bool", "int64", "float16", "float32", "float64"))


@dataclass(frozen=True)
class Tolerance:
    """|actual - expected| <= atol + rtol |expected|, at every place.

    With `scaled`, atol is multiplied by max(1, the largest |expected|): for gradients, whose rounding grows with
    the numbers that were added up. ValueError unless both are finite and at least 0.
    """

    rtol: float = 0.0
    atol: float = 0.0
    scaled: bool = False

    def __post_init__(self) -> None:
        if not all(math.isfinite(number) and number >= 0 for number in (self.rtol, self.atol)):
            raise ValueError(f"a tolerance is finite and not negative, got rtol {self.rtol} and atol {self.atol}")


EXACT = Tolerance()


class Kind(StrEnum):
    """What sets two arrays apart, in the order in which it is looked for."""

    MISSING = "missing"
    UNEXPECTED = "unexpected"
    TYPE = "type"
    SHAPE = "shape"
    DTYPE = "dtype"
    NOT_FINITE = "not_finite"
    VALUE = "value"


@dataclass(frozen=True)
class Difference:
    """The first reason not to agree; of values, the worst place.

    `expected` and `actual` are two shapes, two dtypes, or two numbers at `index`, as text. `ratio` is how many
    tolerances the worst place is off, None where it says nothing: for other kinds, and where no error is allowed.
    """

    kind: Kind
    expected: str
    actual: str
    index: tuple[int, ...] | None = None
    ratio: float | None = None


def compare(actual: Any, expected: Array, tolerance: Tolerance) -> Difference | None:
    """None when `actual` is what was expected, else how it differs.

    `expected` is ours: ValueError if it has another dtype than DTYPES or holds what is not finite, and if integers
    or truth values should be compared with a tolerance.
    """
    _check_expected(expected, tolerance)
    if type(actual) is not np.ndarray:
        return Difference(Kind.TYPE, "ndarray", type(actual).__name__[:80])
    if actual.shape != expected.shape:
        return Difference(Kind.SHAPE, str(list(expected.shape)), str(list(actual.shape)))
    if actual.dtype not in DTYPES or actual.dtype != expected.dtype:
        return Difference(Kind.DTYPE, expected.dtype.name, str(actual.dtype)[:80])
    finite = np.isfinite(actual)
    if not finite.all():
        index = _first(~finite)
        return Difference(Kind.NOT_FINITE, _text(expected[index]), _text(actual[index]), index)
    if actual.dtype.kind in "bi":
        wrong = actual != expected
        if not wrong.any():
            return None
        index = _first(wrong)
        return Difference(Kind.VALUE, _text(expected[index]), _text(actual[index]), index)
    return _worst_value(actual, expected, tolerance)


def closeness(actual: Array, expected: Array, tolerance: Tolerance) -> float:
    """The worst |actual - expected| in tolerances, at most 1, of two arrays that `compare` found to agree."""
    if expected.dtype.kind in "bi" or expected.size == 0:
        return 0.0
    error, allowed = _error(actual, expected), _allowed(expected, tolerance)
    return float(np.max(np.divide(error, allowed, out=np.zeros_like(error), where=error > 0)))


@dataclass(frozen=True)
class Expectation:
    """One array of a case's expected result: its values, how close is close enough, and what it is, in words.

    `optional`: it may be left out. `values`: what its numbers stand for, if they are codes.
    """

    array: Array
    tolerance: Tolerance
    says: str
    optional: bool = False
    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Expectation":
        """From what a unit's oracle returns: array, rtol, atol, scaled, says, optional, values."""
        tolerance = Tolerance(float(said["rtol"]), float(said["atol"]), bool(said["scaled"]))
        return cls(said["array"], tolerance, str(said["says"]), bool(said["optional"]), tuple(said["values"]))


@dataclass(frozen=True)
class Finding:
    """A result's array that is not as expected; `says` as the expectation has it."""

    name: str
    says: str
    difference: Difference


def findings(result: Mapping[str, Any], expected: Mapping[str, Expectation]) -> tuple[Finding, ...]:
    """Everything that sets a case's result apart, in the order of `expected`, then how much nobody asked for.

    Nothing in it but numbers, shapes and dtypes comes from `result`.
    """
    found = []
    for name, what in expected.items():
        if name in result:
            difference = compare(result[name], what.array, what.tolerance)
        else:
            difference = None if what.optional else Difference(Kind.MISSING, "an array", "nothing")
        if difference:
            found.append(Finding(name, what.says, _in_words(difference, what.values)))
    more = len(result.keys() - expected.keys())
    if more:
        found.append(Finding("", "further arrays", Difference(Kind.UNEXPECTED, "none", str(more))))
    return tuple(found)


def worst_closeness(result: Mapping[str, Array], expected: Mapping[str, Expectation]) -> float:
    """`closeness` of a result without findings: its worst array's."""
    pairs = ((result[name], what) for name, what in expected.items() if name in result)
    return max((closeness(actual, what.array, what.tolerance) for actual, what in pairs), default=0.0)


def worst_of_agreeing(cases: Iterable[tuple[Mapping[str, Array], Mapping[str, Expectation]]]) -> float | None:
    """The worst `closeness` of several cases' results, each with what is expected; None if any may have findings.

    All numbers are compared at once: what numpy does of hundreds of small arrays costs less than that it is asked to.
    """
    pairs: list[tuple[Array, Expectation]] = []
    for result, expected in cases:
        missing = [what for name, what in expected.items() if name not in result and not what.optional]
        if missing or not result.keys() <= expected.keys():
            return None
        pairs += [(result[name], what) for name, what in expected.items() if name in result]
    if not all(_of_one_form(actual, what.array) for actual, what in pairs):
        return None
    exact = [pair for pair in pairs if pair[1].array.dtype.kind in "bi"]
    if not all(what.tolerance == EXACT and actual.tobytes() == what.array.tobytes() for actual, what in exact):
        return None
    return _worst_of_numbers([pair for pair in pairs if pair[1].array.dtype.kind == "f" and pair[0].size])


def _of_one_form(actual: Array, expected: Array) -> bool:
    return (
        type(actual) is np.ndarray
        and actual.shape == expected.shape
        and actual.dtype == expected.dtype
        and expected.dtype in DTYPES
    )


def _worst_of_numbers(pairs: Sequence[tuple[Array, Expectation]]) -> float | None:
    """`closeness` of the worst of these arrays, none of which is empty; None if any is not close enough."""
    if not pairs:
        return 0.0
    found = np.concatenate([actual.ravel() for actual, _ in pairs], dtype=np.float64)
    wanted = np.concatenate([what.array.ravel() for _, what in pairs], dtype=np.float64)
    lengths = [actual.size for actual, _ in pairs]
    size = np.abs(wanted)
    largest = np.maximum.reduceat(size, np.cumsum([0, *lengths[:-1]]))
    tolerances = [what.tolerance for _, what in pairs]
    scale = np.where([tolerance.scaled for tolerance in tolerances], np.maximum(1.0, largest), 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(found - wanted)
        atol = np.repeat(np.array([tolerance.atol for tolerance in tolerances]) * scale, lengths)
        allowed = atol + np.repeat([tolerance.rtol for tolerance in tolerances], lengths) * size
    if not (np.isfinite(error).all() and np.isfinite(allowed).all() and (error <= allowed).all()):
        return None
    return float(np.max(np.divide(error, allowed, out=np.zeros_like(error), where=error > 0)))


def _check_expected(expected: Array, tolerance: Tolerance) -> None:
    if type(expected) is not np.ndarray or expected.dtype not in DTYPES:
        raise ValueError(f"cannot expect a {type(expected).__name__} of {getattr(expected, 'dtype', 'no dtype')}")
    if not np.isfinite(expected).all():
        raise ValueError("an expected array holds NaN or infinity")
    if expected.dtype.kind in "bi" and tolerance != EXACT:
        raise ValueError(f"{expected.dtype} is compared exactly, got {tolerance}")


def _worst_value(actual: Array, expected: Array, tolerance: Tolerance) -> Difference | None:
    error, allowed = _error(actual, expected), _allowed(expected, tolerance)
    agrees = error <= allowed
    if agrees.all():
        return None
    with np.errstate(divide="ignore", over="ignore"):
        ratios = np.divide(error, allowed, out=np.zeros_like(error), where=~agrees)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(ratios)), ratios.shape))
    ratio = float(ratios[index])
    return Difference(
        Kind.VALUE, _text(expected[index]), _text(actual[index]), index, ratio if math.isfinite(ratio) else None
    )


def _error(actual: Array, expected: Array) -> Array:
    with np.errstate(over="ignore"):  # two huge numbers of opposite sign are infinitely far apart, and differ
        return np.asarray(np.abs(actual.astype(np.float64) - expected.astype(np.float64)))


def _allowed(expected: Array, tolerance: Tolerance) -> Array:
    size = np.abs(expected.astype(np.float64))
    scale = max(1.0, float(size.max(initial=0.0))) if tolerance.scaled else 1.0
    with np.errstate(over="ignore"):
        allowed = np.asarray(tolerance.atol * scale + tolerance.rtol * size)
    if not np.isfinite(allowed).all():  # an infinite tolerance would accept an infinite error
        raise ValueError("expected numbers are too large for their tolerance")
    return allowed


def _in_words(difference: Difference, values: tuple[str, ...]) -> Difference:
    """The same, with codes replaced by what they stand for."""
    if difference.kind is not Kind.VALUE or not values:
        return difference
    expected, actual = int(difference.expected), int(difference.actual)
    told = values[actual] if 0 <= actual < len(values) else "something else"
    return replace(difference, expected=values[expected], actual=told)


def _first(places: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(places)), places.shape))


def _text(number: Any) -> str:
    """As short as tells it from every other number of its dtype."""
    value = number.item()
    if number.dtype.kind != "f":
        return str(value)
    return str(np.format_float_positional(number, trim="-")) if value == 0 or 1e-4 <= abs(value) < 1e6 else str(number)
