"""What is concluded from what was seen: reasons, advice, the next step."""

from dataclasses import replace

import pytest

from grader import conclude, wording
from grader.report import Report, Verdict
from grader.submission import IntakeNote
from grader.unit import Erratum, Freedom, Unit
from sandbox.errors import EngineFailed
from sandbox.records import File
from tests.grader.simulated import ABOUT, OWN_WORDS, Act, SimulatedSuite, a_unit, codes

TESTS = ("test_a", "test_b", "test_c", "test_d", "test_e")


@pytest.fixture
def small(unit: Unit) -> Unit:
    return a_unit(unit, ["m1", "m2"], required=["m2"])


def test_a_rejected_upload_has_its_reason_and_no_score() -> None:
    report = conclude.rejected("Z1", ABOUT, "link", "This is a link.")
    assert (report.verdict, report.score, codes(report)) == (Verdict.REJECTED, None, ["link"])
    assert report.next_step == "This is a link."


def test_a_failure_of_ours_costs_nothing_and_tells_no_detail_of_ours() -> None:
    report = conclude.failed("Z1", ABOUT, "digest", EngineFailed("secret address of a machine"))
    assert (report.verdict, report.score, codes(report)) == (Verdict.GRADER_ERROR, None, ["grader_error"])
    assert "secret" not in report.to_json() and "no attempt" in report.reasons[0].message


def next_step(suite: SimulatedSuite) -> str:
    return suite.grade().next_step


def test_the_next_step_is_the_first_thing_to_mend(small: Unit) -> None:
    """Course tests, then tests that reject correct code, then own tests, then required mutants, then others."""
    killed = {"m1": {"test_a": Act.FAIL}, "m2": {"test_a": Act.FAIL}}
    own = {"own": {"test_b": Act.FAIL}}
    strict = {"w01": {"test_c": Act.FAIL}}
    course = {"course": {"test_zero": Act.FAIL}}
    assert "test_zero" in next_step(SimulatedSuite(small, TESTS, {**own, **strict, **course}))
    assert "test_c" in next_step(SimulatedSuite(small, TESTS, {**own, **strict}))
    assert "test_b" in next_step(SimulatedSuite(small, TESTS, own))
    assert next_step(SimulatedSuite(small, TESTS)) == wording.next_mutant("m2", "hint m2")
    assert next_step(SimulatedSuite(small, TESTS, {"m2": {"test_a": Act.FAIL}})) == wording.next_mutant("m1", "hint m1")
    assert next_step(SimulatedSuite(small, TESTS, killed)) == wording.NEXT_PASSED


def test_the_next_step_is_concrete_though_the_first_hint_is_vague(small: Unit) -> None:
    vague = replace(small, mutants=tuple(replace(each, ordered=("vague", each.public)) for each in small.mutants))
    report = SimulatedSuite(vague, TESTS).grade()
    assert report.next_step == wording.next_mutant("m2", "hint m2")
    assert report.mutation is not None and {mutant.hint for mutant in report.mutation.mutants} == {"vague"}


def test_a_test_without_a_name_that_rejects_correct_code_is_mended_before_any_mutant(small: Unit) -> None:
    made = SimulatedSuite(small, (*TESTS, "test_made"), {"w01": {"test_made": Act.FAIL}})
    step = made.grade(submission=SimulatedSuite(small, TESTS).submission()).next_step
    assert wording.UNNAMED_TEST in step and "test_made" not in step
    both = SimulatedSuite(small, ("test_made", *TESTS), {"w01": {"test_made": Act.FAIL, "test_c": Act.FAIL}})
    assert "test_c" in both.grade(submission=SimulatedSuite(small, TESTS).submission()).next_step


def test_a_void_mutant_is_explained_when_nothing_else_is_left(small: Unit) -> None:
    acts = {"m1": {"test_a": Act.FAIL}, "m2": {"test_a": Act.EXIT}}
    assert "m2" in next_step(SimulatedSuite(small, TESTS, acts)) and "os._exit" in next_step(
        SimulatedSuite(small, TESTS, acts)
    )


def test_the_threshold_is_met_by_reaching_it_exactly(unit: Unit) -> None:
    unit = a_unit(unit, [f"m{n}" for n in range(5)])
    acts = {f"m{n}": {"test_a": Act.FAIL} for n in range(4)}
    mutation = SimulatedSuite(unit, TESTS, acts).grade().mutation
    assert mutation is not None and (mutation.score, mutation.passed) == (unit.threshold, True)


