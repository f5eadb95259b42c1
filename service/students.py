"""A student's name goes in; all that is stored of the student comes out as a zip, or is erased.

Erasing takes three transactions: tokens are revoked and runs stopped; rows are deleted and what must stay is
pseudonymised; blobs that nobody names any more are collected. After the second nothing names the student, whatever
happens to the third. (docs/decisions/0132)
"""

import json
import time
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

import sqlalchemy as sa

from grader.report import Level, Report
from grader.views import for_role
from service import audit, blobs, database, feedback, runs
from service import submissions as stored_submissions
from service.accounts import Account
from service.audit import By
from service.database import reading, writing
from service.pseudonyms import in_json, in_segments, in_text, new_pseudonym
from service.queue import Queue
from service.runs import Status
from service.tables import audit as audit_rows
from service.tables import blobs as blob_rows
from service.tables import (
    deliveries,
    extensions,
    files,
    hints,
    idempotency,
    invitations,
    lti_people,
    members,
    outcomes,
    overrides,
    quiz_answers,
    results,
    sessions,
    submissions,
    tokens,
    users,
)
from service.tables import runs as run_rows

POLL_SECONDS = 0.25
BLOBS_AT_A_TIME = 500

_FREE_TEXT = (tokens.c.label, extensions.c.reason, overrides.c.reason, run_rows.c.reason)


@dataclass(frozen=True)
class Erased:
    """What is no longer there. `pseudonym` is what the audit log calls the student from now on."""

    pseudonym: str
    submissions: int
    runs: int
    tokens: int
    blobs: int


def is_known(connection: sa.Connection, student: str) -> bool:
    """Whether anything stored names the student."""
    if "\0" in student:  # PostgreSQL refuses to compare it
        return False
    named = (submissions, tokens, users, extensions, overrides, hints, quiz_answers, deliveries, audit_rows)
    columns = [table.c.student for table in named]
    return any(
        connection.execute(sa.select(column).where(column == student).limit(1)).first() is not None
        for column in columns
    )


# -- export ----------------------------------------------------------------------------------------------------------


def export(connection: sa.Connection, student: str, target: IO[bytes], now: float) -> int:
    """Write a zip of everything stored of the student; returns the number of submissions.

    Reports are those the student may see now: what else they hold is the course's. A token's hash is left out.
    """
    mine = sa.select(submissions).where(submissions.c.student == student)
    found = connection.execute(mine.order_by(submissions.c.received_at, submissions.c.id)).all()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        rows = {
            "student": student,
            "exported_at": now,
            "submissions": [_export_submission(connection, archive, row, now) for row in found],
            "tokens": _dicts(connection, sa.select(tokens).where(tokens.c.student == student), without=("digest",)),
            "account": _dicts(connection, sa.select(users).where(users.c.student == student), without=("password",)),
            "courses": _dicts(connection, sa.select(members).where(members.c.user.in_(_user_of(student)))),
            "platforms": _dicts(connection, sa.select(lti_people).where(lti_people.c.user.in_(_user_of(student)))),
            "sessions": _dicts(
                connection, sa.select(sessions).where(sessions.c.user.in_(_user_of(student))), without=("digest",)
            ),
            "extensions": _dicts(
                connection, sa.select(extensions).where(extensions.c.student == student), without=("token",)
            ),
            "overrides": _dicts(
                connection, sa.select(overrides).where(overrides.c.student == student), without=("token",)
            ),
            "quiz_answers": _dicts(connection, sa.select(quiz_answers).where(quiz_answers.c.student == student)),
            "hints": _dicts(
                connection,
                sa.select(hints).where(hints.c.student == student).order_by(hints.c.unlocked_at, hints.c.number),
            ),
            "deliveries": _dicts(
                connection,
                sa.select(deliveries).where(deliveries.c.student == student).order_by(deliveries.c.created_at),
                without=("target",),
            ),
            "idempotency": _dicts(connection, sa.select(idempotency).where(_posted_by(student))),
            "audit": _dicts(
                connection,
                sa.select(audit_rows).where(audit_rows.c.student == student).order_by(audit_rows.c.id),
                without=("token",),
            ),
        }
        _write(archive, "student.json", json.dumps(rows, indent=2).encode())
    return len(found)


