"""What shall become of a batch goes in: its trials count from now on, or are dropped, or what counted before counts
again. How far that is comes out.

A decision is a row, and is carried out in steps of a few hundred submissions, each a transaction that also says how
far it is: by whoever asked, for a second, and then by the workers. So a process that is killed in between loses nothing
and does nothing twice. A student's submissions are of one step, so that nobody is told a grade half way. A submission
for which another run counts by now is left alone. Every change of a grade is in the audit log, and told in its own
transaction. (docs/decisions/0197, 0228)
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

from service import audit, outbox, runs
from service.accounts import Account, Role
from service.audit import By
from service.classroom import facts
from service.database import reading, take_turns, writing
from service.regrading import batches
from service.regrading.batches import Batch, State
from service.runs import Status
from service.tables import regrade_decisions as rows
from service.tables import regrade_items, results
from service.tables import runs as run_rows
from service.tables import submissions as submission_rows

AT_A_TIME = 200
AT_ONCE_SECONDS = 1.0  # while somebody waits for the answer

Item = sa.Row[tuple[object, ...]]
"""A submission of the batch, with its student and the run that counts."""


class What(StrEnum):
    """What can be decided of a batch, as the audit log calls it."""

    APPLY = "apply"  # the trials that are done count
    DROP = "drop"  # the trials are forgotten, and those that have not ended stopped
    ROLL_BACK = "rollback"  # what counted before counts again


@dataclass(frozen=True)
class Decision:
    """The last decision on a batch. `chosen` None: all that it can be done to. `submissions` says to how many it was
    done so far; `stale` were left alone, since another run counts for them by now."""

    what: What
    chosen: Sequence[str] | None
    by: By
    after: str  # whose submissions were the last
    submissions: int
    stale: int
    ended: bool


@dataclass(frozen=True)
class Swap:
    """How a decision lets other runs count: for items in the state `before`, if the run in the column `counts` still
    does, the run in the column `then` counts afterwards."""

    before: State
    counts: sa.Column[str]
    then: sa.Column[str]


SWAPS = {
    What.APPLY: Swap(State.TRIAL, regrade_items.c.before_run, regrade_items.c.run),
    What.ROLL_BACK: Swap(State.APPLIED, regrade_items.c.run, regrade_items.c.before_run),
}
AFTERWARDS = {What.APPLY: State.APPLIED, What.ROLL_BACK: State.ROLLED_BACK, What.DROP: State.DROPPED}


class UnderWay(Exception):
    """The decision before is still being carried out."""


def decide(engine: sa.Engine, batch: Batch, what: What, chosen: Sequence[str] | None, by: By) -> Decision:
    """Note the decision, and carry out what fits into a second. Raises UnderWay."""
    with writing(engine) as connection:
        take_turns(connection, _turn(batch.id))
        before = last(connection, batch.id)
        if before is not None and not before.ended:
            raise UnderWay
        connection.execute(rows.delete().where(rows.c.regrade == batch.id))
        connection.execute(rows.insert().values(_new(batch, what, chosen, by)))
    carry_on(engine, batch.id, lambda: by.now, AT_ONCE_SECONDS)
    with reading(engine) as connection:
        found = last(connection, batch.id)
    assert found is not None  # erased with its batch only
    return found


def under_way(connection: sa.Connection) -> list[str]:
    """The batches whose decision has not been carried out, the oldest decision first."""
    query = sa.select(rows.c.regrade).where(rows.c.ended_at.is_(None)).order_by(rows.c.begun_at, rows.c.regrade)
    return list(connection.execute(query).scalars())


def last(connection: sa.Connection, batch_id: str) -> Decision | None:
    """The last decision on a batch; None if there was none."""
    row = connection.execute(sa.select(rows).where(rows.c.regrade == batch_id)).one_or_none()
    if row is None:
        return None
    by = By(Account(row.token, Role(row.role)), row.begun_at, row.request_id)
    chosen = json.loads(row.chosen) if row.chosen is not None else None
    return Decision(What(row.what), chosen, by, row.after, row.submissions, row.stale, row.ended_at is not None)


def carry_on(engine: sa.Engine, batch_id: str, clock: Callable[[], float], seconds: float) -> None:
    """Take the next steps of the decision on a batch, if it has not ended, for about so long: one at least."""
    give_up_at = time.monotonic() + seconds
    while _step(engine, batch_id, clock()) and time.monotonic() < give_up_at:
        pass


def _step(engine: sa.Engine, batch_id: str, now: float) -> bool:
    """Do it to the next few submissions, and end it with the last of them; returns whether it goes on."""
    with writing(engine) as connection:
        take_turns(connection, _turn(batch_id))
        decision = last(connection, batch_id)
        if decision is None or decision.ended:
            return False
        batch = batches.find(connection, batch_id)
        assert batch is not None  # its decision would be gone with it
        found = _next(connection, batch, decision)
        by = By(decision.by.who, now, decision.by.request_id)
        goes_on = len(found) >= AT_A_TIME
        done: dict[str, object] = {}
        if found:
            swap = SWAPS.get(decision.what)
            if swap is not None:
                _let_count(connection, batch, found, swap.then, by)
            else:
                _stop(connection, found, now)
            _settle(connection, batch, [row.submission for row in found], AFTERWARDS[decision.what])
            audit.note(
                connection,
                by,
                action=f"regrade.{decision.what}",
                object=batch.id,
                course=batch.course,
                unit=batch.unit,
                detail={"submissions": len(found)},
            )
            done |= {"submissions": rows.c.submissions + len(found), "after": found[-1].whose}
        if not goes_on:
            done |= {"ended_at": now, "stale": _stale(connection, batch, decision), "after": ""}
        connection.execute(rows.update().where(rows.c.regrade == batch.id).values(done))
        return goes_on


def _turn(batch_id: str) -> str:
    return f"regrade {batch_id}"


def _new(batch: Batch, what: What, chosen: Sequence[str] | None, by: By) -> Mapping[str, object]:
    assert by.who is not None  # the command line decides nothing
    return {
        "regrade": batch.id,
        "what": what.value,
        "chosen": json.dumps(list(chosen)) if chosen is not None else None,
        "token": by.who.id,
        "role": by.who.role.value,
        "request_id": by.request_id,
        "begun_at": by.now,
        "after": "",
        "submissions": 0,
        "stale": 0,
    }


# -- which submissions -----------------------------------------------------------------------------------------------


def _next(connection: sa.Connection, batch: Batch, decision: Decision) -> Sequence[Item]:
    """The next few that it can be done to, student by student, all of the last one's among them."""
    whose = sa.func.coalesce(submission_rows.c.student, submission_rows.c.id)
    query = (
        sa.select(
            regrade_items,
            submission_rows.c.student,
            submission_rows.c.run.label("counting"),
            whose.label("whose"),
        )
        .select_from(_joined())
        .where(*_among(batch, decision), _ready(decision.what))
        .order_by(whose, regrade_items.c.submission)
    )
    found = list(connection.execute(query.where(whose > decision.after).limit(AT_A_TIME)))
    if len(found) == AT_A_TIME:
        rest = (whose == found[-1].whose, regrade_items.c.submission > found[-1].submission)
        found += connection.execute(query.where(*rest))
    return found


