"""A student's report holds nothing that was said, counted or timed beside code that is not their own."""

import json
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum, auto
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from grader import conclude
from grader.plan import STANDARD, Policy
from grader.report import Outcome, Report
from grader.text import render
from grader.unit import Unit
from grader.views import for_role
from sandbox.records import EndingKind, File
from tests.grader.simulated import ABOUT, OWN_WORDS, SECRET, Act, SimulatedSuite, a_unit

TESTS = ("test_a", "test_b", "test_c", "test_d", "test_e")
BESIDE = ("reference", "broken", "w01", "m1", "m2")


@pytest.fixture(scope="module")
def small(unit: Unit) -> Unit:
    return a_unit(unit, ["m1", "m2"], wheats=1, required=["m1"])


def texts(value: object) -> Iterator[str]:
    """Every text in a JSON value, keys and values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def seen_by(report: Report, role: str) -> str:
    return "\n".join(texts(json.loads(for_role(report, role).to_json())))


def leaky_suites(unit: Unit) -> Iterator[SimulatedSuite]:
    """A suite for every act on every piece of code beside the student's, and for every way to end or not to load."""
    for variant in BESIDE:
        for act in Act:
            yield SimulatedSuite(unit, TESTS, {variant: {"test_b": act}})
        for kind in EndingKind:
            if kind is not EndingKind.COMPLETE:
                yield SimulatedSuite(unit, TESTS, ends_at_import={variant: kind})
        yield SimulatedSuite(unit, TESTS, file_errors=frozenset({variant}))
        yield SimulatedSuite(unit, TESTS, class_errors=frozenset({variant}))
    everywhere = frozenset(BESIDE)
    yield SimulatedSuite(unit, TESTS, file_errors=everywhere)
    yield SimulatedSuite(unit, (), class_errors=everywhere)
    for act in Act:
        name = f"test_{SECRET}[{SECRET}]"
        yield SimulatedSuite(unit, TESTS, {"*": {name: act}}, made_beside=(name,))
        yield SimulatedSuite(unit, (), {"*": {name: act}}, made_beside=(name,))
    yield SimulatedSuite(unit, TESTS, made_beside=tuple(f"test_{SECRET}_{n}" for n in range(300)))


@pytest.mark.parametrize("policy", [STANDARD, Policy(full_matrix_cpu_seconds=0.0)])
def test_nothing_said_beside_other_code_reaches_a_student(small: Unit, policy: Policy) -> None:
    for suite in leaky_suites(small):
        report = suite.grade(policy=policy)
        for role in ("student", "lms", "anyone"):
            assert SECRET not in seen_by(report, role)
        assert SECRET not in render(for_role(report, "student"))


def test_a_teacher_sees_what_was_said_on_correct_code(small: Unit) -> None:
    report = SimulatedSuite(small, TESTS, {"reference": {"test_b": Act.FAIL}}).grade()
    assert f"{SECRET} reference" in seen_by(report, "teacher")
    assert for_role(report, "admin") is report


def test_a_student_sees_what_their_tests_said_on_their_own_code(small: Unit) -> None:
    report = SimulatedSuite(small, TESTS, {"own": {"test_b": Act.FAIL}}).grade()
    assert OWN_WORDS in seen_by(report, "student")


def test_numbers_that_code_could_choose_are_not_shown(small: Unit) -> None:
    for variant in ("reference", "w01", "m1"):
        reports = [
            SimulatedSuite(small, TESTS, {variant: {"test_a": Act.CRASH}}).grade(),
            SimulatedSuite(small, TESTS, ends_at_import={variant: EndingKind.SIGNAL}).grade(),
            SimulatedSuite(small, TESTS, ends_at_import={variant: EndingKind.EARLY_EXIT}).grade(),
        ]
        for report in reports:
            said = for_role(report, "student")
            assert said.mutation is not None and said.student_tests is not None
            causes = [mutant.cause for mutant in said.mutation.mutants]
            causes += [test.cause for test in said.student_tests.tests]
            assert all(cause is None or cause.seen is None for cause in causes)
            assert "SIG" not in seen_by(report, "student")


