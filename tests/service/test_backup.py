"""Backups of either database, restored into either, with what must not be restored refused in words."""

import gzip
import io
import json
import stat
import subprocess
import sys
import tarfile
import threading
import tracemalloc
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from click.testing import CliRunner

from service import audit, backup, database, dbos_queue, fleet, runs
from service.audit import By
from service.backup import LEFT_OUT, Unusable
from service.cli import main
from service.database import reading, writing
from service.dbos_queue import DbosEngine
from service.settings import Settings
from service.tables import audit as audit_rows
from service.tables import blobs, courses, hints, metadata, secrets, submissions
from service.tables import runs as run_rows

pytestmark = pytest.mark.both_databases


@pytest.fixture
def save(bench, tmp_path):
    def save(engine=bench.engine, name="backup.tar.gz") -> Path:
        backup.save(engine, tmp_path / name, bench.clock())
        return tmp_path / name

    return save


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request, tmp_path) -> Settings:
    """Settings that name a database which is not there yet, of each kind."""
    folder = tmp_path / "target"
    if request.param == "sqlite":
        return Settings(data=folder, course=folder)
    return Settings(data=folder, course=folder, database_url=request.getfixturevalue("postgres").empty())


def rows_of(url):
    """Every row of every table that is saved, in one order."""
    engine = database.open_engine(url)
    try:
        with reading(engine) as connection:
            return {
                table.name: sorted(
                    (tuple(row) for row in connection.execute(sa.select(table))), key=lambda row: repr(row)
                )
                for table in metadata.sorted_tables
                if table.name not in LEFT_OUT
            }
    finally:
        engine.dispose()


def populate(bench):
    """A little of everything."""
    for who in ("ada", "bob", "zoë"):
        bench.submitted(who)
    bench.submitted("lms", student="zoë", callback="https://lms.example/")
    bench.graded()
    answer = bench.client.request(
        "POST",
        f"/v1/submissions/{bench.submitted('ada')}/runs",
        headers=bench.auth("teacher"),
        json={"reason": "not yet"},
    )
    assert answer.status_code == 409
    with writing(bench.engine) as connection:
        for number, helpful in ((2, True), (3, None)):
            keys = {"course": "default", "unit": "L0.0", "student": "zoë", "mutant": "m01", "number": number}
            connection.execute(hints.insert().values(**keys, unlocked_at=0.1, counted=True, helpful=helpful))
        connection.execute(secrets.insert().values(name="other", value=bytes(range(256)), created_at=0.1 + 0.2))
        for number in range(3):
            audit.note(connection, By(None, number / 3), action="a.b", object=str(number), detail={"ü": "\0"})


def test_a_backup_restores_every_row_into_either_database(bench, save, target):
    populate(bench)
    before = rows_of(bench.settings.url)
    restored = backup.restore(target, save(), bench.clock())
    after = rows_of(target.url)
    (noted,) = [row for row in after["ag_audit"] if "database.restore" in row]
    after["ag_audit"].remove(noted)
    assert after == before
    assert dict(restored.rows) == {name: len(rows) for name, rows in before.items()}
    assert sum(restored.rows.values()) > 20


def test_the_audit_log_goes_on_counting_after_a_restore(bench, save, target):
    populate(bench)
    last = max(row.id for row in bench.rows(audit_rows))
    backup.restore(target, save(), 0)
    engine = database.open_engine(target.url)
    with writing(engine) as connection:
        audit.note(connection, By(None, 0), action="a.b", object="after")
        ids = connection.execute(sa.select(audit_rows.c.id).order_by(audit_rows.c.id)).scalars().all()
    engine.dispose()
    assert ids[-2:] == [last + 1, last + 2]  # the restore itself, and this one


def test_what_was_being_graded_waits_again_and_what_was_to_be_stopped_is(bench, save, target):
    bench.submitted("ada")
    bench.submitted("bob")
    going_on, to_stop = bench.queue.submitted
    with writing(bench.engine) as connection:
        for run in (going_on, to_stop):
            runs.claim(connection, run, "a worker that is no more", bench.clock())
        connection.execute(run_rows.update().where(run_rows.c.id == to_stop).values(cancel_at=bench.clock()))
    backup.restore(target, save(), bench.clock())
    engine = database.open_engine(target.url)
    with reading(engine) as connection:
        first, second = runs.find(connection, going_on), runs.find(connection, to_stop)
    engine.dispose()
    assert (first.status, first.attempts, first.started_at) == ("queued", 0, None)
    assert (second.status, second.finished_at) == ("cancelled", bench.clock())