def _among(batch: Batch, decision: Decision) -> list[sa.ColumnElement[bool]]:
    mine = [regrade_items.c.regrade == batch.id]
    return mine if decision.chosen is None else [*mine, regrade_items.c.submission.in_(decision.chosen)]


def _ready(what: What) -> sa.ColumnElement[bool]:
    """Whether it can be done to an item; where another run counts than the one that is expected, it cannot."""
    state, swap = regrade_items.c.state, SWAPS.get(what)
    if swap is None:
        return state.in_([State.WAITING.value, State.TRIAL.value])
    ready = sa.and_(state == swap.before.value, submission_rows.c.run == swap.counts)
    return sa.and_(ready, run_rows.c.status == Status.DONE.value) if what is What.APPLY else ready


def _stale(connection: sa.Connection, batch: Batch, decision: Decision) -> int:
    """How many were left alone, because another run counts by now."""
    swap = SWAPS.get(decision.what)
    if swap is None:
        return 0
    left = (regrade_items.c.state == swap.before.value, submission_rows.c.run != swap.counts)
    query = sa.select(sa.func.count()).select_from(_joined()).where(*_among(batch, decision), *left)
    return connection.execute(query).scalar_one()


def _joined() -> sa.Join:
    return regrade_items.join(submission_rows, submission_rows.c.id == regrade_items.c.submission).outerjoin(
        run_rows, run_rows.c.id == regrade_items.c.run
    )


# -- what is done to them --------------------------------------------------------------------------------------------


def _stop(connection: sa.Connection, found: Sequence[Item], now: float) -> None:
    """Stop the trials of these. One that is in the queue is delivered all the same, and then left."""
    for row in found:
        if row.run is not None and not runs.cancel(connection, row.run, now):
            runs.ask_to_stop(connection, row.run, now)


def _let_count(connection: sa.Connection, batch: Batch, found: Sequence[Item], then: sa.Column[str], by: By) -> None:
    """Let the run in the column `then` count for each of these."""
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
