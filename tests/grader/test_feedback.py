"""Every field of a report at every level of feedback, for every audience."""

import json
from typing import Any

import pytest

from grader import conclude
from grader.formats import Format, rendered
from grader.report import Level, Report, Verdict
from grader.unit import Unit
from grader.views import ROLES_THAT_SEE_ALL, for_role
from sandbox.errors import EngineFailed
from tests.grader.form_reports import all_kinds, failing, passing, the_unit, void
from tests.grader.simulated import ABOUT
from tests.grader.test_views import both, leaves, telling_reports

NONE, COUNTS, CATEGORIES, NAMES, HINTS = Level
STUDENTS = ("student", "lms", "", "Teacher", "anyone")

FIELDS = {
    # The grade, whose it is, and how it was graded are no feedback.
    "schema": NONE,
    "submission": NONE,
    "verdict": NONE,
    "score": NONE,
    "weights": NONE,
    "deps": NONE,
    "intake": NONE,
    "environment": NONE,
    "timing": NONE,
    "integrity": NONE,
    "cached": NONE,
    "feedback": NONE,
    "by_hand": NONE,
    "reasons[].code": COUNTS,
    "reasons[].message": HINTS,
    "next_step": HINTS,
    "contract.ok": COUNTS,
    "contract.problems": NAMES,  # what is wrong there is a name of the contract
    "course_tests.passed": COUNTS,
    "course_tests.total": COUNTS,
    "course_tests.next": HINTS,
    "course_tests.tests[].id": NAMES,
    "course_tests.tests[].kind": NAMES,
    "course_tests.tests[].outcome": NAMES,
    "course_tests.tests[].seconds": NAMES,
    "course_tests.tests[].message": HINTS,
    "course_tests.tests[].where": HINTS,
    "course_tests.tests[].why": HINTS,
    "course_tests.tests[].chapter": HINTS,
    "course_tests.tests[].cause.code": NAMES,
    "course_tests.tests[].cause": HINTS,
    "course_tests.tests[].compared": HINTS,
    "oracle.status": COUNTS,
    "oracle.cases": COUNTS,
    "oracle.agreed": COUNTS,
    "oracle.seed": COUNTS,  # it follows from that of the grading
    "oracle.worst": HINTS,
    "oracle.disagreements[].case": NAMES,
    "oracle.disagreements[].message": HINTS,
    "oracle.disagreements[].cause.code": NAMES,
    "oracle.disagreements[].cause": HINTS,
    "student_tests.total": COUNTS,
    "student_tests.own_code_ok": COUNTS,
    "student_tests.tests[].id": NAMES,
    "student_tests.tests[].file": NAMES,
    "student_tests.tests[].line": NAMES,
    "student_tests.tests[].correct_runs": NAMES,
    "student_tests.tests[].kills": NAMES,
    "student_tests.tests[].flaky": NAMES,
    "student_tests.tests[].own_code": NAMES,
    "student_tests.tests[].valid": NAMES,
    "student_tests.tests[].message": HINTS,
    "student_tests.tests[].rejection": HINTS,
    "student_tests.tests[].advice": HINTS,
    "student_tests.tests[].denies": HINTS,
    "student_tests.tests[].cause.code": NAMES,
    "student_tests.tests[].cause": HINTS,
    "student_tests.baselines.correct": HINTS,
    "student_tests.baselines.own.cause.code": NAMES,
    "student_tests.baselines.own.cause": HINTS,
    "student_tests.baselines.own": NAMES,
    "student_tests.baselines.broken": HINTS,
    "student_tests.baselines.cpu_seconds": HINTS,
    "student_tests.baselines.budget_cpu_seconds": COUNTS,
    "mutation.score": COUNTS,
    "mutation.score_if_valid": COUNTS,
    "mutation.threshold": COUNTS,
    "mutation.killed": COUNTS,
    "mutation.total": COUNTS,
    "mutation.required_ok": COUNTS,
    "mutation.passed": COUNTS,
    "mutation.remembered": COUNTS,
    "mutation.matrix": COUNTS,
    "mutation.mutants[].id": NAMES,
    "mutation.mutants[].tier": NAMES,
    "mutation.mutants[].required": NAMES,
    "mutation.mutants[].status": NAMES,
    "mutation.mutants[].killed_by": NAMES,
    "mutation.mutants[].hint": HINTS,
    "mutation.mutants[].hints_total": HINTS,
    "mutation.mutants[].hints": HINTS,
    "mutation.mutants[].category": NAMES,
    "mutation.mutants[].cause.code": NAMES,
    "mutation.mutants[].cause": HINTS,
    "mutation.mutants[].detail": HINTS,
    "mutation.wheats": HINTS,
    "mutation.categories": CATEGORIES,
    "mutation.kill_matrix": NAMES,
}
"""From which level on a field is told; what a role may not see at all stays hidden at each."""


def told_from(path: str) -> Level:
    """The level of a field, or of the closest part it belongs to that has one."""
    return next(
        FIELDS[path[:end]]
        for end in range(len(path), 0, -1)
        if path[:end] in FIELDS and (end == len(path) or path[end] in ".[{")
    )