def test_a_student_sees_the_first_three_tests_that_reject_correct_code_and_no_other(small: Unit) -> None:
    acts = {"w01": dict.fromkeys(TESTS[1:], Act.FAIL), "m1": {"test_a": Act.FAIL}}
    report = for_role(SimulatedSuite(small, TESTS, acts).grade(), "student")
    assert report.student_tests is not None and report.mutation is not None
    assert [test.valid for test in report.student_tests.tests] == [None, False, False, False, None]
    assert [test.correct_runs is None for test in report.student_tests.tests] == [True, False, False, False, True]
    assert all(not test.kills for test in report.student_tests.tests)
    assert all(not mutant.killed_by for mutant in report.mutation.mutants)
    assert "test_d and others" in report.reasons[0].message and "test_e" not in report.reasons[0].message


def test_own_outcomes_stay_when_the_rest_of_a_test_is_closed(small: Unit) -> None:
    acts = {"w01": dict.fromkeys(TESTS[:4], Act.FAIL), "own": {"test_e": Act.FAIL}}
    report = for_role(SimulatedSuite(small, TESTS, acts).grade(), "student")
    assert report.student_tests is not None
    assert report.student_tests.tests[4].own_code is Outcome.FAILED


def test_students_see_neither_the_fault_nor_the_wheats(small: Unit) -> None:
    report = SimulatedSuite(small, TESTS).grade()
    assert "fault m1" in seen_by(report, "teacher") and "w01" in seen_by(report, "teacher")
    assert "fault m1" not in seen_by(report, "student") and "w01" not in seen_by(report, "student")
    assert "hint m1" in seen_by(report, "student")


def test_students_see_how_many_hints_there_are_and_the_first_of_them(small: Unit) -> None:
    report = SimulatedSuite(small, TESTS, {"m2": {"test_a": Act.FAIL}}).grade()
    assert "second hint m1" in seen_by(report, "teacher") and "second hint m1" not in seen_by(report, "student")
    shown = for_role(report, "student").mutation
    assert shown is not None
    assert [(each.hint, each.hints_total) for each in shown.mutants] == [("hint m1", 2), ("", 0)]


def test_a_report_without_tests_is_the_same_for_everyone(small: Unit) -> None:
    report = conclude.rejected("Z1", ABOUT, "link", "This is a link.")
    assert for_role(report, "student") == report


def test_a_view_is_a_report_of_the_same_schema(small: Unit) -> None:
    suite = SimulatedSuite(replace(small, wheats=()), TESTS, {"m1": {"test_a": Act.HANG}})
    view = for_role(suite.grade(), "student")
    assert Report.model_validate_json(view.to_json()) == view


# -- every field -----------------------------------------------------------------------------------------------------


class Shown(Enum):
    """What readers who do not see everything get of a field."""

    AS_IS = auto()
    CUT = auto()  # some of it, or not always
    BLANK = auto()


AS_IS, CUT, BLANK = Shown.AS_IS, Shown.CUT, Shown.BLANK

