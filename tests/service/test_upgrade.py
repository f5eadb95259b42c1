"""A database that the previous release left, with submissions in flight, is brought up to date and they are graded.

The release made its database by the first migration; its rows are written here with the columns it had, its queue
entries by the code that it enqueued with.
"""

import json
import threading
import time
import zlib

import pytest
import sqlalchemy as sa
from alembic import command

from grader.submission import Submission
from sandbox.records import File
from service import database, dbos_queue
from service.blobs import digest_of
from service.dbos_queue import DbosEngine, DbosQueue
from service.processes import EMBEDDED_NAME, prepare
from service.settings import Settings
from service.tables import results, runs, workers
from service.worker import FakeGrading, GradingWorker
from tests.service import samples

FIRST = "0001"
DIED_AT = 1_700_000_000.0  # when the release's processes were gone


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request, tmp_path):
    url = request.getfixturevalue("postgres").empty() if request.param == "postgresql" else ""
    return Settings(data=tmp_path, course=tmp_path, database_url=url, worker_ttl_seconds=0.6)


@pytest.fixture
def engine(settings):
    engine = database.open_engine(settings.url)
    yield engine
    engine.dispose()


def insert(connection, table, **values):
    """Into a table as it is at this moment."""
    found = sa.Table(table, sa.MetaData(), autoload_with=connection)
    connection.execute(found.insert().values(values))


def leave_as_the_release_did(settings, engine):
    """One submission that waits and one whose worker died at it."""
    command.upgrade(database.alembic_config(settings), FIRST)
    dbos_queue.migrate(settings.url)
    queue = DbosQueue(engine)
    files = [("unit", samples.PATH, samples.SOURCE), ("test", "test_a.py", samples.TESTS)]
    digest = Submission("L0.0", {samples.PATH: samples.SOURCE}, (File("test_a.py", samples.TESTS),), ()).digest
    with database.writing(engine) as connection:
        insert(connection, "ag_tokens", id="t", digest="d", role="lms", label="", created_at=1.0)
        for _, _, data in files:
            row = {"digest": digest_of(data), "data": zlib.compress(data), "byte_count": len(data)}
            insert(connection, "ag_blobs", **row)
        for number, status in enumerate(("queued", "running")):
            insert(
                connection,
                "ag_submissions",
                **{"id": status, "unit": "L0.0", "course": "default", "student": f"s{number}", "token": "t"},
                **{"received_at": DIED_AT - 60, "digest": digest, "notes": json.dumps([]), "run": f"run-{status}"},
            )
            for kind, path, data in files:
                row = {"submission": status, "kind": kind, "path": path, "digest": digest_of(data)}
                insert(connection, "ag_files", **row)
            begun = {"started_at": DIED_AT - 5, "attempts": 1, "worker": EMBEDDED_NAME} if number else {"attempts": 0}
            insert(
                connection,
                "ag_runs",
                **{"id": f"run-{status}", "submission": status, "status": status, "priority": 1000},
                **{"queued_at": DIED_AT - 60, "phase": "", "done": 0, "total": 0},
                **begun,
            )
            queue.submit(connection, f"run-{status}", 1000)
        row = {"id": EMBEDDED_NAME, "beat_at": DIED_AT, "slots": 1, "ready": True, "missing": "[]"}
        insert(connection, "ag_workers", **row)
        table = "workflow_status" if connection.dialect.name == "sqlite" else "dbos.workflow_status"
        connection.exec_driver_sql(
            f"UPDATE {table} SET status = 'PENDING', executor_id = '{EMBEDDED_NAME}', started_at_epoch_ms = 1 "
            "WHERE workflow_uuid = 'run-running'"
        )
    queue.close()


@pytest.mark.parametrize("name", [EMBEDDED_NAME, "another"])
def test_submissions_in_flight_are_graded_after_the_upgrade(settings, engine, name):
    leave_as_the_release_did(settings, engine)
    prepare(settings)
    seen, stop = [], threading.Event()

    def answer(unit, submission, about, progress):
        seen.append((about.id, submission.files, [file.data for file in submission.tests]))
        return samples.report(about, unit.id, digest=submission.digest)

    worker = GradingWorker(settings, engine, samples.course(), FakeGrading(answer), name=name, stop=stop)
    thread = threading.Thread(target=worker.run, args=(DbosEngine(settings.url, name, 1, 0.05),), daemon=True)
    thread.start()
    give_up_at = time.monotonic() + 60
    while len(rows(engine, results)) < 2:
        assert time.monotonic() < give_up_at
        time.sleep(0.05)
    stop.set()
    thread.join(60)
    assert {row.id: (row.status, row.attempts) for row in rows(engine, runs)} == {
        "run-queued": ("done", 1),
        "run-running": ("done", 2),
    }
    files = {samples.PATH: samples.SOURCE}, [samples.TESTS]
    assert sorted(seen) == [("queued", *files), ("running", *files)]
    assert rows(engine, workers) == []


def rows(engine, table):
    with database.reading(engine) as connection:
        return connection.execute(sa.select(table)).all()
