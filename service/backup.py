"""A database in use goes in, one file comes out; out of that file comes a database again, of either kind.

FILE is a .tar.gz. Nothing is unpacked from it to disk. In this order it holds:

format.json             {"format": 1, "schema": revision, "made_at": UTC seconds since 1970}
TABLE/000001.jsonl ...  the table's rows, one JSON object a line, about 2 MiB a part; bytes are {"base64": "..."}
manifest.json           {"rows": {TABLE: count}, "sha256": {part: digest}}

Tables are read as they are in the database, so that any schema can be saved; a backup is restored under its own schema
and then migrated. Workers and sessions are left out: they belong to the machine. (docs/decisions/0134)
"""

import base64
import gzip
import hashlib
import io
import json
import os
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory

from service import audit, database, outbox, wording
from service.audit import By
from service.database import reading, writing
from service.runs import Status
from service.settings import Settings
from service.tables import runs

FORMAT = 1
PART_BYTES = 2 * 2**20
ROWS_AT_A_TIME = 500
BIG_ROWS_AT_A_TIME = 20  # of tables that hold bytes
VERSIONS = "ag_alembic_version"
LEFT_OUT = frozenset({VERSIONS, "ag_workers", "ag_targets", "ag_sessions", "ag_guesses"})


class Unusable(ValueError):
    """The file, or the database, is not one to restore from or into; the message says why and what to do."""


@dataclass(frozen=True)
class Backup:
    """What a backup holds. `schema` is the revision of the tables, `rows` counts them by table."""

    schema: str
    made_at: float
    rows: Mapping[str, int]


# -- save ------------------------------------------------------------------------------------------------------------


def save(engine: sa.Engine, file: Path, now: float) -> Backup:
    """Write what the database holds at one moment to `file`, which only its owner may read.

    The file appears when it is complete. Raises OSError, and Unusable for a database without our tables.
    """
    partial = file.with_name(f"{file.name}.partial")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
            os.fchmod(target.fileno(), 0o600)  # it may have been there
            with snapshot(engine) as connection:
                saved = write(connection, target, now)
            target.flush()
            os.fsync(target.fileno())
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
    return saved


