"""A database URL goes in; an engine whose transactions are what the service relies on comes out.

On SQLite every transaction begins IMMEDIATE, so that a writer waits for its turn instead of failing half way;
readers say so and begin deferred. The journal is WAL, so that readers never wait; synchronous is FULL, because an
acknowledged submission must survive a power cut. (docs/decisions/0061)
"""

import fcntl
import hashlib
import math
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.dialects import postgresql, sqlite

from service.settings import Settings

BUSY_MILLISECONDS = 30_000
MIGRATE_SECONDS = 60  # for other processes that bring the database up to date
ANSWER_SECONDS = 60.0  # for a database that starts
CONNECTIONS = 15  # of a process at most; all are kept, because opening one costs more than a request
MIGRATE_LOCK = 0x6175746F67726164  # of PostgreSQL's advisory locks: "autograd"

_TURN = sa.select(sa.func.pg_advisory_xact_lock(sa.cast(sa.bindparam("key"), sa.BigInteger)))

AWAY = (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError)
"""What a statement raises when the database does not answer."""


def open_engine(url: str) -> sa.Engine:
    """An engine on `url`, sqlite:/// or postgresql+psycopg://."""
    engine = sa.create_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_pre_ping=not url.startswith("sqlite"),
        hide_parameters=True,
    )
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: sqlite3.Connection, record: object) -> None:
    # Not every SQLite is built with floor(); PostgreSQL has it.
    connection.create_function("floor", 1, lambda x: None if x is None else math.floor(x), deterministic=True)
    connection.isolation_level = None  # we begin transactions ourselves, see _begin_sqlite
    for pragma in (
        f"busy_timeout={BUSY_MILLISECONDS}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "secure_delete=ON",  # what is erased is gone from the file as well
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    reads = connection.get_execution_options().get("reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that only reads: it never waits for a writer."""
    with engine.connect().execution_options(reads=True) as connection, connection.begin():
        yield connection


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that writes: committed at the end, rolled back by an exception."""
    with engine.begin() as connection:
        yield connection


def empty_journal(engine: sa.Engine) -> None:
    """Leave nothing of what was deleted in SQLite's journal, unless somebody reads from it just then.

    PostgreSQL clears its own away in time.
    """
    if engine.dialect.name == "sqlite":
        with closing(engine.raw_connection()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute("PRAGMA busy_timeout=1000")  # it keeps writers out while it waits for readers
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            cursor.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")


def insert_or_ignore(connection: sa.Connection, table: sa.Table, values: Mapping[str, object]) -> sa.Insert:
    """An insert that leaves a row with the same key as it is, on either database."""
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table).values(values).on_conflict_do_nothing()
    return postgresql.insert(table).values(values).on_conflict_do_nothing()


def take_turns(connection: sa.Connection, name: str) -> None:
    """Let the transactions that take turns under this name follow one another, so that each sees the ones before it.

    SQLite has one writer anyway.
    """
    if connection.dialect.name == "postgresql":
        key = hashlib.blake2b(name.encode(), digest_size=8).digest()
        connection.execute(_TURN, {"key": int.from_bytes(key, signed=True)})


def exists(settings: Settings) -> bool:
    """Whether there is a database already; one that is not a file of ours is taken to be there."""
    return bool(settings.database_url) or settings.database_file.exists()


def migrate(settings: Settings) -> None:
    """Bring our tables up to date. Processes that start together take turns."""
    settings.data.mkdir(parents=True, exist_ok=True)
    with alone(settings):
        command.upgrade(alembic_config(settings), "head")


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """Be the only process that changes this database's tables, wherever the others run.

    Waits for its turn; raises Held if that does not come.
    """
    if settings.url.startswith("sqlite"):
        with locked(settings.data / "migrate.lock", wait_seconds=MIGRATE_SECONDS):
            yield
        return
    engine = sa.create_engine(settings.url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    give_up_at = time.monotonic() + MIGRATE_SECONDS
    with engine.connect() as connection:
        # Asked again and again: who waits inside a statement is itself waited for by CREATE INDEX CONCURRENTLY.
        while not connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({MIGRATE_LOCK})").scalar_one():
            if time.monotonic() >= give_up_at:
                raise Held("the database is being brought up to date by another process")
            time.sleep(0.1)
        yield  # the lock goes with the connection


def wait_for(settings: Settings, wait_seconds: float = ANSWER_SECONDS) -> None:
    """Wait until the database answers: it may be starting at this moment. Raises OperationalError if it does not."""
    if settings.url.startswith("sqlite"):
        return
    engine = sa.create_engine(settings.url, poolclass=sa.NullPool)
    give_up_at = time.monotonic() + wait_seconds
    while True:
        try:
            with engine.connect():
                return
        except sa.exc.OperationalError:
            if time.monotonic() >= give_up_at:
                raise
            time.sleep(0.2)


def alembic_config(settings: Settings) -> Config:
    """What Alembic needs to know, without a file of its own."""
    config = Config()
    config.set_main_option("script_location", str(files("service") / "migrations"))
    config.attributes["url"] = settings.url
    return config


class Held(Exception):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path, wait_seconds: float = 0.0) -> Iterator[None]:
    """Hold an exclusive lock on the file `path`; raises Held if another process keeps it for `wait_seconds`.

    A POSIX record lock: the kernel lets go of it however the process ends, and no child inherits it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        give_up_at = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if time.monotonic() >= give_up_at:
                    raise Held(f"{path} is held by another process") from error
                time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)