def test_what_waits_after_a_restore_is_given_to_the_job_engine_of_the_new_database(bench, save, target):
    """As a worker does it: what waits, and its engine does not know, is enqueued."""
    bench.submitted("ada")
    backup.restore(target, save(), 0)
    dbos_queue.migrate(target.url)
    engine = database.open_engine(target.url)
    jobs = DbosEngine(target.url, "worker-1", slots=1, poll_seconds=0.25)
    try:
        with reading(engine) as connection:
            waiting = runs.waiting(connection)
        assert list(waiting) == fleet.stranded(waiting, jobs.known(), ["worker-1"]) == bench.queue.submitted
        jobs.deliver_again(waiting)
        assert set(jobs.known()) == set(waiting)
    finally:
        jobs.close()
        engine.dispose()


def test_a_database_that_is_in_use_is_not_restored_into(bench, make_bench, save):
    other = make_bench()
    other.submitted("ada")
    before = rows_of(other.settings.url)
    with pytest.raises(Unusable, match="not empty"):
        backup.restore(other.settings, save(), 0)
    assert rows_of(other.settings.url) == before


def test_a_new_database_that_was_only_migrated_is_restored_into(bench, make_bench, save):
    populate(bench)
    other = make_bench()
    backup.restore(other.settings, save(), 0)
    assert rows_of(other.settings.url)["ag_submissions"] == rows_of(bench.settings.url)["ag_submissions"]


def test_a_backup_of_an_older_schema_is_migrated(bench, make_bench, save):
    bench.submitted("ada")
    stored = rows_of(bench.settings.url)
    command.downgrade(database.alembic_config(bench.settings), "0001")
    file = save()
    other = make_bench()  # at the newest schema already
    assert backup.restore(other.settings, file, 0).schema == "0001"
    after = rows_of(other.settings.url)
    assert [row[:6] for row in after["ag_submissions"]] == [row[:6] for row in stored["ag_submissions"]]
    with reading(other.engine) as connection:
        received = submissions.c.received_at
        assert connection.execute(sa.select(submissions.c.stored_at == received)).scalar_one()


def rewritten(file: Path, change) -> Path:
    """A copy of the backup with `change(name, data)` in place of each member; None leaves it out."""
    target = file.with_name("changed.tar.gz")
    with tarfile.open(file) as old, tarfile.open(target, "w:gz") as new:
        for entry in old:
            data = change(entry.name, old.extractfile(entry).read())
            if data is not None:
                entry.size = len(data)
                new.addfile(entry, io.BytesIO(data))
    return target


def test_a_backup_of_a_newer_version_is_refused(bench, save, target):
    for head in ({"format": 1, "schema": "9999", "made_at": 0}, {"format": 2, "schema": "0002", "made_at": 0}):
        newer = rewritten(save(), lambda name, data, head=head: json.dumps(head).encode() if "format" in name else data)
        with pytest.raises(Unusable, match="newer version"):
            backup.restore(target, newer, 0)