@pytest.fixture(scope="module")
def reports(unit: Unit) -> list[Report]:
    return [*all_kinds(unit), *telling_reports(the_unit(unit))]


def test_every_field_of_a_report_has_a_level() -> None:
    found = sorted(set(leaves(Report)))
    assert all(told_from(path) in Level for path in found)
    assert [path for path in FIELDS if not any(leaf.startswith(path) for leaf in found)] == []


def is_blank(value: Any) -> bool:
    return value in (None, "", [], 0) and value is not False


@pytest.mark.parametrize("level", list(Level))
def test_every_field_is_told_from_its_level_on_and_not_before(reports: list[Report], level: Level) -> None:
    for report in reports:
        view = for_role(report, "student")
        whole, told = json.loads(view.to_json()), json.loads(for_role(report, "student", level).to_json())
        graded = report.verdict in (Verdict.PASS, Verdict.FAIL)
        for path, full, seen in both("", whole, told):
            if isinstance(full, dict | list) and path not in FIELDS:
                # What it holds is looked at instead: it is all there, or it is empty.
                assert seen is None or type(seen) is type(full), (path, level)
                assert seen or not full or not level.tells(NAMES if isinstance(full, list) else COUNTS), (path, level)
                continue
            if not graded or level.tells(told_from(path)):
                assert seen == full or path == "feedback", (path, level)
            elif path in ("reasons[].code", "reasons[].message", "next_step"):
                assert seen == full or "test_" not in seen, (path, level)  # other words stand there
            elif path.endswith(".cause"):
                assert full is None or seen is None or seen["message"] == "", (path, level)
            else:
                assert is_blank(seen), (path, level, seen)


def test_what_is_withheld_is_in_no_form(unit: Unit) -> None:
    for made in (failing, void, passing):
        report = made(unit)
        for role in ("student", "lms"):
            texts = {
                (form, level): rendered(for_role(report, role, level), form, level=level)
                for form in Format
                for level in Level
            }
            for (form, level), text in texts.items():
                for mark, least in (("hint m", HINTS), ("test_a", NAMES), ('"m1"', NAMES), ("Mutant m1", NAMES)):
                    assert mark not in text or level.tells(least), (form, level, mark)
            assert "test_a" in texts[Format.TEXT, NAMES] and "test_a" in texts[Format.JSON, HINTS]


def test_staff_see_everything_at_every_level(reports: list[Report]) -> None:
    for report in reports:
        for level in Level:
            assert all(for_role(report, role, level) is report for role in ROLES_THAT_SEE_ALL)


def test_whoever_is_not_staff_is_told_what_a_student_is(reports: list[Report]) -> None:
    for report in reports:
        for level in Level:
            views = [for_role(report, role, level) for role in STUDENTS]
            assert all(view == views[0] for view in views)


def test_levels_are_ordered_and_a_lower_one_can_be_made_from_a_higher_one(reports: list[Report]) -> None:
    for report in reports:
        for higher in Level:
            for lower in Level:
                if higher.tells(lower):
                    twice = for_role(for_role(report, "student", higher), "student", lower)
                    assert twice == for_role(report, "student", lower)


def test_a_report_says_that_less_is_told_and_how_much(unit: Unit) -> None:
    for level in Level:
        view = for_role(failing(unit), "student", level)
        assert (view.feedback is None) is (level is HINTS)
        if view.feedback is not None:
            assert view.feedback.level is level
            assert view.feedback.message in rendered(view, Format.TEXT).replace("\n", " ")


def test_the_grade_is_told_at_every_level(unit: Unit) -> None:
    for made in (failing, passing, void):
        report = made(unit)
        for level in Level:
            view = for_role(report, "student", level)
            assert (view.verdict, view.score) == (report.verdict, report.score)
            assert json.loads(rendered(report, Format.GRADESCOPE, level=level))["score"] == 100 * (report.score or 0)


def test_entries_of_gradescope_add_up_to_the_score_at_every_level_that_counts(unit: Unit) -> None:
    for made in (failing, passing, void):
        for level in (COUNTS, CATEGORIES, NAMES, HINTS):
            document = json.loads(rendered(made(unit), Format.GRADESCOPE, level=level))
            visible = [each for each in document["tests"] if each["visibility"] == "visible"]
            assert sum(each.get("score", 0) for each in visible) == pytest.approx(document["score"], abs=1e-4)


def test_nothing_is_withheld_of_what_was_not_graded() -> None:
    for report in (
        conclude.rejected("Z1", ABOUT, "link", "This is a link."),
        conclude.failed("Z1", ABOUT, "", EngineFailed("gone")),
    ):
        assert all(for_role(report, "student", level) == report for level in Level)


def test_views_at_every_level_are_reports_of_the_same_schema(reports: list[Report]) -> None:
    for report in reports[:12]:
        for level in Level:
            view = for_role(report, "student", level)
            assert Report.model_validate_json(view.to_json()) == view
