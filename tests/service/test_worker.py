import threading
from contextlib import suppress

import pytest

from grader.errors import OracleMissing
from grader.grade import Progress
from grader.report import Verdict
from sandbox.errors import EngineFailed, EngineUnavailable, SandboxError
from service import database, fleet, runs, tables, worker
from service.queue import Stopping
from service.runs import Worker
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


def test_a_run_whose_worker_died_three_times_is_quarantined(bench):
    submission = bench.submitted("ada")
    [run] = bench.queue.submitted
    for number in range(3):
        with database.writing(bench.engine) as connection:
            assert runs.claim(connection, run, f"worker-{number}", bench.clock()) is not None
            assert runs.hand_back(connection, f"worker-{number}", bench.clock(), died=True) == [run]
    grading = Failing()
    bench.worker(grading).grade_run(run)
    assert grading.attempts == 0
    assert status_of(bench, submission) == "error"
    assert bench.get(f"/v1/submissions/{submission}", "ada").json()["quarantined"]
    [row] = bench.get("/v1/units/L0.0/submissions", "teacher").json()["submissions"]
    assert (row["quarantined"], row["attempts"]) == (True, 4)
    assert bench.get(f"/v1/submissions/{submission}/report").json()["verdict"] == "grader_error"


def test_three_failures_that_we_saw_are_no_reason_for_quarantine(bench):
    bench.submitted("ada")
    bench.graded(bench.worker(Failing(*[ValueError()] * 3)))
    assert [(row.status, row.quarantined) for row in bench.rows(tables.runs)] == [("error", False)]


@pytest.mark.parametrize("lack", [EngineUnavailable("no Docker Engine answers"), OracleMissing("no torch")])
def test_a_sandbox_or_an_oracle_that_is_not_there_costs_no_attempt(bench, lack):
    submission = bench.submitted("ada")
    grading = Failing(*[lack] * 5)
    bench.graded(bench.worker(grading))
    assert grading.attempts == 6
    assert status_of(bench, submission) == "done"
    assert bench.rows(tables.runs)[0].attempts == 1


def test_the_grading_is_told_whether_more_waits_than_it_is_at(bench):
    for student in ("ada", "bob", "eve"):
        bench.submitted(student)
    grading = FakeGrading(lambda unit, submission, about, progress: samples.report(about, unit.id))
    worker = bench.worker(grading)
    bench.graded(worker)
    assert grading.expected == [True, True, False]
    worker.more_waits()
    assert grading.expected[-1]


def test_a_run_delivered_twice_has_one_result(bench):
    bench.submitted("ada")
    [run] = bench.queue.submitted
    grading = Failing()
    both = bench.worker(grading)
    both.grade_run(run)
    both.grade_run(run)
    assert grading.attempts == 1
    assert len(bench.rows(tables.results)) == 1


def test_a_result_that_comes_after_another_worker_took_over_is_dropped(bench):
    submission = bench.submitted("ada")
    [run] = bench.queue.submitted

    def slow(unit, submission, about, progress):
        with database.writing(bench.engine) as connection:
            runs.hand_back(connection, "worker-1", bench.clock(), died=True)
        bench.worker(FakeGrading(samples.passes), "worker-2").grade_run(run)
        progress(Progress("mutants", 1, 2))
        return samples.report(about, unit.id, verdict=Verdict.FAIL, score=0.0)

    bench.worker(FakeGrading(slow)).grade_run(run)
    assert bench.get(f"/v1/submissions/{submission}/report").json()["verdict"] == "pass"
    assert len(bench.rows(tables.results)) == 1
    assert len(bench.rows(tables.outcomes)) == 3
    assert [(row.worker, row.attempts, row.phase) for row in bench.rows(tables.runs)] == [
        ("worker-2", 2, "course_tests")
    ]


def test_a_result_that_comes_while_another_worker_is_at_it_is_dropped(bench):
    bench.submitted("ada")
    [run] = bench.queue.submitted

    def slow(unit, submission, about, progress):
        with database.writing(bench.engine) as connection:
            runs.hand_back(connection, "worker-1", bench.clock(), died=True)
            assert runs.claim(connection, run, "worker-2", bench.clock()) is not None
        return samples.report(about, unit.id)

    bench.worker(FakeGrading(slow)).grade_run(run)
    assert [(row.status, row.worker) for row in bench.rows(tables.runs)] == [("running", "worker-2")]
    assert bench.rows(tables.results) == []


