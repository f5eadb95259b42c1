"""How much students are told, and grades set by hand, as a teacher at a browser says so."""

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


def test_levels_are_set_and_nothing_else_of_the_unit_is_changed(bench, teacher):
    body = {"attempts": 5, "due_at": "2027-01-01T00:00:00Z"}
    bench.client.request("PUT", f"/v1{UNIT}", headers=bench.auth("teacher"), json=body)
    before = bench.get(f"/v1{UNIT}").json()
    answer = teacher.post(f"{UNIT}/feedback", normal="names", past_limit="none", after_passing="hints", attempts="3")
    assert answer.status_code == 303
    told = {"normal": "names", "past_limit": "none", "after_deadline": None, "after_passing": "hints", "attempts": 3}
    assert bench.get(f"/v1{UNIT}").json() == {**before, "feedback": told}
    page = teacher.get(answer.headers["Location"]).text
    assert '<option value="names" selected>' in page and 'value="3"' in page and "Saved." in page


def test_a_level_that_is_none_is_refused(bench, teacher):
    assert teacher.post(f"{UNIT}/feedback", normal="everything").status_code == 422
    assert teacher.post(f"{UNIT}/feedback", normal="names", attempts="0").status_code == 422
    assert bench.rows(tables.assignments) == []


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
    for path in ("feedback", "by-hand"):
        assert "<button" not in main(grader.get(f"{UNIT}/{path}"))
        assert grader.post(f"{UNIT}/{path}", normal="none", student="ada", do="withdraw").status_code == 403
    assert len(bench.rows(tables.overrides)) == 1
