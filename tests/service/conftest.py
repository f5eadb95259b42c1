"""What the service's tests build on: a `bench`, which is the application on a real database.

The database is an SQLite file. A module (or a test) marked `both_databases` runs twice, on PostgreSQL as well: those
say so that are about what is stored, locked or counted; the rest would only take longer.
"""

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI

from grader.unit import Course
from service import accounts, database, dbos_queue, offerings
from service.accounts import Role
from service.app import create_app
from service.audit import By
from service.dependencies import Service
from service.meanwhile import meanwhile
from service.offerings import Offering
from service.people import members, sessions, users
from service.people.users import User
from service.queue import FakeQueue
from service.settings import Settings
from service.worker import FakeGrading, Grading, GradingWorker
from tests.service import samples
from tests.service.postgres import Postgres

Store = Callable[[Path], str]
"""Makes a migrated database, in the folder if it is a file, and gives its URL."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store" in metafunc.fixturenames and metafunc.definition.get_closest_marker("both_databases"):
        metafunc.parametrize("store", ["sqlite", "postgresql"], indirect=True)


class Clock:
    """UTC seconds that move when told to."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Client:
    """Sends requests straight into an application, which runs in a thread of its own."""

    def __init__(self, app: FastAPI, portal: BlockingPortal) -> None:
        self._portal = portal
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://grader.example")

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self._portal.call(lambda: self._client.request(method, path, **options))


class Browser:
    """Somebody's browser: it sends the cookie of their session, and with forms the CSRF token. It follows nowhere."""

    def __init__(self, client: Client, secret: str) -> None:
        self._client = client
        self.cookies = {sessions.NAME: secret} if secret else {}

    @property
    def csrf(self) -> str:
        return sessions.csrf_of(self.cookies.get(sessions.NAME, ""))

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.send("GET", path, headers=headers)

    def post(self, path: str, **fields: str) -> httpx.Response:
        return self.send("POST", path, data={"csrf": self.csrf, **fields})

    def send(self, method: str, path: str, headers: dict[str, str] | None = None, **options: Any) -> httpx.Response:
        held = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = self._client.request(method, path, headers={"Cookie": held, **(headers or {})}, **options)
        for text in answer.headers.get_list("Set-Cookie"):
            name, _, value = text.partition(";")[0].partition("=")
            if value.strip('"'):
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        return answer


def _without_waiting_for_the_disk(connection: sqlite3.Connection, record: object) -> None:
    connection.execute("PRAGMA synchronous=OFF")  # no test takes the power away


