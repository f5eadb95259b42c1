"""The life of a run, queued → running → done | error | cancelled, as conditional updates: each move happens once.

A run that is delivered again (its worker died) is claimed again, up to the allowed attempts; a result is written in
the same transaction that ends the run, and only if the run has not ended.
"""

import json
import zlib
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

from grader.report import Report, Verdict
from service import audit
from service.database import insert_or_ignore
from service.tables import outcomes, results, runs, submissions, workers

ALIVE_SECONDS = 15.0  # a worker that has not written for so long counts as dead


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
    phase: str
    done: int
    total: int
    kind: str = "first"  # or "regrade", whose report may be no other run's


@dataclass(frozen=True)
class Worker:
    """A worker that wrote lately. `missing` says in words what it lacks to grade."""

    id: str
    slots: int
    ready: bool
    missing: tuple[str, ...]
    grading: str = ""  # digest of what its grades depend on but the files, see service/conditions.py


_UNFINISHED = runs.c.status.in_([Status.QUEUED.value, Status.RUNNING.value])


def find(connection: sa.Connection, run_id: str) -> RunState | None:
    row = connection.execute(sa.select(runs).where(runs.c.id == run_id)).one_or_none()
    return _state(row) if row is not None else None


def unfinished(connection: sa.Connection) -> dict[str, int]:
    """The runs that have not ended, in their order, with their priorities."""
    query = sa.select(runs.c.id, runs.c.priority).where(_UNFINISHED)
    return {row.id: row.priority for row in connection.execute(query.order_by(runs.c.priority, runs.c.queued_at))}


def claim(connection: sa.Connection, run_id: str, worker: str, now: float) -> RunState | None:
    """Begin an attempt at a run, or say None: it has ended, or never was."""
    query = (
        runs.update()
        .where(runs.c.id == run_id, _UNFINISHED)
        .values(
            status=Status.RUNNING.value,
            worker=worker,
            attempts=runs.c.attempts + 1,
            started_at=now,
            phase="",
            done=0,
            total=0,
        )
    )
    return find(connection, run_id) if connection.execute(query).rowcount else None


def hand_back(connection: sa.Connection, worker: str, run_id: str | None = None) -> None:
    """Put what the worker is at, or one run of it, back into the queue; an attempt that we ended does not count."""
    mine = [runs.c.worker == worker, runs.c.status == Status.RUNNING.value]
    if run_id is not None:
        mine.append(runs.c.id == run_id)
    connection.execute(
        runs.update()
        .where(*mine)
        .values(status=Status.QUEUED.value, attempts=runs.c.attempts - 1, started_at=None, worker=None)
    )


def show_progress(connection: sa.Connection, run_id: str, phase: str, done: int, total: int) -> None:
    """Note how far a run is; nothing happens to one that does not run."""
    connection.execute(
        runs.update()
        .where(runs.c.id == run_id, runs.c.status == Status.RUNNING.value)
        .values(phase=phase, done=done, total=total)
    )


def cancel(connection: sa.Connection, run_id: str, now: float) -> bool:
    """Cancel a run that waits; False if it does not wait (any more)."""
    query = (
        runs.update()
        .where(runs.c.id == run_id, runs.c.status == Status.QUEUED.value)
        .values(status=Status.CANCELLED.value, finished_at=now)
    )
    return connection.execute(query).rowcount == 1


def finish(connection: sa.Connection, run_id: str, report: Report, now: float) -> bool:
    """End a run with its report; False, and nothing written, if it has ended before."""
    status = Status.ERROR if report.verdict is Verdict.GRADER_ERROR else Status.DONE
    moved = connection.execute(
        runs.update().where(runs.c.id == run_id, _UNFINISHED).values(status=status.value, finished_at=now)
    )
    if not moved.rowcount:
        return False
    add_result(connection, run_id, report, now)
    if status is Status.DONE:
        _let_count(connection, run_id, report, now)
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
    audit.record(
        connection,
        who=None,
        action="grade.change",
        object=before.id,
        student=before.student,
        course=before.course,
        unit=before.unit,
        detail={
            "before": {"run": before.run, "verdict": before.verdict, "score": before.score},
            "after": {"run": run_id, "verdict": report.verdict.value, "score": report.score},
        },
        now=now,
    )


def report(connection: sa.Connection, run_id: str) -> Report | None:
    """The whole report of a run; None while there is none, and for a run that was cancelled."""
    packed = connection.execute(sa.select(results.c.report).where(results.c.run == run_id)).scalar_one_or_none()
    return Report.model_validate_json(zlib.decompress(packed)) if packed is not None else None


def beat(connection: sa.Connection, worker: Worker, now: float) -> None:
    """Say that the worker is alive, and what it lacks."""
    values = {
        "beat_at": now,
        "slots": worker.slots,
        "ready": worker.ready,
        "missing": json.dumps(worker.missing),
        "grading": worker.grading,
    }
    if not connection.execute(workers.update().where(workers.c.id == worker.id).values(values)).rowcount:
        connection.execute(insert_or_ignore(connection, workers, {"id": worker.id, **values}))


def leave(connection: sa.Connection, worker_id: str) -> None:
    """Forget a worker that stops."""
    connection.execute(workers.delete().where(workers.c.id == worker_id))


def alive(connection: sa.Connection, now: float) -> list[Worker]:
    """The workers that wrote within ALIVE_SECONDS."""
    query = sa.select(workers).where(workers.c.beat_at > now - ALIVE_SECONDS)
    return [
        Worker(row.id, row.slots, row.ready, tuple(json.loads(row.missing)), row.grading)
        for row in connection.execute(query)
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
        phase=row.phase,
        done=row.done,
        total=row.total,
        kind=row.kind,
    )
