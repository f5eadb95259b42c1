"""The same files under the same conditions are answered with the report there is, and nobody learns whose it was."""

import pytest

from grader.report import Cause, Reason, Verdict
from sandbox.errors import EngineFailed
from service import cache, database, runs, tables
from service.runs import Worker
from service.worker import FakeGrading
from tests.service import samples

pytestmark = pytest.mark.both_databases


class Counts(FakeGrading):
    """Grades with a new seed each time, and counts how often."""

    def __init__(self, conditions="conditions", verdict=Verdict.PASS, score=1.0):
        super().__init__(self.next, conditions)
        self.graded, self.verdict, self.score = 0, verdict, score

    def next(self, unit, submission, about, progress):
        self.graded += 1
        made = samples.report(about, unit.id, digest=submission.digest, verdict=self.verdict, score=self.score)
        integrity = made.integrity.model_copy(update={"seed": self.graded})
        return made.model_copy(update={"integrity": integrity})


def beat(bench, conditions="conditions", ready=True, name="w"):
    with database.writing(bench.engine) as connection:
        runs.beat(connection, Worker(name, 1, ready, (), conditions), bench.clock())


def report(bench, submission, who="admin"):
    return bench.get(f"/v1/submissions/{submission}/report", who).json()


def graded_first(bench, who="ada", grading=None, **fields):
    """Ada's submission, graded a minute ago, with a worker that is ready."""
    grading = grading or Counts()
    submission = bench.submitted(who, **fields)
    bench.graded(bench.worker(grading))
    bench.clock.now += 60
    beat(bench)
    return submission, grading


def test_the_same_files_are_answered_at_once_and_marked(bench):
    first, grading = graded_first(bench)
    graded_at = bench.clock() - 60
    answer = bench.post("bob")
    assert (answer.status_code, answer.json()["status"]) == (202, "done")
    assert bench.queue.submitted == []
    copied = report(bench, answer.json()["id"], "bob")
    assert copied["cached"] == {"graded_at": "2027-01-15T08:00:00Z"}
    assert graded_at == 1_800_000_000.0
    assert copied["submission"]["student"] == "bob"
    assert copied["submission"]["received_at"] == "2027-01-15T08:01:00Z"
    original = report(bench, first)
    assert original["cached"] is None
    for part in ("verdict", "score", "course_tests", "student_tests", "mutation", "integrity"):
        assert report(bench, answer.json()["id"])[part] == original[part]
    text = bench.get(f"/v1/submissions/{answer.json()['id']}/report?format=text", "bob").text
    assert "graded before, at 2027-01-15 08:00:00 UTC" in text
    assert grading.graded == 1


def test_who_waits_gets_the_report_at_once(bench):
    graded_first(bench)
    answer = bench.post("bob", "?wait=60")
    assert (answer.status_code, answer.json()["submission"]["student"]) == (200, "bob")
    assert answer.json()["cached"] is not None


def test_nothing_of_the_first_submission_shows_in_the_copy(bench):
    first, _ = graded_first(bench, "teacher", student="lovelace")
    copied = bench.post("bob", "?wait=60").text
    assert first not in copied
    assert "lovelace" not in copied
    [other] = [row for row in bench.rows(tables.submissions) if row.id == first]
    assert other.run not in copied and other.token not in copied


def test_a_duplicate_that_waits_behind_the_first_is_not_graded_again(bench):
    first, second = bench.submitted("ada"), bench.submitted("bob")
    grading = Counts()
    bench.graded(bench.worker(grading))
    assert grading.graded == 1
    assert report(bench, first)["cached"] is None
    assert report(bench, second)["cached"] is not None
    assert report(bench, second)["integrity"]["seed"] == report(bench, first)["integrity"]["seed"] == 1
    origin = {row.submission: row.cached_from for row in bench.rows(tables.runs)}
    assert origin[second] is not None and origin[first] is None
    assert len(bench.rows(tables.results)) == 2


def test_both_count_in_the_statistics(bench):
    graded_first(bench)
    bench.post("bob")
    stats = bench.get("/v1/units/L0.0/stats").json()
    assert (stats["submissions"], stats["verdicts"]["pass"]) == (2, 2)
    assert [test["graded"] for test in stats["course_tests"]] == [2]


def test_what_was_sent_again_uses_no_attempt_but_the_same_files_of_another_student_do(bench):
    graded_first(bench, "ada")
    bench.post("ada")
    bench.post("bob")
    bench.post("bob")
    counted = [
        (row.student, row.counted) for row in sorted(bench.rows(tables.submissions), key=lambda row: row.stored_at)
    ]
    assert sorted(counted) == [("ada", False), ("ada", True), ("bob", False), ("bob", True)]


