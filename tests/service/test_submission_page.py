"""The page of a submission: what is read first, the arrays that a test compared, and what changed since another."""

import pytest

from grader.report import ComparedPart, Level
from service.worker import FakeGrading
from tests.service import samples
from tests.service.test_dashboard import EVIL, page

COMPARED = ComparedPart.model_validate(
    {
        "axes": ["head", "row", "column"],
        "shape": [2, 2, 2],
        "at": [1, 0, 1],
        "first": [0, 0],
        "expected": [[1, 0.125], [0.25, 0.75]],
        "actual": [[1, 0.875], [0.25, "nan"]],
    }
)


def submitted(bench, student, grading):
    """The path of a submission with files of its own, graded so, a minute after the one before."""
    bench.clock.now += 60
    files = [("twice", ("twice.py", samples.SOURCE)), ("tests", ("test_a.py", f"TIME = {bench.clock.now}\n".encode()))]
    answer = bench.client.request("POST", "/v1/units/L0.0/submissions", headers=bench.auth(student), files=files)
    bench.graded(bench.worker(FakeGrading(grading)))
    return f"/submissions/{answer.json()['id']}"


def tells(bench, level):
    body = {"due_at": None, "feedback": {"normal": level.value}}
    path = "/v1/courses/default/units/L0.0"
    assert bench.client.request("PUT", path, headers=bench.auth("teacher"), json=body).status_code == 200


@pytest.fixture
def differs(bench):
    """Bob's submission, whose course test compared arrays that differ."""
    return submitted(bench, "bob", samples.failing("The numbers differ.", COMPARED))


def test_what_to_do_is_read_before_what_did_not_pass_and_that_before_everything_else(bench, differs):
    seen = page(bench.browser("bob", default="student"), differs)
    heads = [
        "not passed",
        "Next",
        "Right already",
        "What did not pass",
        "Read section 1.",
        "2 of 2 caught",
        "Course tests",
    ]
    heads += ["Mutants one by one", "How it was graded", "Files"]
    places = [seen.text.index(head) for head in heads]
    assert places == sorted(places)


def test_arrays_that_differ_are_drawn_with_a_title_and_stand_in_tables(bench, differs):
    seen = page(bench.browser("bob", default="student"), differs)
    assert "[1, 0, 1] of the shape [2, 2, 2] (head 1; rows: row, columns: column):" in seen.text
    assert seen.tags.count("svg") >= 3 and seen.tags.count("title") >= 4 and seen.tags.count("desc") == 3
    assert "In the pictures stronger is larger" in seen.text
    assert "0.125" in seen.text and "0.875" in seen.text and "nan" in seen.text
    assert len(set(seen.ids)) == len(seen.ids)


@pytest.mark.parametrize("level", [Level.NONE, Level.COUNTS, Level.NAMES])
def test_where_hints_are_withheld_no_number_of_an_array_is_told(bench, differs, level):
    tells(bench, level)
    student = bench.browser("bob", default="student")
    seen = page(student, differs)
    for secret in ("0.125", "0.875", "The numbers differ.", "Read section"):
        assert secret not in seen.text
    assert "desc" not in seen.tags


def test_what_a_test_says_is_text_on_the_page(bench):
    path = submitted(bench, "bob", samples.failing(EVIL, COMPARED))
    seen = page(bench.browser("bob", default="student"), path)
    assert EVIL in seen.text and seen.tags.count("script") == 1


# -- what changed ------------------------------------------------------------------------------------------------------


@pytest.fixture
def three(bench):
    """Ada's submissions, the first first: the course test fails; then m01 survives; then everything passes."""
    gradings = (samples.failing(), samples.surviving("m01"), samples.passes)
    return [submitted(bench, "ada", grading) for grading in gradings]


def changes(seen):
    return seen.text.partition("What changed")[2].partition("Course tests")[0]


def test_a_submission_says_what_changed_since_the_one_before(bench, three):
    ada = bench.browser("ada", default="student")
    assert "What changed" not in page(ada, three[0]).text
    second, third = changes(page(ada, three[1])), changes(page(ada, three[2]))
    assert "newly passing test_doubles" in second and "no longer caught m01" in second
    assert "newly caught m01" in third and "test_doubles" not in third


def test_it_is_compared_with_any_other_of_the_history(bench, three):
    ada = bench.browser("ada", default="student")
    seen = page(ada, f"{three[2]}?since={three[0].rpartition('/')[2]}")
    assert three[0] in seen.links
    assert "newly passing test_doubles" in changes(seen) and "newly caught" not in changes(seen)


def test_nobody_compares_with_the_submission_of_another_student(bench, three):
    other = submitted(bench, "bob", samples.surviving("s01", "m01")).rpartition("/")[2]
    for browser in (bench.browser("ada", default="student"), bench.browser("tina", default="teacher")):
        seen = page(browser, f"{three[2]}?since={other}")
        assert "What changed" not in seen.text and other not in str(seen.links)


def test_where_names_are_withheld_no_change_is_named(bench, three):
    tells(bench, Level.COUNTS)
    said = changes(page(bench.browser("ada", default="student"), three[2]))
    assert "m01" not in said and "came out differently" in said


def test_one_that_is_under_way_can_be_looked_at_again_without_a_script(bench):
    waiting = f"/submissions/{bench.submitted('ada')}"
    seen = page(bench.browser("ada", default="student"), waiting)
    assert waiting in seen.links and "Look again" in seen.text


def test_where_runs_stop_at_the_first_catch_the_page_says_so(bench):
    def first_only(unit, submission, about, progress):
        report = samples.report(about, unit.id)
        return report.model_copy(update={"mutation": report.mutation.model_copy(update={"matrix": "first_kill"})})

    browser = bench.browser("ada", default="student")
    shown = page(browser, submitted(bench, "ada", first_only))
    assert "First to catch" in shown.text and "caught it first" in shown.text
    assert "First to catch" not in page(browser, submitted(bench, "ada", samples.passes)).text