def test_a_missed_required_mutant_fails_whatever_the_score(unit: Unit) -> None:
    unit = a_unit(unit, [f"m{n}" for n in range(10)], required=["m9"])
    report = SimulatedSuite(unit, TESTS, {f"m{n}": {"test_a": Act.FAIL} for n in range(9)}).grade()
    assert report.mutation is not None
    assert (report.mutation.score, report.mutation.required_ok, report.mutation.passed) == (0.9, False, False)
    assert codes(report) == ["required_survived"] and "m9" in report.reasons[0].message


def test_only_survivors_are_hinted(small: Unit) -> None:
    report = SimulatedSuite(small, TESTS, {"m1": {"test_a": Act.FAIL}}).grade()
    assert report.mutation is not None
    assert [mutant.hint for mutant in report.mutation.mutants] == ["", "hint m2"]


def test_three_tests_that_reject_correct_code_are_named_and_the_others_not_counted(small: Unit) -> None:
    report = SimulatedSuite(small, TESTS, {"w01": dict.fromkeys(TESTS, Act.FAIL)}).grade()
    message = report.reasons[0].message
    assert "test_c and others reject" in message and "test_d" not in message


def test_strict_and_flaky_tests_share_the_three_names(small: Unit) -> None:
    flaky = {"reference": dict.fromkeys(TESTS[2:], Act.FLAKY)}
    report = SimulatedSuite(small, TESTS, {"w01": dict.fromkeys(TESTS[:2], Act.FAIL), **flaky}).grade()
    named = [test for test in TESTS if any(f"::{test}" in reason.message for reason in report.reasons)]
    assert codes(report)[:2] == ["rejects_correct_code", "flaky_tests"]
    assert named == list(TESTS[:3])


def test_a_flaky_test_that_fails_on_own_code_has_found_nothing_there(small: Unit) -> None:
    flaky = {"reference": {"test_a": Act.FLAKY}}
    reports = [SimulatedSuite(small, TESTS, {**flaky, "own": {"test_a": act}}).grade() for act in (Act.PASS, Act.FAIL)]
    assert codes(reports[0]) == codes(reports[1])
    assert "flaky_tests" in codes(reports[0]) and "own_tests" not in codes(reports[0])


def strict_report(small: Unit, printed: str) -> Report:
    suite = SimulatedSuite(replace(small, errata=(Erratum("2.1", "2.0", "A slip."),)), ("test_a",))
    source = f"def test_a():\n    assert double(1) == {printed}\n".encode()
    submission = replace(suite.submission(), tests=(File(suite.file, source),))
    acts = {name: {"test_a": Act.FAIL} for name in ("reference", "w01", "w02", "w03", "w04", "w05", "own")}
    return replace(suite, acts=acts).grade(submission=submission)


def test_a_copied_misprint_is_pointed_out_with_the_right_number(small: Unit) -> None:
    report = strict_report(small, "2.1")
    assert "2.1" in report.next_step and "2.0" in report.next_step and OWN_WORDS in report.next_step
    assert "misprint" not in strict_report(small, "2.2").next_step


def test_what_intake_did_stands_in_the_report(small: Unit) -> None:
    suite = SimulatedSuite(small, TESTS)
    submission = replace(suite.submission(), notes=(IntakeNote("dropped", "a.pyc", "compiled"),))
    [entry] = suite.grade(submission=submission).intake
    assert (entry.action, entry.path, entry.message) == ("dropped", "a.pyc", "compiled")


def test_digests_follow_what_they_are_of(small: Unit) -> None:
    suite = SimulatedSuite(small, TESTS)
    sent = suite.submission()
    [path] = sent.files
    other = replace(sent, files={path: sent.files[path] + b"\n"})
    first, second = (suite.grade(submission=each).integrity for each in (sent, other))
    assert first is not None and second is not None
    assert first.digests["submission"] != second.digests["submission"]
    assert first.digests["tests"] == second.digests["tests"]


def test_categories_add_up_to_the_whole(small: Unit) -> None:
    mutation = SimulatedSuite(small, TESTS, {"m1": {"test_a": Act.FAIL}}).grade().mutation
    assert mutation is not None
    assert sum(part.killed for part in mutation.categories) == mutation.killed
    assert sum(part.total for part in mutation.categories) == mutation.total


def test_wheats_name_the_tests_that_reject_them(small: Unit) -> None:
    mutation = SimulatedSuite(small, TESTS, {"w02": {"test_b": Act.FAIL}}).grade().mutation
    assert mutation is not None
    assert {wheat.id: wheat.rejected_by for wheat in mutation.wheats if not wheat.accepted} == {
        "w02": ("test_mine.py::test_b",)
    }