def test_a_duplicate_graded_from_the_queue_uses_no_attempt_either(bench):
    first, second = bench.submitted("ada"), bench.submitted("ada")
    bench.graded(bench.worker(Counts()))
    assert {row.id: row.counted for row in bench.rows(tables.submissions)} == {first: True, second: False}


@pytest.mark.parametrize("what", ["files", "unit", "conditions", "no worker", "not ready", "off"])
def test_anything_else_is_graded(make_bench, what):
    course = samples.course(samples.unit(), samples.unit("L0.1"))
    bench = make_bench(course, cache=what != "off")
    graded_first(bench)
    unit, tests = ("L0.1" if what == "unit" else "L0.0"), samples.TESTS + b"# more\n" * (what == "files")
    if what == "conditions":
        beat(bench, "others")
    if what == "no worker":
        bench.clock.now += 3600
    if what == "not ready":
        beat(bench, ready=False)
    files = [("twice", ("twice.py", samples.SOURCE)), ("tests", ("test_a.py", tests))]
    path = f"/v1/units/{unit}/submissions"
    answer = bench.client.request("POST", path, headers=bench.auth("bob"), files=files)
    assert answer.json()["status"] == "queued"
    other = Counts("others" if what == "conditions" else "conditions")
    if what not in ("no worker", "not ready"):
        bench.graded(bench.worker(other))
        assert other.graded == 1


def test_a_failure_of_ours_is_not_kept(make_bench):
    bench = make_bench(max_attempts=1)

    def fails(*_):
        raise EngineFailed("the engine made no container")

    first = bench.submitted("ada")
    bench.graded(bench.worker(FakeGrading(fails, "conditions")))
    assert report(bench, first)["verdict"] == "grader_error"
    assert bench.rows(tables.cache) == []
    beat(bench)
    assert bench.post("bob").json()["status"] == "queued"


def test_a_cancelled_run_is_not_kept(bench):
    submission = bench.submitted("ada")
    bench.client.request("DELETE", f"/v1/submissions/{submission}", headers=bench.auth("ada"))
    bench.graded(bench.worker(Counts()))
    assert bench.rows(tables.cache) == []


def test_a_failed_submission_is_kept_like_one_that_passed(bench):
    graded_first(bench, grading=Counts(verdict=Verdict.FAIL, score=0.25))
    answer = bench.post("bob", "?wait=60").json()
    assert (answer["verdict"], answer["score"], answer["cached"] is not None) == ("fail", 0.25, True)


def test_a_regrade_is_always_graded_and_answers_from_then_on(bench):
    first, _ = graded_first(bench)
    grading = Counts()
    grading.graded = 10
    with database.writing(bench.engine) as connection:
        run = next(row for row in connection.execute(tables.runs.select()) if row.submission == first)
        again = {
            **run._mapping,
            "id": "again",
            "status": "queued",
            "kind": "regrade",
            "cache_key": None,
            "worker": None,
        }
        connection.execute(tables.runs.insert().values(again))
    bench.worker(grading).grade_run("again")
    assert grading.graded == 11
    bench.clock.now += 1
    assert bench.post("bob", "?wait=60").json()["integrity"]["seed"] == 11


def test_a_copy_is_never_copied_and_an_erased_original_is_forgotten(bench):
    first, _ = graded_first(bench)
    copied = bench.post("bob").json()["id"]
    assert [row.run for row in bench.rows(tables.cache)] == [
        row.run for row in bench.rows(tables.submissions) if row.id == first
    ]
    with database.writing(bench.engine) as connection:
        connection.execute(tables.submissions.delete().where(tables.submissions.c.id == first))
    assert bench.rows(tables.cache) == []
    assert bench.post("eve").json()["status"] == "queued"
    assert report(bench, copied)["verdict"] == "pass"


def test_what_waiting_decided_is_not_kept():
    made = samples.report(samples.about())
    assert cache.may_repeat(made)
    late = Cause(code="no_progress", message="")
    tests = made.course_tests.model_copy(
        update={"tests": tuple(test.model_copy(update={"cause": late}) for test in made.course_tests.tests)}
    )
    assert not cache.may_repeat(made.model_copy(update={"course_tests": tests}))
    slow = (Reason(code="out_of_time", message=""),)
    assert not cache.may_repeat(made.model_copy(update={"reasons": slow}))
    assert not cache.may_repeat(made.model_copy(update={"verdict": Verdict.GRADER_ERROR}))


def test_a_key_differs_with_each_of_its_parts():
    keys = {cache.key_of(*parts) for parts in (("g", "u", "s"), ("h", "u", "s"), ("g", "v", "s"), ("g", "u", "t"))}
    assert len(keys) == 4


def test_a_worker_says_its_conditions_unless_the_cache_is_off(make_bench):
    for wanted, said in ((True, "conditions"), (False, "")):
        bench = make_bench(cache=wanted)
        bench.worker(Counts())._beat(first=True)
        assert [row.grading for row in bench.rows(tables.workers)] == [said]
