"""The life of a run, queued → running → done | error | cancelled, as conditional updates: each move happens once.

An attempt belongs to the worker that claimed it until that ends it or is taken over: progress and results are fenced
by (worker, attempts), so that one who was thought dead changes nothing. A result is written in the transaction that
ends the run. Every change makes the run's `version` grow. (docs/decisions/0120)
"""

import json
import zlib
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

from grader.report import Report, Verdict
from service import audit, outbox
from service.audit import By
from service.classroom import facts
from service.database import insert_or_ignore
from service.tables import outcomes, results, runs, submissions, workers

ALIVE_SECONDS = 15.0  # a worker that has not written for so long counts as dead

FIRST = "first"  # the kind of a submission's own run
REGRADE = "regrade"  # the kind of a run that a teacher asked for
TRIAL = "trial"  # the kind of a run that counts only if a teacher lets it, see service/regrading


class Status(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    ERROR = "error"  # we failed; the report says so
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self not in (Status.QUEUED, Status.RUNNING)


@dataclass(frozen=True)
class RunState:
    id: str
    submission: str
    status: Status
    priority: int
    queued_at: float
    started_at: float | None
    finished_at: float | None
    attempts: int
    worker: str | None
    phase: str
    done: int
    total: int
    version: int
    kind: str  # "first"; or "regrade" or "trial", whose report may be no other run's
    cancel_at: float | None  # when somebody asked to stop it while it ran
    quarantined: bool  # the worker died in every attempt


@dataclass(frozen=True)
class Worker:
    """A worker that wrote lately. `missing` says in words what it lacks to grade."""

    id: str
    slots: int
    ready: bool
    missing: tuple[str, ...]
    grading: str = ""  # digest of what its grades depend on but the files, see service/conditions.py
    stats: str = "{}"  # JSON, see service/stats.py


def _is_under_way(run: object, worker: object, attempt: object) -> sa.ColumnElement[bool]:
    """That the attempt which `claim` gave out goes on, and is still that worker's."""
    return sa.and_(
        runs.c.id == run,
        runs.c.status == Status.RUNNING.value,
        runs.c.worker == worker,
        runs.c.attempts == attempt,
    )


def _still(claimed: RunState) -> sa.ColumnElement[bool]:
    return _is_under_way(claimed.id, claimed.worker, claimed.attempts)


_BY_ID = sa.select(runs).where(runs.c.id == sa.bindparam("run"))
_ALIVE = sa.select(workers).where(workers.c.beat_at > sa.bindparam("since"))
_ADD = runs.insert()
_SHOW_PROGRESS = (
    runs.update()
    .where(_is_under_way(sa.bindparam("run"), sa.bindparam("by"), sa.bindparam("attempt")))
    .values(
        phase=sa.bindparam("in_phase"),
        done=sa.bindparam("so_far"),
        total=sa.bindparam("of"),
        version=runs.c.version + 1,
    )
)
UNFINISHED = runs.c.status.in_([Status.QUEUED.value, Status.RUNNING.value])


def find(connection: sa.Connection, run_id: str) -> RunState | None:
    row = connection.execute(_BY_ID, {"run": run_id}).one_or_none()
    return _state(row) if row is not None else None


def waiting(connection: sa.Connection) -> dict[str, int]:
    """The runs that wait, in their order, with their priorities."""
    query = sa.select(runs.c.id, runs.c.priority).where(runs.c.status == Status.QUEUED.value)
    return {row.id: row.priority for row in connection.execute(query.order_by(runs.c.priority, runs.c.queued_at))}


def any_waits(connection: sa.Connection) -> bool:
    query = sa.select(runs.c.id).where(runs.c.status == Status.QUEUED.value).limit(1)
    return connection.execute(query).first() is not None


def add(
    connection: sa.Connection,
    run_id: str,
    submission: str,
    unit: str,
    priority: int,
    now: float,
    *,
    kind: str = FIRST,
    requested_by: str | None = None,
    reason: str = "",
) -> None:
    """Store a run that waits; the caller has it delivered in the same transaction."""
    row = {
        "id": run_id,
        "submission": submission,
        "unit": unit,
        "status": Status.QUEUED.value,
        "priority": priority,
        "queued_at": now,
        "attempts": 0,
        "phase": "",
        "done": 0,
        "total": 0,
        "kind": kind,
        "requested_by": requested_by,
        "reason": reason,
    }
    connection.execute(_ADD, row)


def claim(connection: sa.Connection, run_id: str, worker: str, now: float) -> RunState | None:
    """Begin an attempt at a run that waits, or that a process of this worker's name left running.

    None: it has ended, never was, or is another worker's.
    """
    left = sa.and_(runs.c.status == Status.RUNNING.value, runs.c.worker == worker)
    query = (
        runs.update()
        .where(runs.c.id == run_id, sa.or_(runs.c.status == Status.QUEUED.value, left))
        .values(
            status=Status.RUNNING.value,
            worker=worker,
            attempts=runs.c.attempts + 1,
            started_at=now,
            phase="",
            done=0,
            total=0,
            version=runs.c.version + 1,
        )
    )
    return find(connection, run_id) if connection.execute(query).rowcount else None


def hand_back(
    connection: sa.Connection, worker: str | None, now: float, run_id: str | None = None, *, died: bool = False
) -> list[str]:
    """Put what the worker is at, or one run of it, back into the queue, and what was to be cancelled out of it.

    An attempt that we ended does not count, one in which the worker `died` does. Returns the runs that wait again.
    """
    mine = [runs.c.worker == worker, runs.c.status == Status.RUNNING.value]
    if run_id is not None:
        mine.append(runs.c.id == run_id)
    stopping = (
        runs.update()
        .where(*mine, runs.c.cancel_at.is_not(None))
        .values(status=Status.CANCELLED.value, finished_at=now, version=runs.c.version + 1)
        .returning(runs.c.id)
    )
    if stopped := connection.execute(stopping).scalars().all():
        outbox.run_ended(connection, sa.and_(runs.c.id.in_(stopped), runs.c.kind != TRIAL), now)
    query = (
        runs.update()
        .where(*mine)
        .values(
            status=Status.QUEUED.value,
            attempts=runs.c.attempts - (0 if died else 1),
            started_at=None,
            worker=None,
            phase="",
            done=0,
            total=0,
            version=runs.c.version + 1,
        )
        .returning(runs.c.id)
    )
    return list(connection.execute(query).scalars())


def show_progress(connection: sa.Connection, claimed: RunState, phase: str, done: int, total: int) -> None:
    """Note how far an attempt is; nothing happens if it is over."""
    attempt = {"run": claimed.id, "by": claimed.worker, "attempt": claimed.attempts}
    connection.execute(_SHOW_PROGRESS, {**attempt, "in_phase": phase, "so_far": done, "of": total})


def cancel(connection: sa.Connection, run_id: str, now: float) -> bool:
    """Cancel a run that waits; False if it does not wait (any more)."""
    query = (
        runs.update()
        .where(runs.c.id == run_id, runs.c.status == Status.QUEUED.value)
        .values(status=Status.CANCELLED.value, finished_at=now, version=runs.c.version + 1)
    )
    return _ended(connection, query, run_id, now)


def ask_to_stop(connection: sa.Connection, run_id: str, now: float) -> bool:
    """Ask the worker to stop a run, which then ends as cancelled; False if it does not run. Twice is once."""
    query = (
        runs.update()
        .where(runs.c.id == run_id, runs.c.status == Status.RUNNING.value)
        .values(cancel_at=sa.func.coalesce(runs.c.cancel_at, now), version=runs.c.version + 1)
    )
    return connection.execute(query).rowcount == 1


def asked_to_stop(connection: sa.Connection, worker: str) -> list[str]:
    """The runs of this worker that somebody wants stopped."""
    mine = (runs.c.worker == worker, runs.c.status == Status.RUNNING.value)
    return list(connection.execute(sa.select(runs.c.id).where(*mine, runs.c.cancel_at.is_not(None))).scalars())


def stopped(connection: sa.Connection, claimed: RunState, now: float) -> bool:
    """End an attempt as cancelled; False if it is over already."""
    query = (
        runs.update()
        .where(_still(claimed))
        .values(status=Status.CANCELLED.value, finished_at=now, version=runs.c.version + 1)
    )
    return _ended(connection, query, claimed.id, now)


def _ended(connection: sa.Connection, query: sa.Update, run_id: str, now: float) -> bool:
    """Whether the query ended the run; then those who wait for its end are told."""
    if connection.execute(query).rowcount != 1:
        return False
    outbox.run_ended(connection, sa.and_(runs.c.id == run_id, runs.c.kind != TRIAL), now)
    return True


def finish(
    connection: sa.Connection, claimed: RunState, report: Report, now: float, *, quarantined: bool = False
) -> bool:
    """End the attempt that `claim` began with its report; False, and nothing written, if it is over already.

    `quarantined`: it is given up because its worker died in every attempt.
    """
    status = Status.ERROR if report.verdict is Verdict.GRADER_ERROR else Status.DONE
    moved = connection.execute(
        runs.update()
        .where(_still(claimed))
        .values(status=status.value, finished_at=now, quarantined=quarantined, version=runs.c.version + 1)
    )
    if not moved.rowcount:
        return False
    add_result(connection, claimed.id, report, now)
    if claimed.kind == TRIAL:  # nobody's grade has changed
        return True
    if status is Status.DONE:
        _let_count(connection, claimed.id, report, now)
    outbox.run_ended(connection, runs.c.id == claimed.id, now)
    return True


def add_result(connection: sa.Connection, run_id: str, report: Report, now: float) -> None:
    """Store the report of a run that ends in this transaction, and what the statistics count of it."""
    row = {
        "run": run_id,
        "verdict": report.verdict.value,
        "score": report.score,
        "mutation_score": report.mutation.score if report.mutation else None,
        "seed": str(report.integrity.seed) if report.integrity else "",
        "report": zlib.compress(report.model_dump_json().encode()),
        "created_at": now,
    }
    connection.execute(insert_or_ignore(connection, results, row))
    if found := _outcomes(run_id, report):
        connection.execute(outcomes.insert(), found)
    facts.keep(connection, run_id, report)


def _let_count(connection: sa.Connection, run_id: str, report: Report, now: float) -> None:
    """Make a regrade that is done its submission's grade; a failure of ours never is. (docs/decisions/0131)"""
    query = (
        sa.select(submissions, results.c.verdict, results.c.score)
        .select_from(
            runs.join(submissions, submissions.c.id == runs.c.submission).outerjoin(
                results, results.c.run == submissions.c.run
            )
        )
        .where(runs.c.id == run_id, submissions.c.run != run_id)
    )
    before = connection.execute(query).one_or_none()
    if before is None:
        return
    connection.execute(submissions.update().where(submissions.c.id == before.id).values(run=run_id))
    facts.let_count(connection, [before.id])
    audit.note(
        connection,
        By(None, now),
        action="grade.change",
        object=before.id,
        student=before.student,
        course=before.course,
        unit=before.unit,
        detail={
            "before": {"run": before.run, "verdict": before.verdict, "score": before.score},
            "after": {"run": run_id, "verdict": report.verdict.value, "score": report.score},
        },
    )


def report(connection: sa.Connection, run_id: str) -> Report | None:
    """The whole report of a run; None while there is none, and for a run that was cancelled."""
    packed = connection.execute(sa.select(results.c.report).where(results.c.run == run_id)).scalar_one_or_none()
    return Report.model_validate_json(zlib.decompress(packed)) if packed is not None else None


def beat(connection: sa.Connection, worker: Worker, now: float, *, first: bool = True) -> bool:
    """Say that the worker is alive, and what it lacks. Only the `first` time a row is made for it.

    False: the worker has no row any more, because another took over its runs.
    """
    values = {
        "beat_at": now,
        "slots": worker.slots,
        "ready": worker.ready,
        "missing": json.dumps(worker.missing),
        "grading": worker.grading,
        "stats": worker.stats,
    }
    if connection.execute(workers.update().where(workers.c.id == worker.id).values(values)).rowcount:
        return True
    if first:
        connection.execute(insert_or_ignore(connection, workers, {"id": worker.id, **values}))
    return first


def leave(connection: sa.Connection, worker_id: str) -> None:
    """Forget a worker that stops."""
    connection.execute(workers.delete().where(workers.c.id == worker_id))


def alive(connection: sa.Connection, now: float) -> list[Worker]:
    """The workers that wrote within ALIVE_SECONDS."""
    return [
        Worker(row.id, row.slots, row.ready, tuple(json.loads(row.missing)), row.grading)
        for row in connection.execute(_ALIVE, {"since": now - ALIVE_SECONDS})
    ]


def _outcomes(run_id: str, report: Report) -> list[dict[str, str]]:
    found = []
    if report.course_tests is not None:
        found += [("course_test", test.id, test.outcome.value) for test in report.course_tests.tests]
    if report.mutation is not None:
        found += [("mutant", mutant.id, mutant.status.value) for mutant in report.mutation.mutants]
    return [{"run": run_id, "kind": kind, "name": name, "outcome": outcome} for kind, name, outcome in found]


def _state(row: sa.Row[tuple[object, ...]]) -> RunState:
    return RunState(
        id=row.id,
        submission=row.submission,
        status=Status(row.status),
        priority=row.priority,
        queued_at=row.queued_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        attempts=row.attempts,
        worker=row.worker,
        phase=row.phase,
        done=row.done,
        total=row.total,
        version=row.version,
        kind=row.kind,
        cancel_at=row.cancel_at,
        quarantined=row.quarantined,
    )