DAMAGES = {
    "a row changed": lambda name, data: data.replace(b"default", b"defauIt") if "ag_submissions" in name else data,
    "a part lost": lambda name, data: None if "ag_runs" in name else data,
    "no manifest": lambda name, data: None if "manifest" in name else data,
    "no format": lambda name, data: None if "format" in name else data,
    "an odd manifest": lambda name, data: b"[]" if "manifest" in name else data,
    "not JSON": lambda name, data: b"\xff{" if "format" in name else data,
    "a wrong count": lambda name, data: data.replace(b'"ag_runs":1', b'"ag_runs":2') if "manif" in name else data,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_backup_is_refused_and_changes_nothing(bench, make_bench, save, damage):
    bench.submitted("ada")
    other = make_bench()
    before = rows_of(other.settings.url)
    with pytest.raises(Unusable, match="no complete backup"):
        backup.restore(other.settings, rewritten(save(), DAMAGES[damage]), 0)
    assert rows_of(other.settings.url) == before


def test_a_backup_cut_off_or_flipped_anywhere_is_refused(bench, save):
    bench.submitted("ada")
    whole = save().read_bytes()
    file = save().with_name("broken.tar.gz")
    for at in range(0, len(whole), max(1, len(whole) // 40)):
        flipped = bytearray(whole)
        flipped[at] ^= 0xFF
        for broken in (whole[:at], bytes(flipped)):
            file.write_bytes(broken)
            try:
                found = backup.check(file)
            except Unusable:
                continue
            # A bit of the gzip header, such as its time, says nothing about what is inside.
            assert gzip.decompress(broken) == gzip.decompress(whole) and found.rows


def test_a_file_that_is_something_else_is_refused(bench, target, tmp_path):
    for content in (b"", b"not a backup", gzip.compress(b"nor this")):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(Unusable, match="no complete backup"):
            backup.restore(target, tmp_path / "x", 0)


def test_only_its_owner_may_read_a_backup_and_half_of_one_is_never_left(bench, save, tmp_path):
    file = save()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    whole = file.read_bytes()
    empty = database.open_engine(f"sqlite:///{tmp_path / 'empty.sqlite'}")
    with pytest.raises(Unusable, match="no database"):
        save(empty)
    assert file.read_bytes() == whole
    assert not list(tmp_path.glob("*.partial"))


def test_a_backup_is_of_one_moment_while_others_write(bench, save, make_bench):
    """A writer adds pairs in one transaction, in two tables: a backup holds both of a pair, or neither."""
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            number += 1
            with writing(bench.engine) as connection:
                connection.execute(courses.insert().values(id=f"c{number}", title="", created_at=0))
                connection.execute(secrets.insert().values(name=f"c{number}", value=b"x" * 1000, created_at=0))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(bench.rows(courses)) < 50:
            assert writer.is_alive()
        files = [save(name=f"{number}.tar.gz") for number in range(3)]
    finally:
        stop.set()
        writer.join()
    for file in files:
        other = make_bench()
        backup.restore(other.settings, file, 0)
        pairs = {row.name for row in other.rows(secrets) if row.name.startswith("c")}
        assert len(pairs) >= 49
        assert pairs == {row.id for row in other.rows(courses)} - {"default"}


def test_memory_does_not_grow_with_the_database(bench, save, make_bench, monkeypatch):
    monkeypatch.setattr(backup, "PART_BYTES", 200_000)
    peaks = []
    for count in (100, 500):
        with writing(bench.engine) as connection:
            for number in range(count):
                values = {"digest": f"{count}-{number}", "data": b"%06d" % number * 5000, "byte_count": 30_000}
                connection.execute(blobs.insert().values(values))
        other = make_bench()
        tracemalloc.start()
        file = save(name=f"{count}.tar.gz")
        backup.restore(other.settings, file, 0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


# -- the command line ------------------------------------------------------------------------------------------------


def test_the_commands_save_and_restore(bench, target, tmp_path, monkeypatch):
    bench.submitted("ada")
    file = tmp_path / "b.tar.gz"
    monkeypatch.setenv("AUTOGRADER_DATABASE_URL", bench.settings.url)
    saved = CliRunner().invoke(main, ["backup", str(file), "--data", str(bench.settings.data)])
    assert saved.exit_code == 0 and "secrets" in saved.output, saved.output
    monkeypatch.setenv("AUTOGRADER_DATABASE_URL", target.database_url)
    restored = CliRunner().invoke(main, ["restore", str(file), "--data", str(target.data)])
    assert restored.exit_code == 0 and "graded then" in restored.output, restored.output
    again = CliRunner().invoke(main, ["restore", str(file), "--data", str(target.data)])
    assert again.exit_code == 2 and "not empty" in again.output


def test_nothing_is_saved_where_there_is_no_database(tmp_path):
    result = CliRunner().invoke(main, ["backup", str(tmp_path / "b"), "--data", str(tmp_path / "none")])
    assert result.exit_code == 2 and "no database" in result.output
    assert not (tmp_path / "none").exists() and not (tmp_path / "b").exists()


def test_a_file_that_is_not_there_is_said_in_words(target, tmp_path):
    result = CliRunner().invoke(main, ["restore", str(tmp_path / "b"), "--data", str(target.data)])
    assert result.exit_code == 2 and "No such file" in result.output


def test_nothing_is_restored_under_a_running_service(bench, save, target):
    file = save()
    with database.locked(target.data / "serve.lock"):
        # A POSIX lock is a process's own, so another process has to try.
        done = subprocess.run(
            [sys.executable, "-m", "service.cli", "restore", str(file), "--data", str(target.data)],
            capture_output=True,
            text=True,
        )
    assert done.returncode == 2 and "serve.lock" in done.stderr
