"""A batch and what was decided of it go in: its trials count from now on, or are dropped, or what counted before counts
again. How many submissions that was comes out.

Each is done in steps of a few hundred submissions, and each step in a transaction of its own: whoever is cut off
decides again, and what was done is not done twice. A submission for which another run counts by now is left alone.
Every change of a grade is in the audit log, and told in its own transaction. (docs/decisions/0197)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from service import audit, outbox, runs
from service.audit import By
from service.classroom import facts
from service.database import take_turns, writing
from service.queue import Queue
from service.regrading.batches import Batch, State
from service.runs import Status
from service.tables import regrade_items, results
from service.tables import runs as run_rows
from service.tables import submissions as submission_rows

AT_A_TIME = 200

Item = sa.Row[tuple[object, ...]]
"""A submission of the batch, with its student and the run that counts."""


@dataclass(frozen=True)
class Done:
    """How many submissions it was done to; `stale` were left alone, since another run counts for them by now."""

    submissions: int
    stale: int = 0


def apply(engine: sa.Engine, batch: Batch, chosen: Sequence[str] | None, by: By) -> Done:
    """Let the trials that are done count. `chosen` None: all of them."""
    return _swap(engine, batch, chosen, by, State.TRIAL, State.APPLIED)


def roll_back(engine: sa.Engine, batch: Batch, chosen: Sequence[str] | None, by: By) -> Done:
    """Let what counted before count again. `chosen` None: all that was applied."""
    return _swap(engine, batch, chosen, by, State.APPLIED, State.ROLLED_BACK)


def drop(engine: sa.Engine, queue: Queue, batch: Batch, chosen: Sequence[str] | None, by: By) -> Done:
    """Forget the trials, and stop those that have not ended. `chosen` None: all that is not decided."""
    total, last = 0, ""
    undecided = [State.WAITING.value, State.TRIAL.value]
    while True:
        with writing(engine) as connection:
            take_turns(connection, f"regrade {batch.id}")
            found = _some(connection, batch, chosen, regrade_items.c.state.in_(undecided), last)
            for row in found:
                if row.run is not None and not runs.cancel(connection, row.run, by.now):
                    runs.ask_to_stop(connection, row.run, by.now)
            _settle(connection, batch, [row.submission for row in found], State.DROPPED)
            _note(connection, "regrade.drop", batch, len(found), by)
        for row in found:
            if row.run is not None:
                queue.cancel(row.run)
        total += len(found)
        if not found:
            return Done(total)
        last = found[-1].submission


def _swap(engine: sa.Engine, batch: Batch, chosen: Sequence[str] | None, by: By, old: State, new: State) -> Done:
    """Let the other run of each submission count, where the one that is expected does."""
    total, last = 0, ""
    while True:
        with writing(engine) as connection:
            take_turns(connection, f"regrade {batch.id}")
            there, then = _runs(old)
            ready = sa.and_(regrade_items.c.state == old.value, submission_rows.c.run == there)
            if old is State.TRIAL:
                ready = sa.and_(ready, run_rows.c.status == Status.DONE.value)
            found = _some(connection, batch, chosen, ready, last)
            _let_count(connection, batch, found, then, by)
            _settle(connection, batch, [row.submission for row in found], new)
            _note(connection, f"regrade.{'apply' if new is State.APPLIED else 'rollback'}", batch, len(found), by)
        total += len(found)
        if not found:
            return Done(total, _stale(engine, batch, chosen, old))
        last = found[-1].submission


def _runs(state: State) -> tuple[sa.Column[str], sa.Column[str]]:
    """The run that counts in this state of an item, and the other one."""
    both = (regrade_items.c.before_run, regrade_items.c.run)
    return both if state is State.TRIAL else both[::-1]


def _some(
    connection: sa.Connection,
    batch: Batch,
    chosen: Sequence[str] | None,
    wanted: sa.ColumnElement[bool],
    after: str,
) -> Sequence[sa.Row[tuple[object, ...]]]:
    """The next few items behind the submission `after`, with what is stored of their submissions."""
    query = (
        sa.select(
            regrade_items,
            submission_rows.c.student,
            submission_rows.c.run.label("counting"),
        )
        .select_from(_joined())
        .where(regrade_items.c.regrade == batch.id, regrade_items.c.submission > after, wanted, *_among(chosen))
        .order_by(regrade_items.c.submission)
        .limit(AT_A_TIME)
    )
    return connection.execute(query).all()


def _stale(engine: sa.Engine, batch: Batch, chosen: Sequence[str] | None, state: State) -> int:
    there, _ = _runs(state)
    query = (
        sa.select(sa.func.count())
        .select_from(_joined())
        .where(
            regrade_items.c.regrade == batch.id,
            regrade_items.c.state == state.value,
            submission_rows.c.run != there,
            *_among(chosen),
        )
    )
    with engine.connect() as connection:
        return connection.execute(query).scalar_one()


def _joined() -> sa.Join:
    return regrade_items.join(submission_rows, submission_rows.c.id == regrade_items.c.submission).outerjoin(
        run_rows, run_rows.c.id == regrade_items.c.run
    )


def _among(chosen: Sequence[str] | None) -> list[sa.ColumnElement[bool]]:
    return [regrade_items.c.submission.in_(chosen)] if chosen is not None else []


def _let_count(connection: sa.Connection, batch: Batch, found: Sequence[Item], then: sa.Column[str], by: By) -> None:
    """Let the run in the column `then` count for each of these."""
    if not found:
        return
    ids = [row.submission for row in found]
    mine = (regrade_items.c.regrade == batch.id, regrade_items.c.submission == submission_rows.c.id)
    swapped = submission_rows.update().where(submission_rows.c.id.in_(ids))
    connection.execute(swapped.values(run=sa.select(then).where(*mine).scalar_subquery()))
    # From now on they are regrades like any other, also if they are rolled back: students may have read them.
    trials = run_rows.update().where(run_rows.c.id.in_([row.run for row in found]), run_rows.c.kind == runs.TRIAL)
    connection.execute(trials.values(kind=runs.REGRADE))
    facts.let_count(connection, ids)
    graded = _results(connection, [run for row in found for run in (row.before_run, row.run)])
    for row in found:
        after = row._mapping[then.name]
        sides = [{"run": run, **graded.get(run, _NOTHING)} for run in (row.counting, after)]
        if graded.get(row.counting) != graded.get(after):
            _tell(connection, batch, row, dict(zip(("before", "after"), sides, strict=True)), by)


_NOTHING: dict[str, object] = {"verdict": None, "score": None}


def _tell(connection: sa.Connection, batch: Batch, row: Item, change: Mapping[str, object], by: By) -> None:
    """Note a grade that changed, and let whoever is told of the student's grades be told."""
    if row.student is not None:
        outbox.grade_changed(connection, batch.course, batch.unit, row.student, now=by.now, submission=row.submission)
    audit.note(
        connection,
        by,
        action="grade.change",
        object=row.submission,
        student=row.student,
        course=batch.course,
        unit=batch.unit,
        detail={**change, "regrade": batch.id, "reason": batch.reason},
    )


def _results(connection: sa.Connection, run_ids: Sequence[str]) -> dict[str, dict[str, object]]:
    """Verdict and score of these runs, where they have a report."""
    query = sa.select(results.c.run, results.c.verdict, results.c.score).where(results.c.run.in_(run_ids))
    return {row.run: {"verdict": row.verdict, "score": row.score} for row in connection.execute(query)}


def _settle(connection: sa.Connection, batch: Batch, submissions: Sequence[str], state: State) -> None:
    these = (regrade_items.c.regrade == batch.id, regrade_items.c.submission.in_(submissions))
    connection.execute(regrade_items.update().where(*these).values(state=state.value))


def _note(connection: sa.Connection, action: str, batch: Batch, count: int, by: By) -> None:
    if count:
        audit.note(
            connection,
            by,
            action=action,
            object=batch.id,
            course=batch.course,
            unit=batch.unit,
            detail={"submissions": count},
        )