def _export_submission(
    connection: sa.Connection, archive: zipfile.ZipFile, row: sa.Row[Any], now: float
) -> dict[str, object]:
    """Put a submission's files and reports into the archive; returns its rows."""
    found = stored_submissions.find(connection, row.id)
    level = feedback.of(connection, found, now).level if found is not None else Level.NONE
    stored = sa.select(files.c.kind, files.c.path, files.c.digest, blob_rows.c.data)
    stored = stored.join(blob_rows, blob_rows.c.digest == files.c.digest).where(files.c.submission == row.id)
    held = []
    for file in connection.execute(stored.order_by(files.c.kind, files.c.path)):
        name = f"submissions/{row.id}/files/{file.kind}/{file.path}"
        _write(archive, name, zlib.decompress(file.data))
        held.append({"kind": file.kind, "path": file.path, "digest": file.digest, "file": name})
    made = _dicts(connection, sa.select(run_rows).where(run_rows.c.submission == row.id), without=("requested_by",))
    for run in made:
        result = connection.execute(sa.select(results).where(results.c.run == run["id"])).one_or_none()
        if result is not None:
            name = f"submissions/{row.id}/reports/{run['id']}.json"
            report = Report.model_validate_json(zlib.decompress(result.report))
            _write(archive, name, for_role(report, "student", level).to_json().encode())
            of_run = sa.select(outcomes.c.kind, outcomes.c.name, outcomes.c.outcome).where(outcomes.c.run == run["id"])
            withheld = {"run", "report", *(() if level.tells(Level.COUNTS) else ("mutation_score",))}
            run["result"] = {
                **{key: value for key, value in result._mapping.items() if key not in withheld},
                "report": name,
                "outcomes": _dicts(connection, of_run) if level.tells(Level.NAMES) else [],
            }
    return {**row._mapping, "files": held, "runs": made}


def _dicts(connection: sa.Connection, query: sa.Select[Any], without: Sequence[str] = ()) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in row._mapping.items() if key not in without} for row in connection.execute(query)
    ]


