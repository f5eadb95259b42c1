from dataclasses import replace

from grader import conclude, reading
from grader.plan import Policy
from grader.report import Report
from grader.text import render
from grader.unit import Unit
from grader.wording import KILLS_NOTHING, NO_TESTS
from tests.grader.simulated import ABOUT, Act, SimulatedSuite, a_unit


def report(unit: Unit) -> Report:
    unit = a_unit(unit, ["m1", "m2"], required=["m1"])
    acts = {"own": {"test_b": Act.FAIL}, "m2": {"test_a": Act.HANG}, "w01": {"test_c": Act.FAIL}}
    return SimulatedSuite(unit, ("test_a", "test_b", "test_c"), acts).grade()


def test_verdict_next_step_what_is_right_and_reasons_come_first(unit: Unit) -> None:
    lines = render(report(unit)).splitlines()
    assert lines[0] == "Z1: FAIL   score 0.50"
    assert lines[1].startswith("Next: Correct your test first.")
    assert lines[2] == "Right already: the contract; 2 of 2 course tests."
    assert lines[3].startswith("  - ")


def test_what_a_void_grade_would_be_is_said_with_its_zero(unit: Unit) -> None:
    """And nothing that was caught is said to be right; without such a test it is."""
    lines = [line.strip() for line in render(report(unit)).splitlines()]
    place = next(place for place, line in enumerate(lines) if line.startswith("Mutants: 1 of 2 caught, score 0.00"))
    assert lines[place + 1] == (
        "A test rejects correct code, so nothing that was caught counts. Without such tests the score would be 0.50."
    )
    text = render(SimulatedSuite(a_unit(unit, ["m1"]), ("test_a",), {"m1": {"test_a": Act.FAIL}}).grade())
    assert "1 of 1 mutants caught by your tests." in text and "nothing that was caught" not in text


def test_what_did_not_pass_comes_before_the_grade_of_the_tests_and_that_before_details(unit: Unit) -> None:
    acts = {"course": {"test_zero": Act.FAIL}, "w01": {"test_b": Act.FAIL}}
    text = render(SimulatedSuite(a_unit(unit, ["m1"]), ("test_a", "test_b"), acts).grade())
    heads = ["Next: ", "FAIL test_zero", "Read section 2.", "MEND", "Mutants: ", "Hint: m1: hint m1", "ok   test_twice"]
    places = [text.index(head) for head in heads]
    assert places == sorted(places)


def test_the_course_test_to_do_next_is_the_first_of_those_that_did_not_pass(unit: Unit) -> None:
    made = a_unit(unit, ["m1"])
    twice, zero = made.course_tests
    acts = {"course": {"test_zero": Act.FAIL}}
    pointing = replace(
        made, course_tests=(replace(twice, catches=("m1",)), replace(zero, catches=("m1",), shows=("m1",)))
    )
    report = SimulatedSuite(pointing, ("test_a",), acts).grade()
    assert report.course_tests is not None
    both = tuple(test.model_copy(update={"outcome": "failed"}) for test in report.course_tests.tests)
    whole = report.model_copy(update={"course_tests": report.course_tests.model_copy(update={"tests": both})})
    assert [test.id for test in reading.missed_course_tests(whole)] == ["test_zero", "test_twice"]


def test_nothing_is_right_already_of_which_there_is_none(unit: Unit) -> None:
    acts = {"course": {"test_twice": Act.FAIL, "test_zero": Act.FAIL}}
    assert reading.passed(SimulatedSuite(a_unit(unit, ["m1"]), (), acts).grade()) == ("the contract",)


def test_a_reason_that_is_the_next_step_is_not_said_twice(unit: Unit) -> None:
    text = render(SimulatedSuite(a_unit(unit, ["m1"]), ()).grade())
    assert text.count(NO_TESTS) == 1


def test_every_test_and_mutant_has_a_line(unit: Unit) -> None:
    text = render(report(unit))
    for line in (
        "ok   test_twice",
        "MEND test_mine.py::test_c",
        "FAIL test_mine.py::test_b",
        "survived *m1",
        "timeout   m2",
    ):
        assert line in text


def test_what_was_caught_is_told_by_category(unit: Unit) -> None:
    report_text = render(report(unit))
    assert "  1 of 2 in scale\n" in report_text


def test_a_test_that_catches_nothing_is_told_so_and_what_it_says_on_the_own_code_too(unit: Unit) -> None:
    acts = {"m1": {"test_a": Act.FAIL}, "own": {"test_b": Act.FAIL}}
    text = render(SimulatedSuite(a_unit(unit, ["m1"]), ("test_a", "test_b"), acts).grade())
    assert f"         {KILLS_NOTHING}\n         on your own code: " in text


def test_a_test_that_does_not_count_is_not_said_to_catch_nothing(unit: Unit) -> None:
    suite = SimulatedSuite(a_unit(unit, ["m1"]), ("test_a", "test_b"), {"*": {"test_b": Act.SKIP}})
    lines = [line for line in render(suite.grade()).splitlines() if "test_mine.py::" in line and "catches" in line]
    assert [line.split()[1] for line in lines] == ["test_mine.py::test_a"]


def test_nothing_from_outside_moves_a_terminals_cursor(unit: Unit) -> None:
    evil = "\x1b[2J\r\u202eabc\x07"
    rejected = conclude.rejected("Z1", ABOUT, "link", evil)
    whole = report(unit)
    assert whole.course_tests is not None
    tests = tuple(test.model_copy(update={"message": evil, "outcome": "failed"}) for test in whole.course_tests.tests)
    failing = whole.model_copy(update={"course_tests": whole.course_tests.model_copy(update={"tests": tests})})
    for text in (render(rejected), render(failing)):
        assert all(char.isprintable() or char == "\n" for char in text)


def test_a_rejected_upload_is_a_few_lines() -> None:
    text = render(conclude.rejected("Z1", ABOUT, "link", "This is a link."))
    assert text.startswith("Z1: REJECTED\nNext: This is a link.\n")


def test_where_runs_stop_at_the_first_kill_tests_behind_it_are_not_said_to_catch_nothing(unit: Unit) -> None:
    suite = SimulatedSuite(a_unit(unit, ["m1"]), ("test_a", "test_b"), {"m1": {"test_a": Act.FAIL, "test_b": Act.FAIL}})
    text = render(suite.grade(policy=Policy(full_matrix_cpu_seconds=0.0)))
    assert "test_mine.py::test_a   first to catch 1" in text and "   catches" not in text
    assert "the others were not run" in text and "the others were not run" not in render(suite.grade())
