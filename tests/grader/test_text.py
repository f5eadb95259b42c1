from grader import conclude
from grader.report import Report
from grader.text import render
from grader.unit import Unit
from grader.wording import KILLS_NOTHING
from tests.grader.simulated import ABOUT, Act, SimulatedSuite, a_unit


def report(unit: Unit) -> Report:
    unit = a_unit(unit, ["m1", "m2"], required=["m1"])
    acts = {"own": {"test_b": Act.FAIL}, "m2": {"test_a": Act.HANG}, "w01": {"test_c": Act.FAIL}}
    return SimulatedSuite(unit, ("test_a", "test_b", "test_c"), acts).grade()


def test_verdict_reasons_and_next_step_come_first(unit: Unit) -> None:
    lines = render(report(unit)).splitlines()
    assert lines[0] == "Z1: FAIL   score 0.50"
    assert lines[1].startswith("  - ")
    assert any(line.startswith("Next: ") for line in lines[:8])


def test_every_test_and_mutant_has_a_line(unit: Unit) -> None:
    text = render(report(unit))
    for line in (
        "ok   test_twice",
        "BAD  test_mine.py::test_c",
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
    assert text.startswith("Z1: REJECTED\n  - This is a link.\n")
