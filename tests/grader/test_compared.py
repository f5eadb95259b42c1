"""What a course test told of two arrays becomes a part of the report, or stays words."""

import json
import runpy
from typing import Any

import numpy as np
import pytest

from grader import gradescope, junit, text
from grader.compared import MARK, side_by_side, taken_from
from grader.report import ComparedPart
from grader.unit import Unit
from grader.units import DEFAULT_COURSE
from tests.grader.simulated import Act, SimulatedSuite, a_unit

SAID: dict[str, Any] = {
    "axes": ["batch", "head", "query", "key"],
    "shape": [2, 2, 3, 2],
    "at": [1, 0, 2, 1],
    "first": [0, 0],
    "expected": [[1, 0], [0.5, 0.5], [0.25, 0.75]],
    "actual": [[1, 0], [0.5, 0.5], [0.25, "nan"]],
}


piece = runpy.run_path(str(DEFAULT_COURSE / "tests" / "_lib" / "piece.py"))["piece"]  # what course tests tell with


def message(**other: Any) -> str:
    return f"AssertionError: The weights differ.\n{MARK}{json.dumps(SAID | other)}"


def test_the_arrays_leave_the_message_and_become_a_part() -> None:
    words, part = taken_from(message())
    assert words == "AssertionError: The weights differ."
    assert part is not None and part.model_dump(mode="json") == SAID
    assert (part.row, part.column) == (2, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"axes": ["batch"]},
        {"axes": ["<script>", "head", "query", "key"]},
        {"axes": ["x" * 25, "head", "query", "key"]},
        {"at": [1, 0, 2]},
        {"at": [1, 0, 3, 1]},
        {"at": [1, 0, -1, 1]},
        {"first": [3, 0]},
        {"expected": [[1, 0], [0.5]]},
        {"expected": [[1, 0]]},
        {"expected": [[0] * 13] * 3, "actual": [[0] * 13] * 3},
        {"expected": [[]], "actual": [[]]},
        {"actual": [[1, 0], [0.5, 0.5], [0.25, "<b>"]]},
        {"actual": [[1, 0], [0.5, 0.5], [0.25, float("nan")]]},
        {"actual": [[1, 0], [0.5, 0.5], [0.25, None]]},
        {"more": 1},
        {"shape": [10**400, 2, 3, 2]},
        {"at": [1, 0, 2 + 2**60, 1], "first": [2**60, 0]},
        {"actual": [[1, 0], [0.5, 0.5], [0.25, 10**400]]},
    ],
)
def test_what_is_not_in_the_form_to_the_letter_stays_words(other: dict[str, Any]) -> None:
    said = message(**other)
    assert taken_from(said) == (said, None)


def test_a_message_that_was_cut_or_holds_no_arrays_stays_as_it_is() -> None:
    for said in ("", "no arrays", message()[:-30], f"{MARK}{json.dumps(SAID)}"):
        assert taken_from(said) == (said, None)


def test_side_by_side_marks_the_first_place_that_differs_and_names_the_axes() -> None:
    part = ComparedPart.model_validate(SAID)
    lines = list(side_by_side(part))
    assert "[1, 0, 2, 1] of the shape [2, 2, 3, 2] (batch 1, head 0; rows: query, columns: key)" in lines[0]
    assert [line.split() for line in lines[1:]] == [
        ["expected", "got"],
        ["1", "0", "1", "0"],
        ["0.5", "0.5", "0.5", "0.5"],
        ["0.25", "[0.75]", "0.25", "[", "nan]"],
    ]
    assert len({len(line) for line in lines[2:]}) == 1  # in columns


def test_wide_arrays_stand_one_above_the_other() -> None:
    row = [[0.5] * 8]
    said = {"axes": [], "shape": [1, 8], "at": [0, 0], "first": [0, 0], "expected": row, "actual": row}
    lines = list(side_by_side(ComparedPart.model_validate(said)))
    assert [lines[1].strip(), lines[3].strip()] == ["expected", "got"] and max(map(len, lines[1:])) < 80


def test_arrays_without_names_of_axes_are_placed_by_number() -> None:
    part = ComparedPart.model_validate(SAID | {"axes": []})
    assert "(axis 0 1, axis 1 0)" in next(side_by_side(part))


def test_a_list_of_numbers_is_one_row() -> None:
    said = {
        "axes": ["feature"],
        "shape": [3],
        "at": [1],
        "first": [0, 0],
        "expected": [[1, 2, 3]],
        "actual": [[1, 5, 3]],
    }
    lines = list(side_by_side(ComparedPart.model_validate(said)))
    assert "(entries: feature)" in lines[0] and len(lines) == 3


# -- what the course's tests tell --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1,), (20,), (1, 1), (3, 40), (40, 3), (2, 3, 5, 7), (2, 2, 30, 30)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bool", "int64"])
def test_every_piece_that_the_course_tells_is_read_and_holds_the_place(shape: tuple[int, ...], dtype: str) -> None:
    draw = np.random.default_rng(1)
    expected = (draw.standard_normal(shape) * 1e-7).astype(dtype)
    for at in {(0,) * len(shape), tuple(size - 1 for size in shape), tuple(size // 2 for size in shape)}:
        actual = expected.copy()
        actual[at] = not actual[at] if dtype == "bool" else actual[at] + 1
        axes = " ".join(f"axis{n}" for n in range(len(shape)))
        told = piece(actual, expected, at, axes)
        _, part = taken_from(f"words\n{told}")
        assert part is not None and len(told) < 1500
        found = part.expected[part.row][part.column], part.actual[part.row][part.column]
        assert found == pytest.approx((float(expected[at]), float(actual[at])), rel=1e-4)


def test_what_is_not_finite_is_told_as_text() -> None:
    _, part = taken_from("\n" + piece(np.array([np.nan, np.inf, -np.inf]), np.zeros(3), (0,)))
    assert part is not None and part.actual == (("nan", "inf", "-inf"),)


def test_every_form_for_people_shows_the_arrays(unit: Unit) -> None:
    suite = SimulatedSuite(a_unit(unit, ["m1"]), ("test_a",), {"course": {"test_zero": Act.FAIL}})
    whole = suite.grade()
    assert whole.course_tests is not None
    tests = tuple(
        test.model_copy(update={"compared": ComparedPart.model_validate(SAID)}) for test in whole.course_tests.tests
    )
    report = whole.model_copy(update={"course_tests": whole.course_tests.model_copy(update={"tests": tests})})
    for form in (text.render, junit.render, gradescope.render):
        assert "batch 1, head 0; rows: query, columns: key" in form(report)