def test_what_another_worker_is_at_is_not_begun(bench):
    bench.submitted("ada")
    [run] = bench.queue.submitted
    grading = Failing()

    def slow(unit, submission, about, progress):
        bench.worker(grading, "worker-2").grade_run(run)
        return samples.report(about, unit.id)

    bench.worker(FakeGrading(slow)).grade_run(run)
    assert grading.attempts == 0
    assert [row.attempts for row in bench.rows(tables.runs)] == [1]


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
    """Delivers once what it is told to deliver again; says what it was asked."""

    def __init__(self, **known):
        self.calls = []
        self.has = known
        self.threads = []

    def start(self, handler):
        self.calls.append("start")
        self.handler = handler

    def known(self):
        return dict(self.has)

    def deliver_again(self, runs):
        if runs:
            self.calls.append(("again", dict(runs)))
        for run in runs:
            self.has[run] = None
            if "stop" not in self.calls:
                self.threads.append(threading.Thread(target=self.deliver, args=(run,)))
                self.threads[-1].start()

    def deliver(self, run):
        with suppress(Stopping):
            self.handler(run)
        self.has.pop(run, None)

    def forget_ended(self, before):
        self.calls.append("forget")
        return 0

    def stop(self, grace_seconds):
        self.calls.append("stop")

    def close(self):
        for thread in self.threads:
            thread.join(30)
        self.calls.append("close")


class Running:
    """A worker that runs in a thread of this process."""

    def __init__(self, bench, engine, grading, name="worker-1"):
        self.failure = None
        self.worker = bench.worker(grading, name)
        self.stop = bench.stop
        self.thread = threading.Thread(target=self.run, args=(engine,), daemon=True)
        self.thread.start()

    def run(self, engine):
        try:
            self.worker.run(engine)
        except Exception as error:
            self.failure = error

    def until(self, reached):
        for _ in range(3000):
            if reached():
                return
            self.thread.join(0.01)
        raise AssertionError("waited in vain")

    def end(self):
        self.stop.set()
        self.thread.join(30)
        assert not self.thread.is_alive()


@pytest.fixture
def start():
    started = []

    def start(*arguments):
        started.append(Running(*arguments))
        return started[-1]

    yield start
    for running in started:
        running.end()


@pytest.fixture
def quick(make_bench):
    """A bench whose workers look around every tenth of a second or so."""
    return make_bench(worker_ttl_seconds=0.6)


class UntilStopped(FakeGrading):
    """Grades until it is told to stop, as a sandbox does; passes at once when `free` is set."""

    def __init__(self):
        self.free = threading.Event()
        self.begun = threading.Event()
        super().__init__(samples.passes)

    def grade(self, unit, submission, *, about, progress, stop, anew=False):
        stop.when_told(self.free.set)
        self.begun.set()
        assert self.free.wait(30)
        if stop.told:
            raise SandboxError("the session was cancelled")
        return samples.report(about, unit.id)


def test_a_worker_grades_what_the_engine_does_not_know_and_leaves_cleanly(quick, start):
    submission = quick.submitted("ada")
    [run] = quick.queue.submitted
    engine, grading = Engine(), FakeGrading(samples.passes)
    running = start(quick, engine, grading)
    running.until(lambda: status_of(quick, submission) == "done")
    running.until(lambda: quick.get("/readyz").status_code == 200)
    running.end()
    assert engine.calls == ["start", ("again", {run: 1000}), "forget", "stop", "close"]
    assert grading.closed
    assert quick.rows(tables.workers) == []


def test_a_worker_completes_the_facts_of_reports_from_before(quick, start):
    quick.submitted("ada")
    quick.graded()
    with database.writing(quick.engine) as connection:
        for table in (tables.progress, tables.facts):
            connection.execute(table.delete())
    running = start(quick, Engine(), FakeGrading(samples.passes))
    running.until(lambda: len(quick.rows(tables.progress)) == 1)
    assert [row.student for row in quick.rows(tables.facts)] == ["ada"]


def test_a_worker_leaves_alone_what_waits_or_was_given_to_a_live_one(quick, start):
    for student in ("ada", "bob", "cy"):
        quick.submitted(student)
    waits, given, lost = quick.queue.submitted
    with database.writing(quick.engine) as connection:
        runs.beat(connection, Worker("worker-2", 1, True, ()), quick.clock())
    engine = Engine(**{waits: None, given: "worker-2", lost: "worker-3"})
    running = start(quick, engine, FakeGrading(samples.passes))
    running.until(lambda: len(quick.rows(tables.results)) == 1)
    running.end()
    assert ("again", {lost: 1000}) in engine.calls


def test_a_silent_worker_is_taken_over_and_its_run_graded(quick, start):
    submission = quick.submitted("ada")
    [run] = quick.queue.submitted
    with database.writing(quick.engine) as connection:
        runs.beat(connection, Worker("dead", 1, True, ()), quick.clock())
        runs.claim(connection, run, "dead", quick.clock())
    running = start(quick, Engine(**{run: "dead"}), FakeGrading(samples.passes))
    running.until(lambda: status_of(quick, submission) == "done")
    assert [row.id for row in quick.rows(tables.workers)] == ["worker-1"]
    running.end()
    assert [(row.worker, row.attempts) for row in quick.rows(tables.runs)] == [("worker-1", 2)]


