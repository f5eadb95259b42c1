"""A real PostgreSQL server of the tests' own: nothing goes in; URLs of fresh, migrated databases come out.

It listens on a socket in its own temporary directory, trusts everyone who may enter that, and ends with the tests.
PostgreSQL refuses to run as root; then the user `postgres` or `nobody` runs it. `start`, `stop_at_once` and `kill` are
for tests of what the service does without it.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from service import database, dbos_queue
from service.settings import Settings

PATIENCE_SECONDS = 60.0
TEMPLATE = "template_autograder"
NOT_FOUND = """\
These tests need PostgreSQL's programs (initdb and postgres), in PATH or in /usr/lib/postgresql/*/bin.
`make setup` installs them where that is allowed; by hand, on Debian and Ubuntu: apt-get install postgresql"""


class PostgresMissing(Exception):
    """PostgreSQL is not installed."""


def program(name: str) -> Path:
    """Where a program of PostgreSQL lies, the newest version first. Raises PostgresMissing."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[4]))
    found = [*map(str, reversed(versions)), shutil.which(name)]
    for path in found:
        if path is not None:
            return Path(path)
    raise PostgresMissing(NOT_FOUND)


class Postgres:
    """A server with its databases. With `durable` it waits for the disk as in production."""

    def __init__(self, *, durable: bool = False) -> None:
        self._postgres, initdb = program("postgres"), program("initdb")
        self.folder = Path(tempfile.mkdtemp(prefix="ag-postgres-"))  # a socket's path must be short
        self._user = _user() if os.getuid() == 0 else None
        if self._user is not None:
            shutil.chown(self.folder, self._user, pwd.getpwnam(self._user).pw_gid)
            self.folder.chmod(0o700)
        self._data = self.folder / "data"
        self._run(initdb, "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync")
        # Without fsync what was committed still outlives the server, though not the machine.
        self._options = [] if durable else ["-c", "fsync=off"]
        self._process: subprocess.Popen[bytes] | None = None
        self._count = 0
        self.start()

    def url(self, name: str) -> str:
        """Of the database of that name, as the service's settings take it."""
        return f"postgresql+psycopg://postgres@/{name}?host={self.folder}"

    # -- databases -----------------------------------------------------------------------------------------------

    def empty(self) -> str:
        """The URL of a new database without tables."""
        return self._create("template0")

    def fresh(self) -> str:
        """The URL of a new database as the migrations leave it, with the job engine's tables."""
        if not self._ask("SELECT 1 FROM pg_database WHERE datname = :name", name=TEMPLATE):
            self._do(f"CREATE DATABASE {TEMPLATE}")
            settings = Settings(data=self.folder / "template", course=Path(), database_url=self.url(TEMPLATE))
            database.migrate(settings)
            dbos_queue.migrate(settings.url)
        return self._create(TEMPLATE)

    def drop(self, url: str) -> None:
        """Drop a database whoever uses it."""
        self._do(f"DROP DATABASE IF EXISTS {sa.make_url(url).database} WITH (FORCE)")

    def _create(self, template: str) -> str:
        self._count += 1
        name = f"test_{self._count}"
        self._do(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def _do(self, statement: str) -> None:
        with self._connection() as connection:
            connection.exec_driver_sql(statement)

    def _ask(self, query: str, **values: object) -> object:
        with self._connection() as connection:
            return connection.execute(sa.text(query), values).scalar()

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        engine = sa.create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with engine.connect() as connection:
            yield connection

    # -- the server ----------------------------------------------------------------------------------------------

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server and wait until it answers; after a kill it recovers first."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while True:
            if not self.runs:
                self._process = self._start()
            with contextlib.suppress(sa.exc.OperationalError):
                self._do("SELECT 1")
                return
            assert time.monotonic() < give_up_at, (self.folder / "log").read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        """Let go of all connections and stop in order."""
        self._end(signal.SIGINT)

    def stop_at_once(self) -> None:
        """Stop without writing anything back: PostgreSQL's immediate shutdown."""
        self._end(signal.SIGQUIT)

    def kill(self) -> None:
        """kill -9 the server and all its processes."""
        assert self._process is not None
        children = _children(self._process.pid)
        self._end(signal.SIGKILL)
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def close(self) -> None:
        """End the server and remove all it kept."""
        if self.runs:
            self.stop_at_once()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> subprocess.Popen[bytes]:
        options = [
            "-c",
            "listen_addresses=",
            "-c",
            "max_connections=300",
            "-c",
            f"unix_socket_directories={self.folder}",
        ]
        # It ends with the process that started it, however that ends.
        command = ["setpriv", "--pdeathsig", "QUIT", str(self._postgres), "-D", str(self._data)]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*command, *options, *self._options], cwd=self.folder, stdout=log, stderr=log, **self._as_user()
            )

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(PATIENCE_SECONDS)

    def _run(self, *words: object) -> None:
        command = [*map(str, words), "-D", str(self._data)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **self._as_user())
        assert done.returncode == 0, done.stderr

    def _as_user(self) -> dict[str, object]:
        if self._user is None:
            return {}
        return {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "extra_groups": []}


def _user() -> str:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(stat.parent.name))
    return found
