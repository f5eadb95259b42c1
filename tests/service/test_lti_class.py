"""A class comes in through a platform, submits and is graded, while the whole service is killed and started again: each
grade is in the platform, once, with the time at which it was handed in.

Web, worker and sender are processes of their own, and the platform an implementation that has nothing to do with ours.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from service import database, tables
from service.audit import By
from service.lti import platforms
from service.lti.platforms import Platform as Registered
from service.people import sessions
from service.settings import Settings, to_environment
from tests.service import samples
from tests.service.lti_platform import Browser, Person, loopback
from tests.service.ports import free_port

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 600.0
AT_ONCE = 4
KILLS = 2
SUBMIT = "/v1/units/L0.0/submissions"


def until(reached: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not reached():
        assert time.monotonic() < give_up_at, f"waited in vain for {what}"
        time.sleep(0.1)


class Service:
    """Web, worker and sender on one data directory, as `serve` keeps them running."""

    def __init__(self, data: Path) -> None:
        self.settings = Settings(data=data, course=data / "course", platform_hosts="127.0.0.1")
        database.migrate(self.settings)
        self.engine = database.open_engine(self.settings.url)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        environment = {**os.environ, **to_environment(self.settings), "AUTOGRADER_STOP_SECONDS": "1"}
        for words in (
            ("tests.service.fake_process", "web", str(self.port)),
            ("tests.service.fake_process", "embedded", "0.01"),
            ("service.cli", "sender", "--until-stdin-closes"),
        ):
            command = [sys.executable, "-m", *words]
            self.processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT, env=environment))
        until(self.answers, "the web process")

    def kill(self) -> None:
        """As a machine that loses its power."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
            assert process.stdin is not None
            process.stdin.close()
        self.processes.clear()

    def answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/livez").status_code == 200
        return False

    def rows(self, table):
        with database.reading(self.engine) as connection:
            return connection.execute(table.select()).all()


def holds_grade(row) -> bool:
    """Whether the platform holds a score, and not only that something waits."""
    return row.state == "delivered" and "FullyGraded" in row.told


@pytest.fixture
def service(tmp_path):
    service = Service(tmp_path)
    service.start()
    yield service
    service.kill()
    service.engine.dispose()


@pytest.mark.parametrize("size", [10, pytest.param(200, marks=pytest.mark.full)])
def test_after_kills_every_grade_is_in_the_platform_once_with_its_time(service, size):
    names = [f"s-{number}" for number in range(size)]
    accepted: dict[str, str] = {}
    lock = threading.Lock()
    with loopback(service.url) as platform:
        platform.add(Person("t-1", "Instructor", "Tess"), *(Person(name, "Learner", name.title()) for name in names))
        activity = platform.activity("attention", unit="L0.0")
        with database.writing(service.engine) as connection:
            by = By(None, time.time())
            registered = platforms.register(connection, Registered(id="", **platform.said()), by)
            platforms.allow(connection, registered.id, platform.deployment, by)
        teacher = Browser()
        teacher.submit(teacher.open(platform, "t-1", "attention"), course="new", unit="L0.0")
        teacher.close()
        [course] = [row.id for row in service.rows(tables.courses) if row.id != "default"]

        def take_part(name: str) -> None:
            """Launch and submit, again and again until it is taken in, as a person would whose page did not load."""
            give_up_at = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < give_up_at:
                with contextlib.suppress(httpx.TransportError):
                    browser = Browser()
                    try:
                        if browser.open(platform, name, "attention").status_code != 200:
                            continue
                        answer = browser.client.post(
                            service.url + SUBMIT,
                            data={"course": course},
                            files=samples.form()["files"],
                            headers={
                                "X-CSRF-Token": sessions.csrf_of(browser.client.cookies[sessions.NAME]),
                                "Idempotency-Key": name,
                            },
                        )
                    finally:
                        browser.close()
                    if answer.status_code == 202:
                        with lock:
                            accepted[name] = answer.json()["id"]
                        return
                time.sleep(0.2)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            futures = [pool.submit(take_part, name) for name in names]
            for number in range(1, KILLS + 1):
                until(lambda least=number * size // (KILLS + 1): len(accepted) >= least, "submissions")
                service.kill()
                service.start()
            for future in futures:
                future.result()
        assert set(accepted) == set(names)
        until(lambda: all(map(holds_grade, service.rows(tables.deliveries))), "the grades")

        received_at = {row.id: row.received_at for row in service.rows(tables.submissions)}
        assert set(received_at) == set(accepted.values())
        assert set(activity.scores) == set(names)
        for name, score in activity.scores.items():
            assert (score["gradingProgress"], score["scoreGiven"], score["scoreMaximum"]) == ("FullyGraded", 100, 100)
            handed_in = datetime.fromisoformat(score["submission"]["submittedAt"]).timestamp()
            assert handed_in == pytest.approx(received_at[accepted[name]], abs=0.001)
            graded = [each for each in activity.received if each["userId"] == name and "scoreGiven" in each]
            assert len({each["timestamp"] for each in graded}) == 1  # what was sent twice was one message