@pytest.mark.parametrize("step_seconds", [-86_400, 86_400])
def test_a_step_of_the_clock_makes_nobody_look_dead(make_bench, step_seconds, start):
    """Beats that go on are signs of life, whatever time they give."""
    bench = make_bench(worker_ttl_seconds=3.0)
    bench.submitted("ada")
    [run] = bench.queue.submitted
    live = Worker("live", 1, True, ())
    with database.writing(bench.engine) as connection:
        runs.beat(connection, live, bench.clock())
        runs.claim(connection, run, "live", bench.clock())
    running = start(bench, Engine(**{run: "live"}), FakeGrading(samples.passes))
    written, stepped = set(), False
    while len(written) < 3:  # beats of the other worker since the step, and after each it looks around
        assert running.thread.is_alive()
        bench.clock.now += 0.1
        with database.writing(bench.engine) as connection:
            assert runs.beat(connection, live, bench.clock(), first=False)
            beat_at = fleet.beats(connection).get("worker-1")
        if beat_at is not None and not stepped:
            bench.clock.now, stepped = bench.clock.now + step_seconds, True
        elif beat_at is not None:
            written.add(beat_at)
        running.thread.join(0.05)
    assert [(row.status, row.worker) for row in bench.rows(tables.runs)] == [("running", "live")]
    running.end()


def test_a_worker_that_was_taken_over_stops_its_runs_and_ends(quick, start):
    submission = quick.submitted("ada")
    grading = UntilStopped()
    engine = Engine()
    running = start(quick, engine, grading)
    assert grading.begun.wait(30)
    with database.writing(quick.engine) as connection:
        beat_at = fleet.beats(connection)["worker-1"]
        assert not fleet.take_over(connection, "worker-1", beat_at - 1, quick.clock())
        assert fleet.take_over(connection, "worker-1", beat_at, quick.clock())
    running.thread.join(30)
    assert isinstance(running.failure, worker.Fenced)
    assert grading.free.is_set()
    assert "stop" not in engine.calls  # nothing is waited for
    assert status_of(quick, submission) == "queued"
    assert [row.attempts for row in quick.rows(tables.runs)] == [1]
    assert quick.rows(tables.workers) == []


def test_a_running_run_is_cancelled_within_a_moment(quick, start):
    submission = quick.submitted("ada")
    grading = UntilStopped()
    running = start(quick, Engine(), grading)
    assert grading.begun.wait(30)
    answer = quick.client.request("DELETE", f"/v1/submissions/{submission}", headers=quick.auth("ada"))
    assert (answer.status_code, answer.json()["status"]) == (202, "running")
    running.until(lambda: status_of(quick, submission) == "cancelled")
    again = quick.client.request("DELETE", f"/v1/submissions/{submission}", headers=quick.auth("ada"))
    assert (again.status_code, again.json()["status"]) == (200, "cancelled")
    running.end()
    assert quick.rows(tables.results) == []


def test_a_run_that_is_done_before_it_could_be_cancelled_keeps_its_report(bench):
    submission = bench.submitted("ada")

    def answer(unit, taken, about, progress):
        bench.client.request("DELETE", f"/v1/submissions/{submission}", headers=bench.auth("ada"))
        return samples.report(about, unit.id)

    bench.graded(bench.worker(FakeGrading(answer)))
    assert status_of(bench, submission) == "done"


def test_what_was_to_be_cancelled_when_its_worker_died_is_not_graded_again(bench):
    submission = bench.submitted("ada")
    [run] = bench.queue.submitted
    with database.writing(bench.engine) as connection:
        runs.claim(connection, run, "dead", bench.clock())
        assert runs.ask_to_stop(connection, run, bench.clock())
        assert runs.hand_back(connection, "dead", bench.clock(), died=True) == []
    assert status_of(bench, submission) == "cancelled"


def test_a_stopping_worker_hands_its_run_back_without_using_an_attempt(quick, start):
    submission = quick.submitted("ada")
    [run] = quick.queue.submitted
    grading, engine = UntilStopped(), Engine()
    running = start(quick, engine, grading)
    assert grading.begun.wait(30)
    engine.has[run] = "worker-1"
    running.end()
    assert status_of(quick, submission) == "queued"
    assert [row.attempts for row in quick.rows(tables.runs)] == [0]
    assert engine.calls[-2:] == [("again", {run: 1000}), "close"]
    assert quick.rows(tables.workers) == []


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
    while said.partition(": ")[2] not in bench.get("/readyz").text:
        thread.join(0.01)
    assert bench.get("/readyz").status_code == 503
    bench.stop.set()
    thread.join(30)
    assert engine.calls == ["close"]
