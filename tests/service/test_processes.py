"""The service as real processes: killed, restarted, stopped. Graded by a fake, on a course of one small unit."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from service import accounts, database, tables
from service.processes import pass_over_what_lasts
from service.settings import Settings
from tests.service import samples
from tests.service.ports import free_port

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60.0


def until(reached: Callable[[], bool], what: str) -> None:
    """Wait for something that other processes do."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not reached():
        assert time.monotonic() < give_up_at, f"waited in vain for {what}"
        time.sleep(0.05)


class Processes:
    """Web and worker processes on one data directory."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.port = free_port()
        settings = Settings(data=data, course=ROOT / "course")
        database.migrate(settings)
        self.engine = database.open_engine(settings.url)
        self.secret = accounts.new_secret()
        with database.writing(self.engine) as connection:
            accounts.create(connection, secret=self.secret, role=accounts.Role.ADMIN, now=time.time())
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {self.secret}"},
            timeout=PATIENCE_SECONDS,
        )
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "AUTOGRADER_DATA": str(self.data),
            "AUTOGRADER_STOP_SECONDS": "1",
        }
        process = subprocess.Popen([sys.executable, "-m", *arguments], stdin=subprocess.PIPE, cwd=ROOT, env=environment)
        self._running.append(process)
        return process

    def web(self) -> subprocess.Popen[bytes]:
        """A web process that answers."""
        process = self.start("tests.service.fake_process", "web", str(self.port))
        until(self.answers, "the web process")
        return process

    def worker(self, seconds: float, kind: str = "embedded") -> subprocess.Popen[bytes]:
        return self.start("tests.service.fake_process", kind, str(seconds))

    def answers(self) -> bool:
        try:
            return self.client.get("/livez").status_code == 200
        except httpx.TransportError:
            return False

    def submit(self) -> str:
        answer = self.client.post("/v1/units/L0.0/submissions", files=samples.form()["files"])
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def status(self, submission: str) -> str:
        return str(self.client.get(f"/v1/submissions/{submission}").json()["status"])

    def attempts(self) -> list[str]:
        file = self.data / "attempts"
        return file.read_text().split() if file.exists() else []

    def rows(self, table: sa.Table) -> list[sa.Row[tuple[object, ...]]]:
        with database.reading(self.engine) as connection:
            return list(connection.execute(sa.select(table)))

    def close(self) -> None:
        for process in self._running:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
        self.client.close()
        self.engine.dispose()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.close()


def test_a_worker_killed_in_the_middle_of_a_job_leaves_it_to_the_next_one_and_one_result_comes_out(processes):
    worker = processes.worker(seconds=30)
    processes.web()
    submission = processes.submit()
    until(lambda: processes.attempts() == [submission], "the first attempt")
    worker.kill()
    worker.wait()
    assert processes.status(submission) == "running"
    processes.worker(seconds=0.1)
    until(lambda: processes.status(submission) == "done", "the second attempt")
    assert processes.attempts() == [submission, submission]
    assert len(processes.rows(tables.results)) == 1
    assert [row.attempts for row in processes.rows(tables.runs)] == [2]


def test_a_web_process_killed_after_its_202_loses_nothing(processes):
    web = processes.web()
    accepted = [processes.submit() for _ in range(3)]
    web.kill()
    web.wait()
    processes.worker(seconds=0.05)
    processes.web()
    until(lambda: len(processes.rows(tables.results)) == 3, "three results")
    assert [processes.status(submission) for submission in accepted] == ["done"] * 3
    assert sorted(processes.attempts()) == sorted(accepted)


@pytest.mark.full
def test_a_submission_that_kills_every_worker_ends_as_our_error_after_three_attempts(processes):
    processes.web()
    (processes.data / "broken").touch()
    submission = processes.submit()
    for attempt in range(1, 4):
        worker = processes.worker(seconds=0)
        assert worker.wait(PATIENCE_SECONDS) == -signal.SIGKILL
        assert len(processes.attempts()) == attempt
    processes.worker(seconds=0)
    until(lambda: processes.status(submission) == "error", "the end of the attempts")
    report = processes.client.get(f"/v1/submissions/{submission}/report").json()
    assert (report["verdict"], report["score"]) == ("grader_error", None)
    assert len(processes.attempts()) == 3


def test_a_worker_told_to_stop_hands_its_job_back_without_using_an_attempt(processes):
    worker = processes.worker(seconds=3600)
    processes.web()
    submission = processes.submit()
    until(lambda: processes.status(submission) == "running", "the first attempt")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_SECONDS) == 0  # although the fake does not let itself be interrupted
    assert processes.status(submission) == "queued"
    processes.worker(seconds=0.1)
    until(lambda: processes.status(submission) == "done", "the next attempt")
    assert [row.attempts for row in processes.rows(tables.runs)] == [1]


def test_an_idle_worker_stops_at_once_and_leaves_no_trace_of_itself(processes):
    worker = processes.worker(seconds=0)
    until(lambda: len(processes.rows(tables.workers)) == 1, "the worker's first beat")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_SECONDS) == 0
    assert processes.rows(tables.workers) == []


@pytest.mark.full
def test_two_embedded_workers_cannot_share_a_data_directory(processes):
    processes.worker(seconds=0)
    until(lambda: len(processes.rows(tables.workers)) == 1, "the worker's first beat")
    second = processes.worker(seconds=0)
    assert second.wait(PATIENCE_SECONDS) == 2


def test_the_service_answers_while_a_job_is_graded(processes):
    processes.worker(seconds=3600)
    processes.web()
    first, second = processes.submit(), processes.submit()
    until(lambda: processes.status(first) == "running", "the first job")
    answer = processes.client.get(f"/v1/submissions/{second}").json()
    assert (answer["status"], answer["position"]) == ("queued", 1)
    half = {"phase": "mutants", "done": 1, "total": 2}
    until(lambda: processes.client.get(f"/v1/submissions/{first}").json()["progress"] == half, "its progress")
    assert processes.client.delete(f"/v1/submissions/{second}").json()["status"] == "cancelled"


def test_processes_end_when_their_supervisor_is_gone(processes):
    worker, web = processes.worker(seconds=0), processes.web()
    until(lambda: len(processes.rows(tables.workers)) == 1, "the worker's first beat")
    for process in (web, worker):
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE_SECONDS) == 0


def test_what_lasts_is_passed_over_by_garbage_collection_and_what_comes_later_is_not() -> None:
    lasting = [samples.course()]
    pass_over_what_lasts()
    try:
        later = [lasting]
        looked_at = {id(each) for each in gc.get_objects()}
        assert id(lasting) not in looked_at
        assert id(later) in looked_at
    finally:
        gc.unfreeze()
