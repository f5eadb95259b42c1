"""The service as real processes to be killed: `autograder web`, `worker` and `serve`, on SQLite or a PostgreSQL server.

They grade a small unit in the process sandbox (or in Docker), by the product's own code from the request to the report.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import sqlalchemy as sa

from service import accounts, database, dbos_queue
from service.settings import Settings
from service.tables import results, runs, submissions, workers
from tests.grader import small_course
from tests.service.ports import free_port
from tests.service.postgres import Postgres

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120.0
TESTS = """
from tinyllm.demo.double import Double

def test_doubles():
    for number in (0, 1, -2.5, {number}):
        assert Double()(number) == 2 * number
"""
SLOW_TESTS = """
import time
from tinyllm.demo.double import Double

def test_doubles():
    time.sleep({seconds})
    assert Double()(3) == 6 and {number} > 0
"""


def until(reached: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for something that other processes do."""
    give_up_at = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < give_up_at, f"waited in vain for {what}"
        time.sleep(0.05)


@dataclass(frozen=True)
class Ended:
    """A submission as the database has it."""

    status: str
    attempts: int
    results: int
    verdict: str | None


class Stage:
    """One service: its database, its processes, and a client with an administrator's token."""

    def __init__(self, folder: Path, postgres: Postgres | None, **settings: object) -> None:
        self.folder = folder
        self.postgres = postgres
        self.port = free_port()
        self.settings = Settings(
            data=folder / "data",
            course=small_course.write_course(folder),
            database_url=postgres.empty() if postgres is not None else "",
            sandbox="process",
        )
        self.environment = {
            **os.environ,
            "AUTOGRADER_DATA": str(self.settings.data),
            "AUTOGRADER_COURSE": str(self.settings.course),
            "AUTOGRADER_DATABASE_URL": self.settings.database_url,
            "AUTOGRADER_SANDBOX": "process",
            "AUTOGRADER_JOBS": "1",
            "AUTOGRADER_SLOTS": "1",
            "AUTOGRADER_CACHE": "off",
            **{f"AUTOGRADER_{name.upper()}": str(value) for name, value in settings.items()},
        }
        self.log = folder / "log"
        self._engine: sa.Engine | None = None
        self._posted = 0
        self.closed = False
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENCE_SECONDS)
        self.running: list[subprocess.Popen[bytes]] = []

    # -- processes -----------------------------------------------------------------------------------------------

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        if self.closed:
            raise RuntimeError("the stage is closed")
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "service.cli", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=self.environment,
            )
        self.running.append(process)
        return process

    def web(self) -> subprocess.Popen[bytes]:
        """`autograder web`, answering."""
        process = self.start("web", "--port", str(self.port))
        self.until_it_answers()
        return process

    def worker(self) -> subprocess.Popen[bytes]:
        return self.start("worker")

    def serve(self) -> subprocess.Popen[bytes]:
        """`autograder serve`, whose web process answers."""
        process = self.start("serve", "--port", str(self.port))
        self.until_it_answers()
        return process

    def until_it_answers(self) -> None:
        until(self.answers, f"the web process:\n{self.log.read_text()[-2000:] if self.log.exists() else ''}")

    def answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self.client.get("/livez").status_code == 200
        return False

    def close(self) -> None:
        self.closed = True
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
        self.client.close()
        if self._engine is not None:
            self._engine.dispose()

    # -- requests ------------------------------------------------------------------------------------------------

    def admit(self) -> None:
        """Migrate the database and give the client a token."""
        database.migrate(self.settings)
        dbos_queue.migrate(self.settings.url)
        secret = accounts.new_secret()
        with database.writing(self.engine) as connection:
            accounts.create(connection, secret=secret, role=accounts.Role.ADMIN, now=time.time())
        self.client.headers["Authorization"] = f"Bearer {secret}"

    def post(self, *, seconds: float = 0.0) -> httpx.Response:
        """Post a submission that nobody posted before; its tests take `seconds` in each run."""
        self._posted += 1
        tests = (SLOW_TESTS if seconds else TESTS).format(number=self._posted, seconds=seconds).encode()
        files = [
            ("double", ("double.py", small_course.REFERENCE.encode())),
            ("tests", ("test_double.py", tests)),
        ]
        return self.client.post("/v1/units/Z1/submissions", files=files)

    def submitted(self, *, seconds: float = 0.0) -> str:
        answer = self.post(seconds=seconds)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    # -- what the database says ----------------------------------------------------------------------------------

    @property
    def engine(self) -> sa.Engine:
        if self._engine is None:
            self._engine = database.open_engine(self.settings.url)
        return self._engine

    def ended(self) -> dict[str, Ended]:
        """Every submission that is stored."""
        query = (
            sa.select(
                submissions.c.id,
                runs.c.status,
                runs.c.attempts,
                sa.func.count(results.c.run).label("results"),
                sa.func.min(results.c.verdict).label("verdict"),
            )
            .select_from(submissions.join(runs, runs.c.submission == submissions.c.id))
            .join(results, results.c.run == runs.c.id, isouter=True)
            .group_by(submissions.c.id, runs.c.status, runs.c.attempts)
        )
        with database.reading(self.engine) as connection:
            return {
                row.id: Ended(row.status, row.attempts, row.results, row.verdict) for row in connection.execute(query)
            }

    def status(self, submission: str) -> str:
        return self.ended()[submission].status

    def worker_of(self, submission: str) -> str:
        """The name of the worker that is or was last at a submission; empty before."""
        query = sa.select(runs.c.worker).where(runs.c.submission == submission)
        with database.reading(self.engine) as connection:
            return connection.execute(query).scalar_one() or ""

    def workers(self) -> list[str]:
        """Those that are ready, whether they live or not."""
        with database.reading(self.engine) as connection:
            return list(connection.execute(sa.select(workers.c.id).where(workers.c.ready)).scalars())

    def assert_each_done_once(self, accepted: list[str]) -> None:
        """Wait for the accepted submissions; each is done, with one result, and the whole mark."""
        until(
            lambda: all(self.ended()[each].status not in ("queued", "running") for each in accepted),
            f"the end of all runs:\n{self.log.read_text()[-3000:]}",
        )
        found = self.ended()
        assert {each: (found[each].status, found[each].results, found[each].verdict) for each in accepted} == {
            each: ("done", 1, "pass") for each in accepted
        }


def kill(process: subprocess.Popen[bytes]) -> None:
    """kill -9, and wait until it is gone."""
    process.kill()
    process.wait()


def children(parent: int) -> dict[str, int]:
    """Process ids of the service's processes below a supervisor, by their command."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                words = (stat.parent / "cmdline").read_bytes().split(b"\0")
                found[words[3].decode()] = int(stat.parent.name)
    return found
