"""What is replayed is what the sandbox would say now, as far as that can be told without one."""

import pytest

from grader.report import Outcome, Report, Verdict
from grader.unit import Course, Unit
from tests.browser.evening import all_works, evening, roster, stories
from tests.browser.replay import REPORTS, read
from tests.browser.works import BELIEFS, UNIT, Work
from tests.samples.loading import load


@pytest.fixture(scope="module")
def unit(real_course: Course) -> Unit:
    return real_course.units[UNIT]


@pytest.mark.parametrize("work", all_works(), ids=lambda work: work.name)
def test_recorded_report_is_of_the_unit_as_it_is(work: Work, unit: Unit) -> None:
    report = read(work)
    assert report.mutation and report.course_tests
    assert [mutant.id for mutant in report.mutation.mutants] == [mutant.id for mutant in unit.mutants]
    assert [test.id for test in report.course_tests.tests] == [test.name for test in unit.course_tests]
    assert Report.model_validate_json(report.to_json()) == report


@pytest.mark.parametrize("work", all_works(), ids=lambda work: work.name)
def test_recorded_report_ends_as_its_samples_are_known_to(work: Work, unit: Unit) -> None:
    report = read(work)
    assert report.course_tests
    fails = {test.id for test in report.course_tests.tests if test.outcome is not Outcome.PASSED}
    assert bool(fails) == bool(load(work.code).expected.fails)
    if work.code.startswith("correct") and work.suite.startswith("correct"):
        assert report.verdict is Verdict.PASS
    else:
        assert report.verdict is Verdict.FAIL or load(work.code).expected.verdict == "pass"


@pytest.mark.parametrize("belief", BELIEFS)
def test_a_belief_is_shared_by_code_and_tests_and_rejects_correct_code(belief: str) -> None:
    [work] = [work for work in all_works() if work.suite == belief]
    report = read(work)
    assert report.student_tests and report.mutation
    assert report.student_tests.own_code_ok
    assert any(test.rejection for test in report.student_tests.tests)
    assert report.mutation.void


def test_nothing_is_recorded_that_nobody_sends() -> None:
    assert {path.name for path in REPORTS.iterdir()} == {f"{work.name}.json.gz" for work in all_works()}


def test_everybody_of_the_roster_has_a_story() -> None:
    assert len(stories()) == len(roster()) == len({person.student for person in roster()}) == 30
    assert {sent.place for sent in evening()} == {place for place, story in enumerate(stories()) if story}