FIELDS = {
    "schema": AS_IS,
    "submission.id": AS_IS,
    "submission.unit": AS_IS,
    "submission.course": AS_IS,
    "submission.student": AS_IS,
    "submission.received_at": AS_IS,
    "submission.digest": AS_IS,
    "verdict": AS_IS,
    "score": AS_IS,
    "weights.course_tests": AS_IS,
    "weights.mutation": AS_IS,
    "reasons[].code": AS_IS,
    "reasons[].message": AS_IS,  # the same words for everyone, made of names in the files, outcomes and limits
    "next_step": AS_IS,  # likewise
    "feedback": AS_IS,
    "by_hand": AS_IS,
    "deps[].id": AS_IS,
    "deps[].title": AS_IS,
    "deps[].used": AS_IS,
    "deps[].offered": AS_IS,
    "intake[].action": AS_IS,
    "intake[].path": AS_IS,
    "intake[].message": AS_IS,
    "contract.ok": AS_IS,
    "contract.problems[].code": AS_IS,
    "contract.problems[].file": AS_IS,
    "contract.problems[].line": AS_IS,
    "contract.problems[].message": AS_IS,
    "course_tests.passed": AS_IS,  # on the student's own unit, as all of course_tests and the oracle
    "course_tests.total": AS_IS,
    "course_tests.next": AS_IS,
    "course_tests.tests[].id": AS_IS,
    "course_tests.tests[].kind": AS_IS,
    "course_tests.tests[].outcome": AS_IS,
    "course_tests.tests[].seconds": AS_IS,
    "course_tests.tests[].message": AS_IS,
    "course_tests.tests[].where": AS_IS,
    "course_tests.tests[].why": AS_IS,
    "course_tests.tests[].chapter": AS_IS,
    "course_tests.tests[].cause.code": AS_IS,
    "course_tests.tests[].cause.message": AS_IS,
    "course_tests.tests[].cause.limit": AS_IS,
    "course_tests.tests[].cause.seen": AS_IS,
    "course_tests.tests[].cause.unit": AS_IS,
    "course_tests.tests[].compared": AS_IS,
    "oracle.status": AS_IS,
    "oracle.cases": AS_IS,
    "oracle.agreed": AS_IS,
    "oracle.seed": AS_IS,
    "oracle.worst": AS_IS,
    "oracle.disagreements[].case": AS_IS,
    "oracle.disagreements[].message": AS_IS,
    "oracle.disagreements[].cause.code": AS_IS,
    "oracle.disagreements[].cause.message": AS_IS,
    "oracle.disagreements[].cause.limit": AS_IS,
    "oracle.disagreements[].cause.seen": AS_IS,
    "oracle.disagreements[].cause.unit": AS_IS,
    "student_tests.total": CUT,  # of those that are shown
    "student_tests.own_code_ok": AS_IS,
    "student_tests.tests[].id": AS_IS,  # of those that stand in the files
    "student_tests.tests[].file": AS_IS,
    "student_tests.tests[].line": AS_IS,
    "student_tests.tests[].correct_runs.passed": AS_IS,  # of valid tests, and of three invalid ones
    "student_tests.tests[].correct_runs.total": AS_IS,
    "student_tests.tests[].correct_runs": CUT,
    "student_tests.tests[].kills[]": CUT,  # none if the grade is void
    "student_tests.tests[].flaky": CUT,
    "student_tests.tests[].own_code": AS_IS,
    "student_tests.tests[].valid": CUT,
    "student_tests.tests[].message": AS_IS,  # said on the student's own unit
    "student_tests.tests[].rejection": BLANK,
    "student_tests.tests[].advice": CUT,
    "student_tests.tests[].denies": CUT,
    "student_tests.tests[].cause.code": AS_IS,  # on the student's own unit
    "student_tests.tests[].cause.message": AS_IS,
    "student_tests.tests[].cause.limit": AS_IS,
    "student_tests.tests[].cause.seen": AS_IS,
    "student_tests.tests[].cause.unit": AS_IS,
    "student_tests.baselines.correct": BLANK,
    "student_tests.baselines.own.variant": AS_IS,
    "student_tests.baselines.own.ending": AS_IS,
    "student_tests.baselines.own.passed": AS_IS,
    "student_tests.baselines.own.failed": AS_IS,
    "student_tests.baselines.own.skipped": AS_IS,
    "student_tests.baselines.own.cause.code": AS_IS,
    "student_tests.baselines.own.cause.message": AS_IS,
    "student_tests.baselines.own.cause.limit": AS_IS,
    "student_tests.baselines.own.cause.seen": AS_IS,
    "student_tests.baselines.own.cause.unit": AS_IS,
    "student_tests.baselines.broken": BLANK,
    "student_tests.baselines.cpu_seconds": BLANK,
    "student_tests.baselines.budget_cpu_seconds": AS_IS,
    "mutation.score": AS_IS,  # outcomes, as the statuses that all these are counted from
    "mutation.score_if_valid": AS_IS,
    "mutation.threshold": AS_IS,
    "mutation.killed": AS_IS,
    "mutation.total": AS_IS,
    "mutation.required_ok": AS_IS,
    "mutation.passed": AS_IS,
    "mutation.matrix": AS_IS,
    "mutation.remembered": AS_IS,
    "mutation.mutants[].id": AS_IS,
    "mutation.mutants[].tier": AS_IS,
    "mutation.mutants[].required": AS_IS,
    "mutation.mutants[].status": AS_IS,
    "mutation.mutants[].killed_by[]": CUT,  # names in the files, in their order; none if the grade is void
    "mutation.mutants[].hint": AS_IS,
    "mutation.mutants[].hints_total": AS_IS,
    "mutation.mutants[].hints": BLANK,  # unlocked one at a time
    "mutation.mutants[].category": AS_IS,
    "mutation.mutants[].cause.code": AS_IS,
    "mutation.mutants[].cause.message": CUT,  # without the signal
    "mutation.mutants[].cause.limit": AS_IS,
    "mutation.mutants[].cause.seen": BLANK,
    "mutation.mutants[].cause.unit": AS_IS,
    "mutation.mutants[].detail": BLANK,
    "mutation.wheats": BLANK,
    "mutation.categories[].category": AS_IS,
    "mutation.categories[].killed": AS_IS,
    "mutation.categories[].total": AS_IS,
    "mutation.kill_matrix": CUT,  # null if the grade is void
    "mutation.kill_matrix.correct": BLANK,
    "mutation.kill_matrix.mutants[]": AS_IS,
    "mutation.kill_matrix.tests[].id": AS_IS,  # of those that are shown
    "mutation.kill_matrix.tests[].correct": BLANK,
    "mutation.kill_matrix.tests[].mutants": CUT,  # what `kills` and the statuses say
    "environment.sandbox": AS_IS,
    "environment.isolated": AS_IS,
    "environment.image_id": AS_IS,
    "environment.python": AS_IS,
    "environment.numpy": AS_IS,
    "environment.pytest": AS_IS,
    "environment.hypothesis": AS_IS,
    "environment.libraries": AS_IS,
    "environment.grader": AS_IS,
    "environment.limits{}": AS_IS,
    "timing.queued": AS_IS,
    "timing.phases{}": CUT,  # those on the student's own unit
    "timing.total": CUT,  # to the second
    "integrity.seed": AS_IS,
    "integrity.digests{}": AS_IS,
    "cached.graded_at": AS_IS,
}


