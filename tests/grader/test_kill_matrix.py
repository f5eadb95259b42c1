"""What each test did on each version of the unit, as rows of characters."""

import pytest

from grader.plan import Policy
from grader.report import KillMatrixPart, Report
from grader.unit import Unit
from grader.views import for_role
from grader.wording import KILLS_NOTHING
from sandbox.records import EndingKind
from tests.grader.simulated import Act, SimulatedSuite, a_unit

TESTS = ("test_a", "test_b", "test_c")


@pytest.fixture(scope="module")
def small(unit: Unit) -> Unit:
    return a_unit(unit, ["m1", "m2", "m3"], wheats=5)


def matrix(report: Report) -> KillMatrixPart:
    assert report.mutation is not None and report.mutation.kill_matrix is not None
    return report.mutation.kill_matrix


def rows(report: Report) -> dict[str, tuple[str, str]]:
    return {row.id.removeprefix("test_mine.py::"): (row.correct, row.mutants) for row in matrix(report).tests}


def test_a_row_says_what_a_test_did_on_every_correct_run_and_every_mutant(small: Unit) -> None:
    acts = {"m1": {"test_a": Act.FAIL, "test_b": Act.ERROR}, "m2": {"test_a": Act.SKIP, "test_c": Act.ABSENT}}
    report = SimulatedSuite(small, TESTS, acts).grade()
    assert matrix(report).mutants == ("m1", "m2", "m3")
    assert matrix(report).correct == ("reference",) * 3 + ("w01", "w02", "w03", "w04", "w05")
    assert rows(report) == {
        "test_a": ("........", "KS."),
        "test_b": ("........", "K.."),
        "test_c": ("........", ".-."),
    }


def test_a_failure_that_does_not_count_is_no_kill(small: Unit) -> None:
    acts = {"w02": {"test_b": Act.FAIL}, "w03": {"test_c": Act.ERROR}, "m1": dict.fromkeys(TESTS, Act.FAIL)}
    assert rows(SimulatedSuite(small, TESTS, acts).grade()) == {
        "test_a": ("........", "K.."),
        "test_b": ("....F...", "F.."),
        "test_c": (".....E..", "F.."),
    }


def test_time_over_is_told_where_it_caught_the_mutant_and_what_lies_behind_was_not_run(small: Unit) -> None:
    acts = {"m1": {"test_b": Act.HANG}, "m2": {"test_b": Act.CRASH}}
    found = rows(SimulatedSuite(small, TESTS, acts).grade())
    assert [found[name][1][:2] for name in TESTS] == ["..", "TE", "--"]


def test_a_file_that_does_not_load_has_a_row_of_its_own(small: Unit) -> None:
    report = SimulatedSuite(small, TESTS, file_errors=frozenset({"m2"})).grade()
    assert rows(report)["test_mine.py"] == ("........", ".K.")
    assert rows(report)["test_a"] == ("........", ".-.")


def test_where_runs_stop_at_their_first_failure_the_rest_was_not_run(small: Unit) -> None:
    acts = {"m1": {"test_b": Act.FAIL}}
    report = SimulatedSuite(small, TESTS, acts).grade(policy=Policy(full_matrix_cpu_seconds=0.0))
    assert report.mutation is not None and report.mutation.matrix == "first_kill"
    assert [cells[1] for cells in rows(report).values()] == ["...", "K..", "-.."]


@pytest.mark.parametrize("kind", [EndingKind.EARLY_EXIT, EndingKind.DEADLINE])
def test_without_runs_on_mutants_there_is_no_matrix(small: Unit, kind: EndingKind) -> None:
    report = SimulatedSuite(small, TESTS, ends_at_import={"reference": kind}).grade()
    assert report.mutation is not None
    assert (report.mutation.matrix, report.mutation.kill_matrix) == ("none", None)


def test_kills_of_the_tests_and_kills_of_the_matrix_are_one_table(small: Unit) -> None:
    acts = {"m1": {"test_a": Act.FAIL}, "m2": {"test_b": Act.HANG}, "m3": dict.fromkeys(TESTS, Act.ERROR)}
    whole = SimulatedSuite(small, TESTS, acts).grade()
    for report in (whole, for_role(whole, "student")):
        assert report.student_tests is not None
        for test, row in zip(report.student_tests.tests, matrix(report).tests, strict=True):
            caught = [mid for mid, cell in zip(matrix(report).mutants, row.mutants, strict=True) if cell in "KT"]
            assert (row.id, caught) == (test.id, list(test.kills))


def advice(report: Report) -> list[str]:
    assert report.student_tests is not None
    return [test.advice for test in report.student_tests.tests]


def test_a_valid_test_that_fails_on_no_mutant_is_told_so_and_what_to_do(small: Unit) -> None:
    acts = {"m1": {"test_a": Act.FAIL}, "*": {"test_c": Act.SKIP}}
    report = SimulatedSuite(small, TESTS, acts).grade()
    assert advice(report) == ["", KILLS_NOTHING, ""]
    assert advice(for_role(report, "student")) == ["", KILLS_NOTHING, ""]


def test_nothing_is_said_against_a_test_that_was_not_held_against_every_mutant(small: Unit) -> None:
    acts = {"m1": {"test_a": Act.FAIL}}
    early = SimulatedSuite(small, TESTS, acts).grade(policy=Policy(full_matrix_cpu_seconds=0.0))
    assert advice(early) == ["", "", ""]


def test_nothing_is_said_against_a_test_while_mutants_are_left_for_want_of_time(small: Unit) -> None:
    suite = SimulatedSuite(small, TESTS, ends_at_import={"m3": EndingKind.DEADLINE})
    report = suite.grade()
    assert report.mutation is not None and report.mutation.matrix == "full"
    assert advice(report) == ["", "", ""]