@contextmanager
def snapshot(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that sees the database as it was at its first query, whatever is written meanwhile."""
    options: dict[str, Any] = {"reads": True, "stream_results": True}
    if engine.dialect.name == "postgresql":
        options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with engine.connect().execution_options(**options) as connection, connection.begin():
        yield connection


def write(connection: sa.Connection, target: IO[bytes], now: float) -> Backup:
    """Write the backup of a database, seen through `connection`, to an open file."""
    schema = revision(connection)
    if schema is None:
        raise Unusable(wording.NO_DATABASE)
    digests: dict[str, str] = {}
    counts: dict[str, int] = {}
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=1) as archive:
        _add(archive, "format.json", _json({"format": FORMAT, "schema": schema, "made_at": now}))
        for table in _tables(connection):
            counts[table.name] = 0
            for number, (part, count) in enumerate(_parts(connection, table), start=1):
                name = f"{table.name}/{number:06}.jsonl"
                _add(archive, name, part)
                digests[name] = hashlib.sha256(part).hexdigest()
                counts[table.name] += count
        _add(archive, "manifest.json", _json({"rows": counts, "sha256": digests}))
    return Backup(schema, now, counts)


def _parts(connection: sa.Connection, table: sa.Table) -> Iterator[tuple[bytes, int]]:
    """A table's rows as lines, a part at a time, and how many each part holds."""
    lines, count = io.BytesIO(), 0
    query = sa.select(table).execution_options(yield_per=_at_a_time(table))
    names = [column.name for column in table.columns]
    for row in connection.execute(query):
        lines.write(_json(dict(zip(names, row, strict=True))) + b"\n")
        count += 1
        if lines.tell() >= PART_BYTES:
            yield lines.getvalue(), count
            lines, count = io.BytesIO(), 0
    if count:
        yield lines.getvalue(), count


def _encode(data: object) -> object:
    if isinstance(data, bytes | memoryview):
        return {"base64": base64.b64encode(data).decode()}
    raise TypeError(f"a {type(data).__name__} is in no column of ours")


_ENCODER = json.JSONEncoder(default=_encode, separators=(",", ":"))


def _json(value: Mapping[str, object]) -> bytes:
    return _ENCODER.encode(value).encode()


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o600
    archive.addfile(entry, io.BytesIO(data))


# -- restore ---------------------------------------------------------------------------------------------------------


def restore(settings: Settings, file: Path, now: float) -> Backup:
    """Fill an empty database from a backup and bring it up to date; what was unfinished waits again.

    Raises Unusable before anything is changed, OSError, and database.Held while `serve` runs on the same directory.
    """
    backup = check(file)
    known = _revisions(settings)
    if backup.schema not in known:
        raise Unusable(wording.backup_newer(file, backup.schema, known[-1]))
    with database.locked(settings.data / "serve.lock"):
        engine = database.open_engine(settings.url)
        try:
            with reading(engine) as connection:
                _refuse_used(connection)
                before = revision(connection)
            # An empty database may be newer than the backup, when the service has been started once.
            back = before is not None and known.index(before) > known.index(backup.schema)
            (command.downgrade if back else command.upgrade)(database.alembic_config(settings), backup.schema)
            with writing(engine) as connection:
                _refuse_used(connection)
                try:
                    _fill(connection, file, backup)
                except sa.exc.StatementError as error:
                    raise Unusable(wording.backup_does_not_fit(file, str(error.orig))) from error
            database.migrate(settings)
            with writing(engine) as connection:
                _let_wait_again(connection, now)
                detail = {"made_at": backup.made_at, "schema": backup.schema, "rows": dict(backup.rows)}
                audit.note(connection, By(None, now), action="database.restore", object=file.name[:128], detail=detail)
        finally:
            engine.dispose()
    return backup


def check(file: Path) -> Backup:
    """Read a backup to its end and compare every part with the manifest. Raises Unusable, OSError."""
    digests: dict[str, str] = {}
    head: Mapping[str, Any] = {}
    manifest: Mapping[str, Any] | None = None
    try:
        for name, data in _members(file):
            if name == "format.json":
                head = json.loads(data)
                if head["format"] != FORMAT:
                    raise Unusable(wording.backup_newer(file, f"format {head['format']}", f"format {FORMAT}"))
            elif name == "manifest.json":
                manifest = json.loads(data)
            else:
                digests[name] = hashlib.sha256(data).hexdigest()
        if manifest is None or manifest["sha256"] != digests:
            raise Unusable(wording.backup_damaged(file))
        return Backup(str(head["schema"]), float(head["made_at"]), dict(manifest["rows"]))
    except (tarfile.TarError, EOFError, zlib.error, json.JSONDecodeError, UnicodeError, KeyError, TypeError) as error:
        raise Unusable(wording.backup_damaged(file)) from error


def _members(file: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with gzip.open(file) as unzipped:
            with tarfile.open(fileobj=unzipped, mode="r|") as archive:
                for entry in archive:
                    held = archive.extractfile(entry)
                    if held is not None:
                        yield entry.name, held.read()
            while unzipped.read(PART_BYTES):  # to the checksum at the end
                pass
    except OSError as error:
        if error.errno is None:  # gzip's own, such as a wrong checksum
            raise tarfile.ReadError(str(error)) from error
        raise


def _refuse_used(connection: sa.Connection) -> None:
    """Raises Unusable if the database holds more than a new one does."""
    for table in _tables(connection):
        query = sa.select(sa.literal(1)).select_from(table)
        if table.name == "ag_courses":
            query = query.where(table.c.id != "default")
        if connection.execute(query.limit(1)).first() is not None:
            raise Unusable(wording.database_used(table.name))


def _fill(connection: sa.Connection, file: Path, backup: Backup) -> None:
    tables = {table.name: table for table in _tables(connection)}
    if set(tables) != set(backup.rows):
        raise Unusable(wording.backup_damaged(file))
    connection.execute(tables["ag_courses"].delete())  # the default course comes from the backup
    found = dict.fromkeys(tables, 0)
    for name, data in _members(file):
        table = tables.get(name.partition("/")[0])
        if table is None:
            continue
        rows = [_row(line) for line in data.splitlines()]
        found[table.name] += len(rows)
        step = _at_a_time(table)
        for start in range(0, len(rows), step):
            connection.execute(table.insert(), rows[start : start + step])
    if found != backup.rows:
        raise Unusable(wording.backup_damaged(file))
    if connection.dialect.name == "postgresql":
        for table in tables.values():
            _go_on_counting(connection, table)


def _row(line: bytes) -> dict[str, object]:
    row: dict[str, Any] = json.loads(line)
    return {
        name: base64.b64decode(value["base64"]) if isinstance(value, dict) else value for name, value in row.items()
    }


def _go_on_counting(connection: sa.Connection, table: sa.Table) -> None:
    """Let PostgreSQL number the next row after the last one; SQLite does."""
    for column in table.primary_key.columns:
        sequence = connection.execute(sa.select(sa.func.pg_get_serial_sequence(table.name, column.name))).scalar_one()
        if sequence is not None:
            last = sa.select(sa.func.max(column)).scalar_subquery()
            connection.execute(sa.select(sa.func.setval(sequence, sa.func.coalesce(last, 1), last.is_not(None))))


def _let_wait_again(connection: sa.Connection, now: float) -> None:
    """Put what was being graded back into the queue; a worker enqueues it. What was to be stopped is."""
    running = runs.c.status == Status.RUNNING.value
    stopping = (
        runs.update()
        .where(running, runs.c.cancel_at.is_not(None))
        .values(status=Status.CANCELLED.value, finished_at=now, version=runs.c.version + 1)
        .returning(runs.c.id)
    )
    if stopped := connection.execute(stopping).scalars().all():
        outbox.run_ended(connection, runs.c.id.in_(stopped), now)
    again = {"status": Status.QUEUED.value, "worker": None, "started_at": None, "phase": "", "done": 0, "total": 0}
    connection.execute(
        runs.update().where(running).values(attempts=runs.c.attempts - 1, version=runs.c.version + 1, **again)
    )


# -- both ------------------------------------------------------------------------------------------------------------


def revision(connection: sa.Connection) -> str | None:
    """Of the database's schema; None for a database that has none of our tables."""
    if not sa.inspect(connection).has_table(VERSIONS):
        return None
    found = connection.execute(sa.text(f"SELECT version_num FROM {VERSIONS}")).scalar_one_or_none()
    return str(found) if found is not None else None


def _tables(connection: sa.Connection) -> Sequence[sa.Table]:
    """Our tables as they are in the database, each after those it points to."""
    metadata = sa.MetaData()
    metadata.reflect(connection, only=lambda name, _: name.startswith("ag_") and name not in LEFT_OUT)
    return metadata.sorted_tables


def _revisions(settings: Settings) -> list[str]:
    """Every revision this version knows, the first one first."""
    script = ScriptDirectory.from_config(database.alembic_config(settings))
    return [each.revision for each in script.walk_revisions()][::-1]


def _at_a_time(table: sa.Table) -> int:
    holds_bytes = any(isinstance(column.type, sa.LargeBinary | sa.dialects.postgresql.BYTEA) for column in table.c)
    return BIG_ROWS_AT_A_TIME if holds_bytes else ROWS_AT_A_TIME
