"""Gradescope's results.json, by the rules of its documentation: fields, words and where a score has to stand."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from grader import gradescope
from grader.report import Report, Verdict
from grader.unit import Unit
from grader.views import for_role
from tests.grader.form_reports import (
    TESTS,
    all_kinds,
    as_seen,
    failed,
    failing,
    hostile,
    passing,
    rejected,
    the_unit,
    void,
)
from tests.grader.simulated import SECRET, Act, SimulatedSuite

FORMATS = {"text", "html", "simple_format", "md", "ansi"}
VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}
TOP = {
    "score": float,
    "execution_time": float,
    "output": str,
    "output_format": FORMATS,
    "test_output_format": FORMATS,
    "test_name_format": FORMATS,
    "visibility": VISIBILITIES,
    "stdout_visibility": VISIBILITIES,
    "extra_data": dict,
    "tests": list,
}
TEST = {
    "score": float,
    "max_score": float,
    "status": {"passed", "failed"},
    "name": str,
    "name_format": FORMATS,
    "number": str,
    "output": str,
    "output_format": FORMATS,
    "tags": list,
    "visibility": VISIBILITIES,
    "extra_data": dict,
}


def check(value: Mapping[str, Any], rules: Mapping[str, Any]) -> None:
    for name, inner in value.items():
        rule = rules[name]  # a field that the documentation does not have is a KeyError
        assert inner in rule if isinstance(rule, set) else isinstance(inner, rule), name


def read(report: Report, points: float = 100.0) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gradescope.render(report, points), parse_constant=pytest.fail)
    check(document, TOP)
    for test in document["tests"]:
        check(test, TEST)
        assert ("score" in test) == ("max_score" in test)
        assert 0 <= test.get("score", 0) <= test.get("max_score", 0)
    return document


def test_every_report_for_every_role_follows_the_documented_rules(unit: Unit) -> None:
    for report in as_seen(unit):
        document = read(report)
        assert ("score" in document) == (report.verdict is not Verdict.GRADER_ERROR)


@pytest.mark.parametrize("points", [1.0, 40.0, 100.0])
def test_the_score_is_ours_in_points_and_so_is_the_sum_over_the_tests(unit: Unit, points: float) -> None:
    for report in all_kinds(unit):
        document = read(report, points)
        if report.score is not None:
            assert document["score"] == pytest.approx(points * report.score)
            assert sum(test.get("score", 0.0) for test in document["tests"]) == pytest.approx(
                document["score"], abs=1e-3
            )
            most = sum(test.get("max_score", 0.0) for test in document["tests"])
            assert most == pytest.approx(points, abs=1e-3)


def test_weights_of_the_unit_are_those_of_the_points(unit: Unit) -> None:
    made = the_unit(unit)
    made = type(made)(**{**vars(made), "weight_course_tests": 3.0, "weight_mutation": 1.0})
    report = SimulatedSuite(made, TESTS, {"m1": {"test_a": Act.FAIL}}).grade()
    course = [test for test in read(report)["tests"] if test["number"].startswith("1.")]
    assert sum(test["max_score"] for test in course) == pytest.approx(75.0)
    assert report.score is not None and read(report)["score"] == pytest.approx(100 * report.score)


def test_what_is_visible_is_what_a_student_sees_whoever_asked(unit: Unit) -> None:
    for report in all_kinds(unit):
        student = read(for_role(report, "student"))
        for role in ("teacher", "admin", "lms"):
            document = read(for_role(report, role))
            visible = [test for test in document["tests"] if test["visibility"] == "visible"]
            assert {**document, "tests": visible} == student
        assert SECRET not in json.dumps(student)


def test_what_only_staff_may_see_is_there_and_hidden(unit: Unit) -> None:
    hidden = [test for test in read(void(unit))["tests"] if test["visibility"] == "hidden"]
    told = json.dumps(hidden)
    assert "fault m1" in told and "Correct code w01" in told
    assert all("score" not in test for test in hidden)


def test_a_test_that_rejects_correct_code_fails_and_says_what_to_do(unit: Unit) -> None:
    report = void(unit)
    assert report.student_tests is not None
    [bad] = [test for test in report.student_tests.tests if test.valid is False]
    [told] = [test for test in read(report)["tests"] if test["name"] == bad.id]
    assert (told["status"], told["output"]) == ("failed", bad.advice)


def test_what_was_caught_in_vain_gives_no_points_and_says_why(unit: Unit) -> None:
    [told] = [test for test in read(void(unit))["tests"] if test["name"] == "Mutant m1"]
    assert told["score"] == 0.0 and "void" in told["output"]


def test_a_survivor_fails_with_its_hint_and_one_that_cannot_be_built_is_left_out(unit: Unit) -> None:
    told = {test["name"]: test for test in read(failing(unit))["tests"]}
    assert (told["Mutant m4"]["status"], told["Mutant m4"]["output"]) == ("failed", "hint m4")
    assert "Mutant m5" not in told


def test_a_passed_unit_has_every_point(unit: Unit) -> None:
    document = read(passing(unit), 20.0)
    assert document["score"] == 20.0
    assert {test["status"] for test in document["tests"] if test["visibility"] == "visible"} == {"passed"}


def test_a_refused_upload_has_no_points_and_a_failure_of_ours_no_score() -> None:
    assert read(rejected())["score"] == 0.0
    assert "score" not in read(failed()) and "our side" in read(failed())["output"]


def test_texts_from_outside_are_shown_as_text(unit: Unit) -> None:
    for report in as_seen(unit):
        for test in read(hostile(report))["tests"]:
            assert all(char.isprintable() or char == "\n" for char in test["output"] + test["name"])
