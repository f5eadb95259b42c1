"""How much a student is told: over every form and every route, at every moment, and as a teacher previews it."""

import io
import json
import zipfile

import pytest

from grader.formats import Format
from grader.report import Level, Reason, Verdict
from service.offerings import Moment
from service.worker import FakeGrading
from tests.service import samples

COURSE = "/v1/courses/default/units/L0.0"
NONE, COUNTS, CATEGORIES, NAMES, HINTS = Level
DAY = 86_400.0
HINT = "doubling"  # the first hint of s01


@pytest.fixture
def gives(bench):
    def gives(normal="hints", due_at=None, **moments):
        body = {"due_at": due_at, "feedback": {"normal": normal, **moments}}
        answer = bench.client.request("PUT", COURSE, headers=bench.auth("teacher"), json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return gives


def misses_a_mutant(unit, submission, about, progress):
    made = samples.report(about, unit.id, digest=submission.digest, verdict=Verdict.FAIL, score=0.75, survived=["s01"])
    return made.model_copy(update={"reasons": (Reason(code="required_survived", message="It misses s01."),)})


@pytest.fixture
def failing(bench):
    def failing(who="ada"):
        submission = bench.submitted(who)
        bench.graded(bench.worker(FakeGrading(misses_a_mutant)))
        return submission

    return failing


def report(bench, submission, who="ada", **query):
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    return bench.get(f"/v1/submissions/{submission}/report?{asked}", who)


def level(bench, submission, who="ada", **query):
    told = report(bench, submission, who, **query).json()["feedback"]
    return Level(told["level"]) if told is not None else HINTS


@pytest.mark.both_databases
def test_what_is_asked_is_stored_shown_to_students_and_as_before_without_a_word(bench, gives):
    usual = {"normal": "hints", "past_limit": None, "after_deadline": None, "after_passing": None, "attempts": None}
    assert bench.get(COURSE).json()["feedback"] == usual
    wanted = {"past_limit": "none", "after_deadline": "names", "after_passing": "hints", "attempts": 7}
    assert gives("counts", **wanted)["feedback"] == {"normal": "counts", **wanted}
    assert bench.get(COURSE).json()["feedback"] == {"normal": "counts", **wanted}
    assert bench.get("/v1/units/L0.0", "ada").json()["assignment"]["feedback"] == {"normal": "counts", **wanted}


@pytest.mark.parametrize("asked", list(Level))
@pytest.mark.parametrize("form", list(Format))
def test_no_form_tells_a_student_or_a_platform_more_than_the_level(bench, gives, failing, form, asked):
    submission = failing()
    gives(asked.value)
    for who in ("ada", "lms"):
        text = report(bench, submission, who, format=form).text
        assert HINT not in text or asked.tells(HINTS)
        for name in ("test_doubles", "test_a.py::test_twice", '"m01"', "Mutant m01"):
            assert name not in text or asked.tells(NAMES), (form, asked, name)
    for who in ("teacher", "admin"):
        text = report(bench, submission, who, format=form).text
        assert "s01" in text


@pytest.mark.parametrize("asked", list(Level))
def test_no_route_tells_a_student_more_than_the_level(bench, gives, failing, asked):
    submission = failing()
    gives(asked.value)
    here = f"/v1/submissions/{submission}"
    [run] = bench.get(f"{here}/runs", "ada").json()["runs"]
    assert (run["mutation_score"] is not None) is asked.tells(COUNTS)
    assert run["score"] == 0.75
    of_run = bench.get(f"{here}/runs/{run['id']}/report", "ada").json()
    assert of_run == report(bench, submission).json()
    assert HINT not in bench.get(here, "ada").text
    for answer in (
        bench.get(f"{here}/hints", "ada"),
        bench.client.request("POST", f"{here}/hints", headers=bench.auth("ada"), json={"mutant": "s01"}),
        bench.client.request("PUT", f"{here}/hints/s01/1/rating", headers=bench.auth("ada"), json={"helpful": True}),
    ):
        assert (answer.status_code == 200) is asked.tells(HINTS), answer.text
        assert answer.status_code == 200 or answer.json()["code"] == "feedback_withheld"
    assert bench.get(f"{here}/hints", "teacher").status_code == 200
    answered = bench.post("ada", "?wait=5")  # repeats the report from before, in the answer to the POST
    bench.graded()
    assert HINT not in answered.text or asked.tells(HINTS)


@pytest.mark.parametrize("asked", [NONE, CATEGORIES, NAMES])
def test_an_export_holds_what_the_student_is_told(bench, gives, failing, asked):
    submission = failing()
    gives(asked.value)
    archive = zipfile.ZipFile(io.BytesIO(bench.get("/v1/students/ada").content))
    rows = json.loads(archive.read("student.json"))
    [run] = rows["submissions"][0]["runs"]
    assert json.loads(archive.read(run["result"]["report"])) == report(bench, submission).json()
    assert bool(run["result"]["outcomes"]) is asked.tells(NAMES)
    assert ("mutation_score" in run["result"]) is asked.tells(COUNTS)


# -- moments ---------------------------------------------------------------------------------------------------------


def test_another_level_holds_once_the_students_own_due_time_is_over(bench, gives, failing):
    gives("names", due_at="2027-02-01T00:00:00Z", after_deadline="none")
    ada, bob = failing("ada"), failing("bob")
    extension = {"due_at": "2027-03-01T00:00:00Z"}
    bench.client.request("PUT", f"{COURSE}/extensions/bob", headers=bench.auth("teacher"), json=extension)
    assert (level(bench, ada), level(bench, bob, "bob")) == (NAMES, NAMES)
    bench.clock.now += 30 * DAY
    assert (level(bench, ada), level(bench, bob, "bob")) == (NONE, NAMES)
    bench.clock.now += 30 * DAY
    assert (level(bench, ada), level(bench, bob, "bob")) == (NONE, NONE)


def test_another_level_holds_for_all_of_a_students_reports_once_one_has_passed(bench, gives, failing):
    gives("counts", after_passing="hints")
    first, other = failing("ada"), failing("bob")
    assert level(bench, first) is COUNTS
    bench.submitted("ada")
    bench.graded(bench.worker(FakeGrading(samples.passes)))
    assert (level(bench, first), level(bench, other, "bob")) == (HINTS, COUNTS)


def test_another_level_holds_for_what_is_sent_after_the_attempts_that_are_told_normally(bench, gives, failing):
    gives("names", past_limit="counts", attempts=2)
    sent = []
    for _ in range(4):
        sent.append(failing())
        bench.clock.now += 60
    assert [level(bench, each) for each in sent] == [NAMES, NAMES, COUNTS, COUNTS]
    more = {"extra_attempts": 1}
    bench.client.request("PUT", f"{COURSE}/extensions/ada", headers=bench.auth("teacher"), json=more)
    assert [level(bench, each) for each in sent] == [NAMES, NAMES, NAMES, COUNTS]


def test_a_moment_without_a_level_changes_nothing_and_passing_goes_before_the_deadline(bench, gives, failing):
    gives("names", due_at="2020-01-01T00:00:00Z")
    submission = failing()
    assert level(bench, submission) is NAMES
    gives("names", due_at="2020-01-01T00:00:00Z", after_deadline="counts", after_passing="hints")
    assert level(bench, submission) is COUNTS
    bench.submitted("ada")
    bench.graded()
    assert level(bench, submission) is HINTS


# -- the preview -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", list(Format))
def test_a_teacher_sees_a_report_exactly_as_the_student_does(bench, gives, failing, form):
    submission = failing()
    for asked in Level:
        gives(asked.value)
        for who in ("teacher", "admin"):
            preview = report(bench, submission, who, **{"as": "student", "format": form})
            assert preview.content == report(bench, submission, format=form).content


def test_a_teacher_sees_a_report_as_the_student_would_at_each_moment(bench, gives, failing):
    submission = failing()
    gives("hints", past_limit="names", after_deadline="counts", after_passing="none")
    found = {moment: level(bench, submission, "teacher", moment=moment.value) for moment in Moment}
    assert found == {
        Moment.NORMAL: HINTS,
        Moment.PAST_LIMIT: NAMES,
        Moment.AFTER_DEADLINE: COUNTS,
        Moment.AFTER_PASSING: NONE,
    }


def test_a_student_cannot_choose_the_moment(bench, gives, failing):
    submission = failing()
    gives("none", after_passing="hints")
    for who in ("ada", "lms"):
        answer = report(bench, submission, who, moment="after_passing")
        assert (answer.status_code, answer.json()["code"]) == (403, "role_missing")
    assert report(bench, submission, "ada", **{"as": "student"}).json() == report(bench, submission).json()
