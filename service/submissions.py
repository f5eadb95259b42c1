"""A submission that intake has accepted goes in and is stored with its first run; it comes out again by its id."""

import json
import secrets
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from grader.report import Verdict
from grader.submission import IntakeNote, Submission
from sandbox.records import File
from service import audit, blobs
from service.audit import By
from service.queue import Queue
from service.runs import FIRST, Status
from service.runs import add as add_run
from service.tables import blobs as blob_rows
from service.tables import files, results, runs, submissions

PRIORITY_CLASS = 1000  # of a student's own submission; an unset priority would be 0 and jump the queue

_BY_ID = sa.select(submissions).where(submissions.c.id == sa.bindparam("submission"))
_UNFINISHED = (
    sa.select(sa.func.count())
    .select_from(runs.join(submissions, submissions.c.id == runs.c.submission))
    .where(
        runs.c.kind == FIRST,
        # An expression, so that SQLite begins with the student's rows and not with everything that waits.
        sa.func.coalesce(runs.c.status, "").in_([Status.QUEUED.value, Status.RUNNING.value]),
    )
)
_UNFINISHED_OF = {
    "student": _UNFINISHED.where(submissions.c.student == sa.bindparam("owner")),
    "token": _UNFINISHED.where(submissions.c.token == sa.bindparam("owner")),
}
_ADD = submissions.insert()
_ADD_FILE = files.insert()


@dataclass(frozen=True)
class Stored:
    """What is known of a submission without its files and its report."""

    id: str
    unit: str
    course: str
    student: str | None
    token: str
    received_at: float
    digest: str
    notes: tuple[IntakeNote, ...]
    run: str


def new_id() -> str:
    """128 random bits: an id cannot be guessed, and needs no other secret."""
    return secrets.token_hex(16)


def add(
    connection: sa.Connection,
    queue: Queue | None,
    submission: Submission,
    *,
    course: str,
    student: str | None,
    token: str,
    now: float,
    received_at: float | None = None,
    counted: bool = True,
) -> Stored:
    """Store a submission, its files and its first run, and enqueue it: all of it, or nothing if that fails.

    `queue` None: the caller ends the run in the same transaction. `received_at`: if that was before `now`.
    `counted`: it uses one of the student's attempts, see service/limits.py.
    """
    stored = Stored(
        id=new_id(),
        unit=submission.unit,
        course=course,
        student=student,
        token=token,
        received_at=now if received_at is None else received_at,
        digest=submission.digest,
        notes=submission.notes,
        run=new_id(),
    )
    priority = PRIORITY_CLASS + min(_unfinished(connection, student, token), 999)
    row = {
        "id": stored.id,
        "unit": stored.unit,
        "course": course,
        "student": student,
        "token": token,
        "received_at": stored.received_at,
        "stored_at": now,
        "digest": stored.digest,
        "counted": counted,
        "notes": json.dumps([asdict(note) for note in stored.notes]),
        "run": stored.run,
    }
    connection.execute(_ADD, row)
    _add_files(connection, stored.id, submission)
    add_run(connection, stored.run, stored.id, stored.unit, priority, now)
    if queue is not None:
        queue.submit(connection, stored.run, priority)
    return stored


def note(
    connection: sa.Connection,
    stored: Stored,
    by: By,
    *,
    action: str,
    detail: Mapping[str, object] | None = None,
) -> None:
    """Write into the audit log what was done to a submission, in the transaction that does it."""
    audit.note(
        connection,
        by,
        action=action,
        object=stored.id,
        student=stored.student,
        course=stored.course,
        unit=stored.unit,
        detail=detail,
    )


def find(connection: sa.Connection, submission_id: str) -> Stored | None:
    if "\0" in submission_id:  # PostgreSQL refuses to compare it
        return None
    row = connection.execute(_BY_ID, {"submission": submission_id}).one_or_none()
    return _stored(row) if row is not None else None


def of_run(connection: sa.Connection, run_id: str) -> Stored | None:
    """The submission that a run grades."""
    query = sa.select(submissions).join(runs, runs.c.submission == submissions.c.id)
    row = connection.execute(query.where(runs.c.id == run_id)).one_or_none()
    return _stored(row) if row is not None else None


def passed_units(connection: sa.Connection, course: str, student: str) -> frozenset[str]:
    """The units of a course of which the student has a submission that passes."""
    query = (
        sa.select(submissions.c.unit)
        .distinct()
        .select_from(submissions.join(results, results.c.run == submissions.c.run))
        .where(
            submissions.c.course == course, submissions.c.student == student, results.c.verdict == Verdict.PASS.value
        )
    )
    return frozenset(connection.execute(query).scalars())


def load(connection: sa.Connection, stored: Stored) -> Submission:
    """The submission as intake left it."""
    query = (
        sa.select(files.c.kind, files.c.path, blob_rows.c.data)
        .join(blob_rows, blob_rows.c.digest == files.c.digest)
        .where(files.c.submission == stored.id)
        .order_by(files.c.kind, files.c.path)
    )
    rows = [(row.kind, row.path, zlib.decompress(row.data)) for row in connection.execute(query)]
    return Submission(
        unit=stored.unit,
        files={path: data for kind, path, data in rows if kind == "unit"},
        tests=tuple(File(path, data) for kind, path, data in rows if kind == "test"),
        notes=stored.notes,
    )


def _unfinished(connection: sa.Connection, student: str | None, token: str) -> int:
    """How many submissions of the student are being graded or wait; what teachers regrade holds no student back."""
    kind, owner = ("student", student) if student is not None else ("token", token)
    return connection.execute(_UNFINISHED_OF[kind], {"owner": owner}).scalar_one()


def _add_files(connection: sa.Connection, submission_id: str, submission: Submission) -> None:
    parts: list[tuple[str, str, bytes]] = [("unit", path, data) for path, data in submission.files.items()]
    parts += [("test", file.path, file.data) for file in submission.tests]
    digests = blobs.add(connection, [data for _, _, data in parts])
    connection.execute(
        _ADD_FILE,
        [
            {"submission": submission_id, "kind": kind, "path": path, "digest": digest}
            for (kind, path, _), digest in zip(parts, digests, strict=True)
        ],
    )


def _stored(row: sa.Row[tuple[object, ...]]) -> Stored:
    return Stored(
        id=row.id,
        unit=row.unit,
        course=row.course,
        student=row.student,
        token=row.token,
        received_at=row.received_at,
        digest=row.digest,
        notes=tuple(IntakeNote(**note) for note in json.loads(row.notes)),
        run=row.run,
    )
