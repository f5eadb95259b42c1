"""Submissions that wait in batches go in, a few at a time, and get a run whose report counts for nothing; what a trial
shows against what counts is noted when it ends.

Only a few trials wait in the queue, behind everything else: however large a batch is, intake does not close for it, and
dropping it takes it back out. (docs/decisions/0197)
"""

import sqlalchemy as sa

from grader.report import Report
from grader.unit import Unit
from service import runs, submissions
from service.database import take_turns
from service.regrading import moves, versions
from service.regrading.batches import State
from service.submissions import PRIORITY_CLASS, Stored
from service.tables import regrade_items, regrades
from service.tables import runs as run_rows

PRIORITY = 3 * PRIORITY_CLASS  # behind regrades that count, which stand behind every student's own submissions
MOST_WAITING = 20


def waits(connection: sa.Connection) -> bool:
    """Whether any submission waits for its trial."""
    query = sa.select(regrade_items.c.submission).where(regrade_items.c.state == State.WAITING.value)
    return connection.execute(query.limit(1)).first() is not None


def feed(connection: sa.Connection, now: float) -> dict[str, int]:
    """Store runs for what waits until MOST_WAITING trials are in the queue, the oldest batch first; the caller enqueues
    what is returned, ids and priorities. What is lost on the way there, a worker's sweep finds."""
    take_turns(connection, "trials")
    waiting = sa.select(sa.func.count()).select_from(run_rows)
    waiting = waiting.where(run_rows.c.status == runs.Status.QUEUED.value, run_rows.c.kind == runs.TRIAL)
    room = MOST_WAITING - connection.execute(waiting).scalar_one()
    if room <= 0:
        return {}
    query = (
        sa.select(regrade_items.c.regrade, regrade_items.c.submission, regrades.c.unit, regrades.c.token)
        .add_columns(regrades.c.reason)
        .join(regrades, regrades.c.id == regrade_items.c.regrade)
        .where(regrade_items.c.state == State.WAITING.value)
        .order_by(regrades.c.created_at, regrades.c.id, regrade_items.c.submission)
        .limit(room)
    )
    fed = {}
    for row in connection.execute(query).all():
        run_id = submissions.new_id()
        runs.add(
            connection,
            run_id,
            row.submission,
            row.unit,
            PRIORITY,
            now,
            kind=runs.TRIAL,
            requested_by=row.token,
            reason=row.reason,
        )
        this = (regrade_items.c.regrade == row.regrade, regrade_items.c.submission == row.submission)
        connection.execute(regrade_items.update().where(*this).values(run=run_id, state=State.TRIAL.value))
        fed[run_id] = PRIORITY
    return fed


def ended(
    connection: sa.Connection, run_id: str, stored: Stored, unit: Unit | None, report: Report, now: float
) -> None:
    """Note, in the transaction that ends a run, by what state of its unit it graded; of a trial, what it shows."""
    if unit is not None:
        versions.note(connection, unit, report, now)
    item = connection.execute(sa.select(regrade_items).where(regrade_items.c.run == run_id)).one_or_none()
    if item is None:
        return
    before = runs.report(connection, item.before_run)
    why = moves.compared(before, report, _changes(connection, stored.unit, before, report))
    values = {"moved": moves.is_moved(why), "why": why.model_dump_json()}
    connection.execute(regrade_items.update().where(regrade_items.c.run == run_id).values(values))


def _changes(
    connection: sa.Connection, unit: str, before: Report | None, after: Report
) -> tuple[versions.Change, ...] | None:
    """What was changed in the unit between two reports; None if it differs and one of the states was not kept."""
    old, new = (_digest(report) for report in (before, after))
    if old == new:
        return ()
    parts = [versions.parts(connection, unit, digest) for digest in (old, new)]
    if parts[0] is None or parts[1] is None:
        return None
    return versions.changes(parts[0], parts[1])


def _digest(report: Report | None) -> str:
    return report.integrity.digests.get("unit", "") if report is not None and report.integrity is not None else ""