def test_a_strict_test_is_told_the_freedom_whose_wheats_are_most_nearly_those_it_rejects(small: Unit) -> None:
    wide = Freedom("wide", "Many things are free.", ("w01", "w02", "w03"))
    narrow = Freedom("narrow", "One thing is free.", ("w01",))
    unit = replace(small, freedoms=(wide, narrow))

    def told(*rejected: str) -> str:
        acts = {wheat: {"test_a": Act.FAIL} for wheat in rejected}
        report = SimulatedSuite(unit, TESTS, acts).grade()
        assert report.student_tests is not None
        return report.student_tests.tests[0].denies

    assert told("w01") == narrow.says
    assert told("w01", "w03") == wide.says
    assert told("w04") == ""


SIGNED = """\
def equal(a, b): return (a == b).all()

def test_a(monkeypatch): monkeypatch.setattr(1, 2, 3)

def test_b(): assert equal(1, 2)

def test_c(): hasattr(object(), "_rng")

def test_d(): ...
"""


def test_a_test_that_fails_on_everything_is_not_told_of_a_freedom(small: Unit) -> None:
    """Whatever its words are: something else is wrong with it, and what it said on the own code says what."""
    freedom = Freedom("private", "private is free", ("w05",), ("_[a-z]*",))
    acts = {each: {"test_c": Act.FAIL} for each in ("reference", "w05", "own")}
    suite = SimulatedSuite(replace(small, freedoms=(freedom,)), TESTS, acts)
    sent = replace(suite.submission(), tests=(File("test_mine.py", SIGNED.encode()),))
    part = suite.grade(submission=sent).student_tests
    assert part is not None
    [found] = [each for each in part.tests if each.id == "test_mine.py::test_c"]
    assert found.valid is False and "private is free" not in found.advice + found.denies
    assert OWN_WORDS in found.advice


def test_a_test_that_fails_on_everything_is_told_of_a_freedom_that_is_denied_so(small: Unit) -> None:
    """Only by its words, and beside what it said on the own code."""
    acts = {each: {"test_c": Act.FAIL} for each in ("reference", "w05", "own")}
    for signs, told in ((("_[a-z]*",), True), (("nothing_of_the_sort",), False)):
        freedom = Freedom("weights", "weights are given", ("w05",), signs, everywhere=True)
        suite = SimulatedSuite(replace(small, freedoms=(freedom,)), TESTS, acts)
        sent = replace(suite.submission(), tests=(File("test_mine.py", SIGNED.encode()),))
        part = suite.grade(submission=sent).student_tests
        assert part is not None
        [found] = [each for each in part.tests if each.id == "test_mine.py::test_c"]
        assert ("may ask for more than the contract does: weights are given" in found.advice) is told
        assert OWN_WORDS in found.advice and not found.denies


@pytest.mark.parametrize(
    ("test", "rejected", "told"),
    [
        ("test_a", ("w01",), "calls"),
        ("test_b", ("w01",), "rounding"),  # by what it calls, although "calls" has fewer wheats
        ("test_b", ("w04",), ""),
        ("test_c", ("w01", "w02", "w03", "w04", "w05"), "private"),
        ("test_d", ("w01", "w02"), "calls"),  # no word says anything: the most nearly equal wheats
        ("test_b", ("reference", "w01"), "may rounding"),
        ("test_c", ("reference",), "may private"),
        ("test_d", ("reference", "w01"), ""),
    ],
)
def test_words_of_a_strict_test_point_to_the_freedom_it_denies(
    small: Unit, test: str, rejected: tuple[str, ...], told: str
) -> None:
    freedoms = (
        Freedom("calls", "calls is free", ("w01", "w02"), ("monkeypatch",)),
        Freedom("rounding", "rounding is free", ("w01", "w02", "w03"), ("==all",)),
        Freedom("private", "private is free", ("w05",), ("_[a-z]*",)),
    )
    suite = SimulatedSuite(replace(small, freedoms=freedoms), TESTS, {each: {test: Act.FAIL} for each in rejected})
    sent = replace(suite.submission(), tests=(File("test_mine.py", SIGNED.encode()),))
    part = suite.grade(submission=sent).student_tests
    assert part is not None
    [found] = [each for each in part.tests if each.id == f"test_mine.py::{test}"]
    said = told.removeprefix("may ")
    assert found.denies == (f"{said} is free" if told == said != "" else "")
    named = [freedom.id for freedom in freedoms if freedom.says in found.advice]
    assert named == ([said] if said else [])
    assert ("may ask for more" in found.advice) == told.startswith("may ")
