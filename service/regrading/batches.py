"""A selection of submissions and a reason go in and are a batch; how far it is, whom it would move and what their
grades would be, come out.

A batch waits as rows; its trial runs are made a few at a time (service/regrading/trials.py). What a batch is at is
counted from its rows, nowhere noted. (docs/decisions/0197)
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

from grader.report import Verdict
from service import audit, grades, submissions
from service.audit import By
from service.grades import Grade
from service.regrading.moves import Why
from service.runs import Status
from service.tables import regrade_items, regrades, results, runs
from service.tables import submissions as submission_rows


class Which(StrEnum):
    """Which submissions of each student are graded again."""

    ALL = "all"
    LATEST = "latest"
    CHOSEN = "chosen"  # those that were named


class State(StrEnum):
    """What was decided of a submission in a batch."""

    WAITING = "waiting"  # its trial is not in the queue yet
    TRIAL = "trial"
    APPLIED = "applied"
    DROPPED = "dropped"
    ROLLED_BACK = "rolled_back"


class Stage(StrEnum):
    """What a batch as a whole is at."""

    TRYING = "trying"
    READY = "ready"  # every trial has ended, and not everything is decided
    DECIDED = "decided"


@dataclass(frozen=True)
class Progress:
    """How many submissions of a batch are where. What waits for a decision is `done`, and `moved` of that came out
    otherwise; trials that `failed` leave nothing to decide."""

    total: int
    waiting: int
    queued: int
    running: int
    done: int
    moved: int
    failed: int
    applied: int
    dropped: int
    rolled_back: int

    @property
    def stage(self) -> Stage:
        if self.waiting or self.queued or self.running:
            return Stage.TRYING
        return Stage.READY if self.done else Stage.DECIDED


@dataclass(frozen=True)
class Batch:
    id: str
    course: str
    unit: str
    which: Which
    reason: str
    token: str
    created_at: float


@dataclass(frozen=True)
class Item:
    """A submission of a batch. `stale`: another run counts by now than the one that the batch would replace, or put."""

    submission: str
    student: str | None
    received_at: float
    run: str | None
    state: State
    status: Status | None
    moved: bool | None
    stale: bool
    why: Why


@dataclass(frozen=True)
class GradeMove:
    """A student's grade as it is, and as it would be if the whole batch were applied."""

    before: Grade
    after: Grade


class Empty(Exception):
    """The selection holds no submission that can be graded again."""


class Unknown(Exception):
    """Submissions that were named are not there, or not of the unit in the course."""

    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__(", ".join(ids))
        self.ids = ids


def create(
    connection: sa.Connection,
    *,
    course: str,
    unit: str,
    which: Which,
    chosen: Sequence[str],
    reason: str,
    by: By,
) -> Batch:
    """Store a batch of what has been graded. Raises Unknown, Empty."""
    assert by.who is not None
    batch = Batch(submissions.new_id(), course, unit, which, reason, by.who.id, by.now)
    connection.execute(regrades.insert().values(**{**vars(batch), "which": which.value}))
    selected = _selected(course, unit, which, chosen).subquery()
    columns = ("regrade", "submission", "before_run", "run", "state", "moved", "why")
    fixed = (sa.null(), sa.literal(State.WAITING.value), sa.null(), sa.literal(""))
    rows = sa.select(sa.literal(batch.id), selected.c.id, selected.c.run, *fixed)
    connection.execute(regrade_items.insert().from_select(columns, rows))
    found = set(connection.execute(sa.select(regrade_items.c.submission).where(_in(batch))).scalars())
    if which is Which.CHOSEN and (missing := [each for each in dict.fromkeys(chosen) if each not in found]):
        raise Unknown(missing)
    if not found:
        raise Empty
    detail = {"which": which.value, "submissions": len(found), "reason": reason}
    audit.note(connection, by, "regrade.create", batch.id, course=course, unit=unit, detail=detail)
    return batch


def _selected(course: str, unit: str, which: Which, chosen: Sequence[str]) -> sa.Select[tuple[str, str]]:
    """Submissions of the unit in the course whose counting run has ended with a report, or by our failure."""
    table = submission_rows
    ended = runs.c.status.in_([Status.DONE.value, Status.ERROR.value])
    query = (
        sa.select(table.c.id, table.c.run)
        .join(runs, runs.c.id == table.c.run)
        .where(table.c.course == course, table.c.unit == unit, ended)
    )
    match which:
        case Which.ALL:
            return query
        case Which.CHOSEN:
            return query.where(table.c.id.in_(chosen))
        case Which.LATEST:
            order = (table.c.received_at.desc(), table.c.id.desc())
            whose = sa.func.coalesce(table.c.student, table.c.id)
            place = sa.func.row_number().over(partition_by=whose, order_by=order)
            ranked = query.add_columns(place.label("place")).subquery()
            return sa.select(ranked.c.id, ranked.c.run).where(ranked.c.place == 1)


def _in(batch: Batch) -> sa.ColumnElement[bool]:
    return regrade_items.c.regrade == batch.id