def _write(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


# -- erase -----------------------------------------------------------------------------------------------------------


def erase(
    engine: sa.Engine,
    queue: Queue,
    student: str,
    *,
    who: Account | None,
    request_id: str = "",
    wait_seconds: float = 10.0,
    clock: Callable[[], float] = time.time,
) -> Erased:
    """Delete or pseudonymise everything that names the student.

    What is being graded is given `wait_seconds` to stop; its late result is dropped in any case.
    """
    with writing(engine) as connection:
        waiting = _stop(connection, student, clock())
    for run in waiting:
        queue.cancel(run)
    give_up_at = time.monotonic() + wait_seconds
    while time.monotonic() < give_up_at and _still_running(engine, student):
        time.sleep(POLL_SECONDS)
    with writing(engine) as connection:
        pseudonym, gone, digests = _erase_rows(connection, student)
        audit.note(
            connection,
            By(who, clock(), request_id),
            action="student.erase",
            object=pseudonym,
            student=pseudonym,
            detail={kind: len(ids) for kind, ids in gone.items()},
        )
    queue.forget(gone["runs"])
    collected = 0
    for start in range(0, len(digests), BLOBS_AT_A_TIME):
        with writing(engine) as connection:
            collected += blobs.collect(connection, digests[start : start + BLOBS_AT_A_TIME])
    database.empty_journal(engine)
    return Erased(pseudonym, len(gone["submissions"]), len(gone["runs"]), len(gone["tokens"]), collected)


def _stop(connection: sa.Connection, student: str, now: float) -> list[str]:
    """Revoke the student's tokens, cancel what waits, ask what runs to stop; returns the runs that waited."""
    connection.execute(
        tokens.update().where(tokens.c.student == student, tokens.c.revoked_at.is_(None)).values(revoked_at=now)
    )
    waiting = []
    for run in _runs(connection, student, Status.QUEUED, Status.RUNNING):
        if runs.cancel(connection, run, now):
            waiting.append(run)
        else:
            runs.ask_to_stop(connection, run, now)
    return waiting


def _still_running(engine: sa.Engine, student: str) -> bool:
    with reading(engine) as connection:
        return bool(_runs(connection, student, Status.RUNNING))


def _runs(connection: sa.Connection, student: str, *statuses: Status) -> list[str]:
    query = (
        sa.select(run_rows.c.id)
        .join(submissions, submissions.c.id == run_rows.c.submission)
        .where(submissions.c.student == student)
    )
    if statuses:
        query = query.where(run_rows.c.status.in_([status.value for status in statuses]))
    return list(connection.execute(query).scalars())


def _erase_rows(connection: sa.Connection, student: str) -> tuple[str, dict[str, list[str]], list[str]]:
    """The pseudonym, the ids of what is gone, and the digests of the blobs that were named."""
    pseudonym = new_pseudonym()
    mine = sa.select(submissions.c.id).where(submissions.c.student == student)
    gone = {
        "submissions": list(connection.execute(mine).scalars()),
        "runs": _runs(connection, student),
        "tokens": list(connection.execute(sa.select(tokens.c.id).where(tokens.c.student == student)).scalars()),
    }
    named = sa.select(files.c.digest).distinct().where(files.c.submission.in_(mine))
    digests = list(connection.execute(named).scalars())
    connection.execute(idempotency.delete().where(_posted_by(student)))
    connection.execute(deliveries.delete().where(deliveries.c.student == student))
    # Runs, results, outcomes, files and cache entries go with their submission.
    connection.execute(submissions.delete().where(submissions.c.student == student))
    connection.execute(extensions.delete().where(extensions.c.student == student))
    connection.execute(overrides.delete().where(overrides.c.student == student))
    connection.execute(quiz_answers.delete().where(quiz_answers.c.student == student))
    connection.execute(hints.delete().where(hints.c.student == student))  # whoever unlocks holds the submission
    for table in (sessions, invitations, members):
        connection.execute(table.delete().where(table.c.user.in_(_user_of(student))))
    connection.execute(users.delete().where(users.c.student == student))
    for token in gone["tokens"]:  # the row stays: the audit log names it
        values = {"student": pseudonym, "label": "", "digest": f"{pseudonym}-{token}"[:64]}
        connection.execute(tokens.update().where(tokens.c.id == token).values(values))
    for column in _FREE_TEXT:
        _replace(connection, column, student, in_text(student, pseudonym))
    connection.execute(audit_rows.update().where(audit_rows.c.student == student).values(student=pseudonym))
    _replace(connection, audit_rows.c.object, student, in_segments(student, pseudonym))
    in_detail = in_json(student, pseudonym)
    _replace(connection, audit_rows.c.detail, student, lambda text: json.dumps(in_detail(json.loads(text))))
    return pseudonym, gone, digests


def _posted_by(student: str) -> sa.ColumnElement[bool]:
    return sa.or_(
        idempotency.c.token.in_(sa.select(tokens.c.id).where(tokens.c.student == student)),
        idempotency.c.submission.in_(sa.select(submissions.c.id).where(submissions.c.student == student)),
    )


def _user_of(student: str) -> sa.Select[tuple[str]]:
    return sa.select(users.c.id).where(users.c.student == student)


def _replace(connection: sa.Connection, column: sa.Column[str], student: str, replaced: Callable[[str], str]) -> None:
    """Change the texts of a column that seem to hold the name, also as JSON writes it."""
    table = column.table
    keys = list(table.primary_key.columns)
    as_json = json.dumps(student)[1:-1]
    seem = sa.or_(column.contains(student, autoescape=True), column.contains(as_json, autoescape=True))
    for row in connection.execute(sa.select(*keys, column.label("text")).where(seem)).all():
        text = replaced(row.text)
        if text != row.text:
            this = sa.and_(*(key == row._mapping[key] for key in keys))
            connection.execute(sa.update(table).where(this).values({column: text}))
