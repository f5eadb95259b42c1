"""A submission and a reason go in; another run of it is stored and enqueued. All runs of a submission come out.

Which run counts is decided where a run ends, in service/runs.py. (docs/decisions/0131)
"""

from dataclasses import dataclass

import sqlalchemy as sa

from service import submissions
from service.accounts import Account
from service.audit import By
from service.queue import Queue
from service.runs import REGRADE, TRIAL, Status
from service.runs import add as add_run
from service.submissions import PRIORITY_CLASS, Stored
from service.tables import results, runs, tokens
from service.tables import submissions as submission_rows

REGRADE_PRIORITY = 2 * PRIORITY_CLASS  # behind every student's own submissions


class Refused(Exception):
    """The submission cannot be regraded now: the run that counts, or the regrade before, has this status."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


@dataclass(frozen=True)
class RunRow:
    """One run of a submission. `counts`: it is the one whose report is the submission's."""

    id: str
    kind: str
    status: Status
    counts: bool
    queued_at: float
    started_at: float | None
    finished_at: float | None
    attempts: int
    quarantined: bool
    cached: bool
    reason: str
    requested_by: str | None
    requester: str
    verdict: str | None
    score: float | None
    mutation_score: float | None


def request(
    connection: sa.Connection,
    queue: Queue,
    stored: Stored,
    *,
    who: Account,
    reason: str,
    request_id: str = "",
    now: float,
) -> str:
    """Store and enqueue a regrade, and note who wants it; returns the new run's id. Raises Refused."""
    # Two requests at once would both find nothing unfinished: the second waits here for the first.
    current = connection.execute(
        sa.select(submission_rows.c.run).where(submission_rows.c.id == stored.id).with_for_update()
    ).scalar_one()
    statuses = {
        row.id: Status(row.status)
        for row in connection.execute(
            sa.select(runs.c.id, runs.c.status).where(runs.c.submission == stored.id, runs.c.kind != TRIAL)
        )
    }
    if statuses[current] is Status.CANCELLED:
        raise Refused(Status.CANCELLED)
    for status in statuses.values():
        if not status.ended:
            raise Refused(status)
    run_id = submissions.new_id()
    add_run(
        connection,
        run_id,
        stored.id,
        stored.unit,
        REGRADE_PRIORITY,
        now,
        kind=REGRADE,
        requested_by=who.id,
        reason=reason,
    )
    queue.submit(connection, run_id, REGRADE_PRIORITY)
    submissions.note(
        connection,
        stored,
        By(who, now, request_id),
        action="submission.regrade",
        detail={"run": run_id, "reason": reason},
    )
    return run_id


def runs_of(connection: sa.Connection, submission_id: str, *, trials: bool = True) -> list[RunRow]:
    """Every run of a submission, the first one first; those that were only tried if `trials` are wanted."""
    query = (
        sa.select(
            runs,
            submission_rows.c.run.label("counting"),
            sa.func.coalesce(tokens.c.label, "").label("requester"),
            results.c.verdict,
            results.c.score,
            results.c.mutation_score,
        )
        .select_from(
            runs.join(submission_rows, submission_rows.c.id == runs.c.submission)
            .outerjoin(results, results.c.run == runs.c.id)
            .outerjoin(tokens, tokens.c.id == runs.c.requested_by)
        )
        .where(runs.c.submission == submission_id, *([] if trials else [runs.c.kind != TRIAL]))
        .order_by(runs.c.queued_at, runs.c.kind, runs.c.id)
    )
    return [_run(row) for row in connection.execute(query)]


def _run(row: sa.Row[tuple[object, ...]]) -> RunRow:
    return RunRow(
        id=row.id,
        kind=row.kind,
        status=Status(row.status),
        counts=row.id == row.counting,
        queued_at=row.queued_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        attempts=row.attempts,
        quarantined=row.quarantined,
        cached=row.cached_from is not None,
        reason=row.reason,
        requested_by=row.requested_by,
        requester=row.requester,
        verdict=row.verdict,
        score=row.score,
        mutation_score=row.mutation_score,
    )
