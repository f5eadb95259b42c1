"""Grades set by hand, as a teacher at a browser sets them."""

import pytest

from service import tables

UNIT = "/courses/default/units/L0.0"
EVIL = "<b>zoe</b>"


@pytest.fixture
def teacher(bench):
    return bench.browser("tess", default="teacher")


@pytest.fixture
def grader(bench):
    return bench.browser("gus", default="grader")


def main(answer):
    return answer.text.partition("<main")[2].partition("</main>")[0]


def test_a_grade_is_set_and_taken_away(bench, teacher):
    assert teacher.post(f"{UNIT}/by-hand", student=EVIL, percent="87,5", reason="oral exam").status_code == 303
    [row] = bench.rows(tables.overrides)
    assert (row.student, row.score, row.reason) == (EVIL, 0.875, "oral exam")
    page = main(teacher.get(f"{UNIT}/by-hand"))
    assert "87.5 %" in page and "&lt;b&gt;zoe" in page and EVIL not in page
    assert teacher.post(f"{UNIT}/by-hand", student=EVIL, do="withdraw").status_code == 303
    assert bench.rows(tables.overrides) == []


@pytest.mark.parametrize(
    ("student", "percent", "reason"),
    [("", "50", "x"), ("ada", "", "x"), ("ada", "101", "x"), ("ada", "-1", "x"), ("ada", "nan", "x"), ("ada", "5", "")],
)
def test_a_grade_that_lacks_something_is_not_set(bench, teacher, student, percent, reason):
    answer = teacher.post(f"{UNIT}/by-hand", student=student, percent=percent, reason=reason)
    assert (answer.status_code, 'role="alert"' in answer.text) == (422, True)
    assert bench.rows(tables.overrides) == []


def test_a_grader_looks_and_changes_nothing(bench, teacher, grader):
    teacher.post(f"{UNIT}/by-hand", student="ada", percent="50", reason="oral exam")
    assert "<button" not in main(grader.get(f"{UNIT}/by-hand"))
    assert grader.post(f"{UNIT}/by-hand", student="ada", do="withdraw").status_code == 403
    assert len(bench.rows(tables.overrides)) == 1