class Bench:
    """The application on a real database file, with the queue in the test's hands."""

    def __init__(
        self, folder: Path, store: Store, portal: BlockingPortal, course: Course | None = None, **settings: object
    ) -> None:
        folder.mkdir()
        url = store(folder)
        settings = {"platform_hosts": "127.0.0.1,localhost", **settings}
        self.settings = Settings(data=folder, course=folder / "course", database_url=url, **settings)  # type: ignore[arg-type]
        self.engine = database.open_engine(self.settings.url)
        if self.engine.dialect.name == "sqlite":
            sa.event.listen(self.engine, "connect", _without_waiting_for_the_disk)
        self.queue = FakeQueue()
        self.clock = Clock()
        self.course = course or samples.course()
        self.service = Service(self.settings, self.engine, self.queue, self.course, self.clock)
        self.app = create_app(self.service)
        self.client = Client(self.app, portal)
        self.tokens: dict[str, str] = {}
        self.stop = threading.Event()

    def token(self, role: str, student: str | None = None, expires_at: float | None = None) -> str:
        """A token, the same one for the same role and student."""
        key = f"{role}/{student}/{expires_at}"
        if key not in self.tokens:
            self.tokens[key] = accounts.new_secret()
            with database.writing(self.engine) as connection:
                accounts.create(
                    connection,
                    secret=self.tokens[key],
                    role=Role(role),
                    now=self.clock(),
                    student=student,
                    expires_at=expires_at,
                )
        return self.tokens[key]

    def auth(self, who: str) -> dict[str, str]:
        """Headers of "teacher", "lms", "admin", or of the student so named; none for "nobody"."""
        if who == "nobody":
            return {}
        secret = self.token(who) if who in ("teacher", "lms", "admin") else self.token("student", who)
        return {"Authorization": f"Bearer {secret}"}

    def person(self, login: str, *, admin: bool = False, **roles: str) -> User:
        """Somebody with an account, the same one for the same login, and with a role in each of these courses."""
        by = By(None, self.clock())
        with database.writing(self.engine) as connection:
            user = users.find_by_login(connection, login)
            user = user or users.add(connection, login=login, name=login.title(), now=by.now, admin=admin)
            for course, role in roles.items():
                if offerings.find(connection, course) is None:
                    offerings.put(connection, Offering(course, course.title(), "UTC", by.now), by)
                members.put(connection, course, user, Role(role), "", members.Source.PAGE, by)
        return user

    def browser(self, login: str = "", *, admin: bool = False, **roles: str) -> Browser:
        """The browser of this person, who is signed in; of nobody without a login."""
        if not login:
            return Browser(self.client, "")
        user = self.person(login, admin=admin, **roles)
        with database.writing(self.engine) as connection:
            return Browser(self.client, sessions.begin(connection, user.id, self.clock()))

    def get(self, path: str, who: str = "admin") -> httpx.Response:
        return self.client.request("GET", path, headers=self.auth(who))

    def post(self, who: str = "ada", query: str = "", **fields: str) -> httpx.Response:
        return self.client.request(
            "POST", f"/v1/units/L0.0/submissions{query}", headers=self.auth(who), **samples.form(**fields)
        )

    def submitted(self, who: str = "ada", **fields: str) -> str:
        """The id of a new submission."""
        answer = self.post(who, **fields)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def worker(self, grading: Grading | None = None, name: str = "worker-1") -> GradingWorker:
        return GradingWorker(
            self.settings,
            self.engine,
            self.course,
            grading or FakeGrading(samples.passes),
            name=name,
            stop=self.stop,
            clock=self.clock,
        )

    def graded(self, worker: GradingWorker | None = None) -> None:
        """Grade everything that was enqueued."""
        worker = worker or self.worker()
        while self.queue.submitted:
            worker.grade_run(self.queue.submitted.pop(0))

    @contextmanager
    def grading_what_comes(self, worker: GradingWorker | None = None) -> Iterator[None]:
        """Meanwhile grade, in another thread, what is enqueued."""

        def look(over: threading.Event) -> None:
            while not over.wait(0.02):
                self.graded(worker)

        with meanwhile("worker", look):
            yield

    def rows(self, table: sa.Table) -> list[sa.Row[tuple[object, ...]]]:
        with database.reading(self.engine) as connection:
            return list(connection.execute(sa.select(table)))


@pytest.fixture(scope="session")
def fresh_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file as the migrations leave it, to be copied."""
    settings = Settings(data=tmp_path_factory.mktemp("fresh"), course=Path())
    database.migrate(settings)
    dbos_queue.migrate(settings.url)
    return settings.database_file


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server for all tests, not to be stopped."""
    server = Postgres()
    yield server
    server.close()


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Makes fresh databases: SQLite files, or on PostgreSQL in tests marked `both_databases`."""
    if getattr(request, "param", "sqlite") == "sqlite":
        fresh = request.getfixturevalue("fresh_database")
        yield lambda folder: f"sqlite:///{shutil.copy(fresh, folder)}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    made: list[str] = []

    def make(folder: Path) -> str:
        made.append(server.fresh())
        return made[-1]

    yield make
    for url in made:
        server.drop(url)


@pytest.fixture
def make_bench(tmp_path: Path, store: Store) -> Iterator[Callable[..., Bench]]:
    benches: list[Bench] = []
    with start_blocking_portal() as portal:

        def make(course: Course | None = None, **settings: object) -> Bench:
            benches.append(Bench(tmp_path / str(len(benches)), store, portal, course, **settings))
            return benches[-1]

        yield make
    for bench in benches:
        bench.engine.dispose()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()
