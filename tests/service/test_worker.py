import threading

import pytest

from grader.errors import OracleMissing
from grader.grade import Progress
from grader.report import Verdict
from sandbox.errors import EngineFailed, EngineUnavailable
from service import database, runs, tables, worker
from service.queue import Stopping
from service.worker import FakeGrading
from tests.service import samples

pytestmark = pytest.mark.both_databases


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(worker, "FIRST_PAUSE_SECONDS", 0.01)


class Failing(FakeGrading):
    """Raises the given errors, one an attempt, and then passes."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.attempts = 0
        super().__init__(self._answer)

    def _answer(self, unit, submission, about, progress):
        self.attempts += 1
        if self.errors:
            raise self.errors.pop(0)
        return samples.report(about, unit.id)


def status_of(bench, submission):
    return bench.get(f"/v1/submissions/{submission}").json()["status"]


def test_the_grading_gets_what_intake_took_in(bench):
    seen = []

    def answer(unit, submission, about, progress):
        seen.append((unit, submission, about))
        return samples.report(about, unit.id)

    submission = bench.submitted("ada")
    bench.clock.now += 5
    bench.graded(bench.worker(FakeGrading(answer)))
    [(unit, taken, about)] = seen
    assert unit == bench.course.units["L0.0"]
    assert taken.files == {samples.PATH: samples.SOURCE}
    assert [(file.path, file.data) for file in taken.tests] == [("test_a.py", samples.TESTS)]
    assert (about.id, about.course, about.student, about.queued_seconds) == (submission, "default", "ada", 5.0)
    assert taken.digest == bench.rows(tables.submissions)[0].digest


@pytest.mark.parametrize("error", [EngineFailed("a container was lost"), ValueError("a mistake of ours")])
def test_a_failure_of_ours_is_tried_again_and_forgotten_when_it_passes(bench, error):
    submission = bench.submitted("ada")
    grading = Failing(error, error)
    bench.graded(bench.worker(grading))
    assert grading.attempts == 3
    assert status_of(bench, submission) == "done"
    assert bench.get(f"/v1/submissions/{submission}/report").json()["verdict"] == "pass"


def test_three_failures_of_ours_end_as_error_with_a_report_that_blames_nobody(bench):
    submission = bench.submitted("ada")
    grading = Failing(*[EngineFailed("secret path /srv/x")] * 9)
    bench.graded(bench.worker(grading))
    assert grading.attempts == 3
    assert status_of(bench, submission) == "error"
    answer = bench.get(f"/v1/submissions/{submission}/report", "ada")
    assert (answer.json()["verdict"], answer.json()["score"]) == ("grader_error", None)
    assert "secret path" not in answer.text


def test_a_run_whose_worker_died_three_times_is_not_tried_a_fourth_time(bench):
    submission = bench.submitted("ada")
    [run] = bench.queue.submitted
    for _ in range(3):
        with database.writing(bench.engine) as connection:
            assert runs.claim(connection, run, "worker-1", bench.clock()) is not None
    grading = Failing()
    bench.worker(grading).grade_run(run)
    assert grading.attempts == 0
    assert status_of(bench, submission) == "error"


@pytest.mark.parametrize("lack", [EngineUnavailable("no Docker Engine answers"), OracleMissing("no torch")])
def test_a_sandbox_or_an_oracle_that_is_not_there_costs_no_attempt(bench, lack):
    submission = bench.submitted("ada")
    grading = Failing(*[lack] * 5)
    bench.graded(bench.worker(grading))
    assert grading.attempts == 6
    assert status_of(bench, submission) == "done"
    assert bench.rows(tables.runs)[0].attempts == 1


def test_a_run_delivered_twice_has_one_result(bench):
    bench.submitted("ada")
    [run] = bench.queue.submitted
    grading = Failing()
    both = bench.worker(grading)
    both.grade_run(run)
    both.grade_run(run)
    assert grading.attempts == 1
    assert len(bench.rows(tables.results)) == 1


def test_a_late_second_result_is_dropped(bench):
    submission = bench.submitted("ada")
    [run] = bench.queue.submitted

    def slow(unit, submission, about, progress):
        bench.worker(FakeGrading(samples.passes)).grade_run(run)  # another worker is faster
        return samples.report(about, unit.id, verdict=Verdict.FAIL, score=0.0)

    bench.worker(FakeGrading(slow)).grade_run(run)
    assert bench.get(f"/v1/submissions/{submission}/report").json()["verdict"] == "pass"
    assert len(bench.rows(tables.results)) == 1
    assert len(bench.rows(tables.outcomes)) == 3


def test_a_cancelled_run_is_not_graded(bench):
    submission = bench.submitted("ada")
    bench.client.request("DELETE", f"/v1/submissions/{submission}", headers=bench.auth("ada"))
    grading = Failing()
    bench.graded(bench.worker(grading))
    assert grading.attempts == 0
    assert status_of(bench, submission) == "cancelled"
    assert bench.get(f"/v1/submissions/{submission}/report").status_code == 409


def test_progress_is_shown_while_a_run_is_graded(bench):
    submission = bench.submitted("ada")
    seen = []

    def answer(unit, taken, about, progress):
        progress(Progress("mutants", 3, 9))
        seen.append(bench.get(f"/v1/submissions/{submission}", "ada").json())
        return samples.report(about, unit.id)

    bench.graded(bench.worker(FakeGrading(answer)))
    assert seen[0]["status"] == "running"
    assert seen[0]["progress"] == {"phase": "mutants", "done": 3, "total": 9}
    assert seen[0]["position"] is None
    assert bench.get(f"/v1/submissions/{submission}", "ada").json()["progress"] is None


def test_a_stopping_worker_begins_nothing(bench):
    submission = bench.submitted("ada")
    bench.stop.set()
    with pytest.raises(Stopping):
        bench.graded()
    assert status_of(bench, submission) == "queued"


class Engine:
    """Delivers nothing by itself; says what it was asked."""

    def __init__(self):
        self.calls = []
        self.started = threading.Event()

    def start(self, handler):
        self.calls.append("start")
        self.started.set()

    def adopt(self, left):
        self.calls.append(("adopt", dict(left)))
        return []

    def stop(self, grace_seconds):
        self.calls.append("stop")


def test_a_worker_offers_the_engine_every_unfinished_run_and_leaves_cleanly(bench):
    bench.submitted("ada")
    [run] = bench.queue.submitted
    engine, grading = Engine(), FakeGrading(samples.passes)
    thread = threading.Thread(target=bench.worker(grading).run, args=(engine,))
    thread.start()
    assert engine.started.wait(30)
    while len(engine.calls) < 2:
        thread.join(0.01)
    assert bench.get("/readyz").status_code == 200
    bench.stop.set()
    thread.join(30)
    assert engine.calls == ["start", ("adopt", {run: 1000}), "stop"]
    assert grading.closed
    assert bench.rows(tables.workers) == []


@pytest.mark.parametrize(
    ("lack", "said"),
    [
        (EngineUnavailable("no Docker Engine answers; start one"), "sandbox: no Docker Engine answers; start one"),
        (OracleMissing("it needs the package torch; start one"), "oracle: it needs the package torch; start one"),
    ],
)
def test_a_worker_without_a_sandbox_or_an_oracle_says_so_and_takes_no_work(bench, lack, said):
    class Missing(FakeGrading):
        def open(self):
            raise lack

    engine = Engine()
    thread = threading.Thread(target=bench.worker(Missing(samples.passes)).run, args=(engine,))
    thread.start()
    while "start one" not in bench.get("/readyz").text:
        thread.join(0.01)
    answer = bench.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["missing"] == [said]
    bench.stop.set()
    thread.join(30)
    assert engine.calls == []