def find(connection: sa.Connection, batch_id: str) -> Batch | None:
    row = connection.execute(sa.select(regrades).where(regrades.c.id == batch_id)).one_or_none()
    return _batch(row) if row is not None else None


def newest(connection: sa.Connection, courses: Sequence[str], unit: str | None, limit: int) -> list[Batch]:
    """Up to `limit` batches of these courses, the newest first."""
    query = sa.select(regrades).where(regrades.c.course.in_(courses))
    if unit is not None:
        query = query.where(regrades.c.unit == unit)
    rows = connection.execute(query.order_by(regrades.c.created_at.desc(), regrades.c.id).limit(limit))
    return [_batch(row) for row in rows]


def progress(connection: sa.Connection, batch: Batch) -> Progress:
    query = (
        sa.select(regrade_items.c.state, runs.c.status, regrade_items.c.moved, sa.func.count())
        .select_from(regrade_items.outerjoin(runs, runs.c.id == regrade_items.c.run))
        .where(_in(batch))
        .group_by(regrade_items.c.state, runs.c.status, regrade_items.c.moved)
    )
    rows = [tuple(row) for row in connection.execute(query)]

    def count(state: State, *statuses: Status, moved: bool | None = None) -> int:
        wanted = [status.value for status in statuses]
        return sum(
            number
            for at, status, has_moved, number in rows
            if at == state.value and (not wanted or status in wanted) and (moved is None or bool(has_moved) is moved)
        )

    return Progress(
        total=sum(row[-1] for row in rows),
        waiting=count(State.WAITING),
        queued=count(State.TRIAL, Status.QUEUED),
        running=count(State.TRIAL, Status.RUNNING),
        done=count(State.TRIAL, Status.DONE),
        moved=count(State.TRIAL, Status.DONE, moved=True),
        failed=count(State.TRIAL, Status.ERROR, Status.CANCELLED),
        applied=count(State.APPLIED),
        dropped=count(State.DROPPED),
        rolled_back=count(State.ROLLED_BACK),
    )


def items(
    connection: sa.Connection, batch: Batch, *, moved: bool | None = None, after: str = "", limit: int = 100
) -> tuple[list[Item], str | None]:
    """Up to `limit` submissions of the batch by id, and the last id if there are more. `moved` None: all."""
    wanted = [_in(batch), regrade_items.c.submission > after]
    if moved is not None:
        wanted.append(regrade_items.c.moved.is_(moved))
    query = (
        sa.select(
            regrade_items,
            submission_rows.c.student,
            submission_rows.c.received_at,
            submission_rows.c.run.label("counting"),
            runs.c.status,
        )
        .select_from(
            regrade_items.join(submission_rows, submission_rows.c.id == regrade_items.c.submission).outerjoin(
                runs, runs.c.id == regrade_items.c.run
            )
        )
        .where(*wanted)
        .order_by(regrade_items.c.submission)
        .limit(limit + 1)
    )
    rows = connection.execute(query).all()
    return [_item(row) for row in rows[:limit]], rows[limit - 1].submission if len(rows) > limit else None


def grade_moves(connection: sa.Connection, batch: Batch) -> list[GradeMove]:
    """The students whose grade would be another if all that is tried and not decided were applied, by name."""
    query = (
        sa.select(regrade_items.c.submission, results.c.verdict, results.c.score)
        .select_from(
            regrade_items.join(results, results.c.run == regrade_items.c.run)
            .join(runs, runs.c.id == regrade_items.c.run)
            .join(submission_rows, submission_rows.c.id == regrade_items.c.submission)
        )
        .where(
            _in(batch),
            regrade_items.c.state == State.TRIAL.value,
            regrade_items.c.moved,
            runs.c.status == Status.DONE.value,
            submission_rows.c.run == regrade_items.c.before_run,
        )
    )
    replaced: Mapping[str, tuple[Verdict, float | None]] = {
        row.submission: (Verdict(row.verdict), row.score) for row in connection.execute(query)
    }
    both = grades.of_class_if(connection, batch.course, batch.unit, replaced)
    return [
        GradeMove(before, after)
        for before, after in both
        if (before.final_score, _verdict(before)) != (after.final_score, _verdict(after))
    ]


def _verdict(grade: Grade) -> Verdict | None:
    return grade.graded.sent.verdict if grade.graded is not None else None


def _batch(row: sa.Row[tuple[object, ...]]) -> Batch:
    return Batch(row.id, row.course, row.unit, Which(row.which), row.reason, row.token, row.created_at)


def _item(row: sa.Row[tuple[object, ...]]) -> Item:
    state = State(row.state)
    expected = row.run if state is State.APPLIED else row.before_run
    return Item(
        submission=row.submission,
        student=row.student,
        received_at=row.received_at,
        run=row.run,
        state=state,
        status=Status(row.status) if row.status is not None else None,
        moved=row.moved,
        stale=row.counting != expected and state in (State.WAITING, State.TRIAL, State.APPLIED),
        why=Why.model_validate(json.loads(row.why)) if row.why else Why(),
    )