def leaves(annotation: Any, path: str = "") -> Iterator[str]:
    """The path of every field of a model that holds no further fields."""
    origin, inner = get_origin(annotation), [each for each in get_args(annotation) if each is not type(None)]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            yield from leaves(field.annotation, f"{path}.{field.alias or name}".lstrip("."))
    elif origin is Annotated:
        yield from leaves(inner[0], path)
    elif origin is tuple:
        yield from leaves(inner[0], f"{path}[]")
    elif origin is dict:
        yield f"{path}{{}}"
    elif origin is not None and origin is not Literal:
        for each in inner:
            yield from leaves(each, path)
    else:
        yield path


def treatment(path: str) -> list[Shown]:
    """How a field is treated, and how the parts it belongs to are."""
    parts = [path[:end] for end in range(1, len(path) + 1)]
    return [FIELDS[part] for part in parts if part in FIELDS and (part == path or path[len(part)] in ".[{")]


def test_every_field_of_a_report_is_in_the_table() -> None:
    found = set(leaves(Report))
    assert [path for path in sorted(found) if not treatment(path)] == []
    assert [path for path in FIELDS if not any(leaf.startswith(path) for leaf in found)] == []


def both(path: str, whole: Any, view: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every part of a view with its path and what stands there in the whole report. Rows are matched by their id."""
    yield path, whole, view
    if isinstance(view, dict) and isinstance(whole, dict):
        for key in view:
            yield from both(f"{path}.{key}".lstrip("."), whole.get(key), view[key])
    elif isinstance(view, list) and isinstance(whole, list):
        rows = {row["id"]: row for row in whole if isinstance(row, dict) and "id" in row}
        for place, row in enumerate(view):
            match = rows[row["id"]] if rows else whole[place] if place < len(whole) else None
            yield from both(f"{path}[]", match, row)


def telling_reports(unit: Unit) -> Iterator[Report]:
    """Reports that together hold something in every field that is not as it is for everyone."""
    for suite in leaky_suites(unit):
        yield suite.grade()
    made = f"test_{SECRET}"
    yield SimulatedSuite(unit, TESTS, {"m1": dict.fromkeys((*TESTS, made), Act.FAIL)}, made_beside=(made,)).grade()
    acts = {"m1": {"test_a": Act.FAIL}, "w01": dict.fromkeys(TESTS[1:], Act.FAIL), "own": {"test_b": Act.CRASH}}
    yield SimulatedSuite(unit, TESTS, acts).grade()
    yield SimulatedSuite(unit, TESTS, {"own": {"test_b": Act.HANG}, "course": {"test_zero": Act.HANG}}).grade()


@pytest.fixture(scope="module")
def pairs(small: Unit) -> list[tuple[Report, dict[str, Any], dict[str, Any]]]:
    found = []
    for report in telling_reports(small):
        timing = report.timing.model_copy(update={"phases": {"course_tests": 1.25, "mutants": 3.5}, "total": 4.75})
        timed = report.model_copy(update={"timing": timing})
        found.append((timed, json.loads(timed.to_json()), json.loads(for_role(timed, "student").to_json())))
    return found


def test_every_field_is_shown_as_the_table_says(pairs: list[tuple[Report, dict[str, Any], dict[str, Any]]]) -> None:
    differing: set[str] = set()
    for _, whole, view in pairs:
        for path, full, seen in both("", whole, view):
            differing |= {path} if full != seen else set()
            name = next((each for each in (path, f"{path}[]", f"{path}{{}}") if each in FIELDS), None)
            if name is None:
                continue
            if FIELDS[name] is AS_IS and full is not None:
                assert seen == full, path
            if FIELDS[name] is BLANK:
                assert seen in (None, "", []), path
    hidden = {path.removesuffix("[]").removesuffix("{}") for path, shown in FIELDS.items() if shown is not AS_IS}
    assert hidden <= differing, "a field that is never cut is as it is"


def test_roles_are_teachers_or_students(pairs: list[tuple[Report, dict[str, Any], dict[str, Any]]]) -> None:
    for report, _, _ in pairs:
        assert all(for_role(report, role) is report for role in ("teacher", "admin"))
        student = for_role(report, "student")
        assert all(for_role(report, role) == student for role in ("lms", "", "Teacher", "anyone"))
        assert for_role(student, "student") == student


# -- what a suite could choose ---------------------------------------------------------------------------------------


def view_of(suite: SimulatedSuite) -> Report:
    report = suite.grade()
    timing = report.timing.model_copy(update={"total": 0.0})
    return for_role(report.model_copy(update={"timing": timing}), "student")


VOID = {"w01": dict.fromkeys(TESTS, Act.FAIL)}
GOOD = {"m1": dict.fromkeys(TESTS, Act.FAIL), "own": {"test_b": Act.FAIL}}


@pytest.mark.parametrize("acts", [GOOD, VOID, GOOD | VOID], ids=["good", "void", "both"])
def test_order_and_time_and_names_made_beside_other_code_change_nothing(small: Unit, acts: Any) -> None:
    plain = view_of(SimulatedSuite(small, TESTS, acts))
    assert view_of(SimulatedSuite(small, TESTS, acts, backwards_beside=True)) == plain
    assert view_of(SimulatedSuite(small, TESTS, acts, seconds_beside=0.002)) == plain
    for count in (1, 7):
        made = tuple(f"test_{n}" for n in range(count))
        assert view_of(SimulatedSuite(small, TESTS, acts, made_beside=made)) == plain


def test_which_further_tests_reject_correct_code_is_not_told(small: Unit) -> None:
    def view(*further: str) -> Report:
        acts = {"w01": dict.fromkeys((*TESTS[:3], *further), Act.FAIL), "own": dict.fromkeys(TESTS, Act.FAIL)}
        return view_of(SimulatedSuite(small, (*TESTS, "test_f"), acts))

    assert view("test_d") == view("test_e") == view("test_f")


def test_how_many_tests_are_too_many_is_not_told(small: Unit) -> None:
    views = [
        view_of(SimulatedSuite(small, TESTS, made_beside=tuple(f"test_{n}" for n in range(count))))
        for count in (300, 1000)
    ]
    assert views[0] == views[1] and "too_many_tests" in {reason.code for reason in views[0].reasons}


def test_a_test_that_is_absent_beside_other_code_is_shown_like_one_that_says_nothing_there(small: Unit) -> None:
    void = dict.fromkeys(TESTS[:3], Act.FAIL)
    present, absent = (
        view_of(SimulatedSuite(small, TESTS, {"reference": void | {"test_e": act}, "own": {"test_e": Act.ABSENT}}))
        for act in (Act.SKIP, Act.ABSENT)
    )
    assert present == absent


def test_how_often_a_test_was_skipped_on_correct_code_is_not_told(small: Unit) -> None:
    once, often = (
        view_of(SimulatedSuite(small, TESTS, {variant: {"test_a": Act.SKIP} for variant in skipped}))
        for skipped in (("w01",), ("w01", "w02", "reference"))
    )
    assert once == often


@pytest.mark.parametrize("act", [Act.PASS, Act.SKIP, Act.XFAIL, Act.ABSENT])
def test_the_matrix_tells_no_more_of_a_mutant_than_which_tests_caught_it(small: Unit, act: Act) -> None:
    acts = {"m1": {"test_a": Act.FAIL, "test_b": act}, "m2": {"test_c": act, "test_d": Act.HANG}}
    view = view_of(SimulatedSuite(small, TESTS, acts))
    assert view.mutation is not None and view.mutation.kill_matrix is not None and view.student_tests is not None
    rows = {row.id: row.mutants for row in view.mutation.kill_matrix.tests}
    assert rows == dict.fromkeys((test.id for test in view.student_tests.tests), "??") | {
        "test_mine.py::test_a": "K?",
        "test_mine.py::test_d": "?T",
    }


def test_an_inherited_test_is_told_with_its_own_file(small: Unit) -> None:
    suite = SimulatedSuite(small, ("TestMine::test_a",), {"w01": {"TestMine::test_a": Act.FAIL}})
    base = File("base.py", b"class Base:\n    def test_a(self): ...\n")
    mine = File("test_mine.py", b"from base import Base\n\nclass TestMine(Base): ...\n")
    report = for_role(suite.grade(submission=replace(suite.submission(), tests=(base, mine))), "student")
    assert report.student_tests is not None
    [test] = report.student_tests.tests
    assert (test.id, test.file, test.line, test.valid) == ("test_mine.py::TestMine::test_a", "base.py", 2, False)
    assert "line 2 of base.py" in test.advice and "TestMine::test_a" in report.reasons[0].message


def test_text_of_a_view_counts_what_it_shows(small: Unit) -> None:
    suite = SimulatedSuite(small, TESTS, made_beside=("test_made",))
    assert f"Your tests: {len(TESTS)}\n" in render(for_role(suite.grade(), "student"))
    assert "test_made" in render(suite.grade())
