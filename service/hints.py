"""A graded submission goes in, with the hints of its unit; what its student has unlocked of them comes out, and one
more within the teacher's limits, or Problem.

The first hint of a survivor stands in the report and costs nothing. Every other one is a row of a student and a mutant,
so that it stays unlocked whatever is submitted next. Limits are counted on these rows, in the transaction that adds
one; the transactions of one student take turns. Teachers are not limited, and what they unlock for a student uses no
limit. (docs/decisions/0167)
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from grader.report import MutantStatus, Report
from grader.unit import Mutant, Unit
from service import offerings, runs, submissions, wording
from service.accounts import Account
from service.database import insert_or_ignore, take_turns
from service.limits import SECONDS_PER_HOUR
from service.offerings import Assignment, HintLimits
from service.problems import Problem
from service.runs import Status
from service.submissions import Stored
from service.tables import hints, outcomes
from service.tables import runs as run_rows
from service.tables import submissions as submission_rows

RETRY_SECONDS = 2
IN_THE_REPORT = 1  # the number of the first hint


@dataclass(frozen=True)
class Unlocked:
    """A hint that a student may read. `unlocked_at` None: it stands in the report."""

    number: int
    text: str
    unlocked_at: float | None
    helpful: bool | None


@dataclass(frozen=True)
class Survivor:
    """A mutant that a submission's tests did not notice, what is unlocked of its hints, and how many are not."""

    id: str
    category: str
    required: bool
    unlocked: tuple[Unlocked, ...]
    left: int


@dataclass(frozen=True)
class Budget:
    """A teacher's limits for a student at a unit, and what of them is used. `free_at`: when they allow the next."""

    limits: HintLimits
    used: int
    used_this_hour: int
    hour_free_at: float
    cooled_at: float

    @property
    def left(self) -> int | None:
        """None: without limit."""
        return max(0, self.limits.unlocks - self.used) if self.limits.unlocks is not None else None

    @property
    def left_this_hour(self) -> int | None:
        if self.limits.per_hour is None:
            return None
        return max(0, self.limits.per_hour - self.used_this_hour)

    @property
    def free_at(self) -> float:
        return max(self.hour_free_at, self.cooled_at)


@dataclass(frozen=True)
class Board:
    """All that a student sees of hints at a submission. `newest`: of these survivors more can be unlocked."""

    newest: bool
    survivors: tuple[Survivor, ...]
    budget: Budget


@dataclass(frozen=True)
class Opened:
    """The answer to a wish for a hint: the hint, whether it is `new`, and how many of the mutant's are left."""

    hint: Unlocked
    new: bool
    left: int


@dataclass(frozen=True)
class HintUse:
    """How a class fared with one hint. `caught`: who unlocked it and caught the mutant in a later submission."""

    mutant: str
    number: int
    text: str
    unlocked: int
    helpful: int
    unhelpful: int
    caught: int


# -- what is unlocked ------------------------------------------------------------------------------------------------


def board(connection: sa.Connection, stored: Stored, unit: Unit, now: float, usual: Assignment) -> Board:
    """What the submission's student has unlocked. Raises Problem 409 while there is no report."""
    report = _report(connection, stored)
    newest = stored.student is not None and _newest(connection, stored) == stored.id
    rows = _rows(connection, stored)
    survivors = tuple(_survivor(mutant, unit, rows.get(mutant.id, {})) for mutant in _survivors(report, unit))
    return Board(newest, survivors, budget(connection, stored, now, usual))


def budget(connection: sa.Connection, stored: Stored, now: float, usual: Assignment) -> Budget:
    """What is left of the teacher's limits for the submission's student, at its unit and in its course."""
    limits = (offerings.assignment(connection, stored.course, stored.unit) or usual).hints
    query = sa.select(hints.c.unlocked_at).where(*_mine(stored), hints.c.counted).order_by(hints.c.unlocked_at.desc())
    times = list(connection.execute(query).scalars())
    hour = [at for at in times if at > now - SECONDS_PER_HOUR]
    full = limits.per_hour is not None and len(hour) >= limits.per_hour
    return Budget(
        limits=limits,
        used=len(times),
        used_this_hour=len(hour),
        hour_free_at=hour[(limits.per_hour or 0) - 1] + SECONDS_PER_HOUR if full else -math.inf,
        cooled_at=times[0] + (limits.cooldown_seconds or 0.0) if times else -math.inf,
    )


def _report(connection: sa.Connection, stored: Stored) -> Report:
    run = runs.find(connection, stored.run)
    if run is None:
        raise Problem(404, "submission_unknown", wording.SUBMISSION_UNKNOWN)
    report = runs.report(connection, stored.run)
    if report is None:
        headers = {} if run.status.ended else {"Retry-After": str(RETRY_SECONDS)}
        raise Problem(409, "report_not_ready", wording.report_not_ready(run.status), headers=headers)
    return report


def _survivors(report: Report, unit: Unit) -> list[Mutant]:
    """The mutants of the unit as it is now that survived."""
    mutants = {mutant.id: mutant for mutant in unit.mutants}
    found = report.mutation.mutants if report.mutation is not None else ()
    return [mutants[each.id] for each in found if each.status is MutantStatus.SURVIVED and each.id in mutants]


def _survivor(mutant: Mutant, unit: Unit, rows: Mapping[int, sa.Row[tuple[object, ...]]]) -> Survivor:
    last = _last(rows)
    return Survivor(
        id=mutant.id,
        category=mutant.category,
        required=mutant.id in unit.required_mutants,
        unlocked=tuple(
            _unlocked(number, text, rows.get(number)) for number, text in enumerate(mutant.hints[:last], start=1)
        ),
        left=max(0, len(mutant.hints) - last),
    )


def _unlocked(number: int, text: str, row: sa.Row[tuple[object, ...]] | None) -> Unlocked:
    unlocked_at = row.unlocked_at if row is not None and number != IN_THE_REPORT else None
    return Unlocked(number, text, unlocked_at, row.helpful if row is not None else None)


def _last(rows: Mapping[int, object]) -> int:
    """The number of the last hint that is unlocked."""
    return max(rows, default=IN_THE_REPORT)


def _mine(stored: Stored) -> list[sa.ColumnElement[bool]]:
    return [hints.c.course == stored.course, hints.c.unit == stored.unit, hints.c.student == stored.student]


def _rows(connection: sa.Connection, stored: Stored) -> dict[str, dict[int, sa.Row[tuple[object, ...]]]]:
    """The student's rows by mutant and number."""
    found: dict[str, dict[int, sa.Row[tuple[object, ...]]]] = defaultdict(dict)
    for row in connection.execute(sa.select(hints).where(*_mine(stored))):
        found[row.mutant][row.number] = row
    return found


def _newest(connection: sa.Connection, stored: Stored) -> str | None:
    """The newest graded submission of the same student at the same unit in the same course."""
    table = submission_rows
    query = (
        sa.select(table.c.id)
        .join(run_rows, run_rows.c.id == table.c.run)
        .where(
            table.c.course == stored.course,
            table.c.unit == stored.unit,
            table.c.student == stored.student,
            run_rows.c.status == Status.DONE.value,
        )
        .order_by(table.c.received_at.desc(), table.c.id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()


# -- unlocking and rating --------------------------------------------------------------------------------------------


def unlock(
    connection: sa.Connection,
    account: Account,
    stored: Stored,
    unit: Unit,
    mutant_id: str,
    number: int | None,
    now: float,
    usual: Assignment,
) -> Opened:
    """Unlock hint `number` of a survivor, or the next one.

    One that was unlocked before is given again for nothing. Raises Problem 404 `mutant_unknown`; 409 `not_newest`,
    `mutant_not_surviving`, `hint_out_of_turn`, `no_more_hints`; 429 where a limit is met.
    """
    stored = _hold(connection, stored)
    mutant = _hinted(connection, stored, unit, mutant_id)
    if _newest(connection, stored) != stored.id:
        raise Problem(409, "not_newest", wording.HINTS_NOT_NEWEST)
    rows = _rows(connection, stored).get(mutant_id, {})
    last = _last(rows)
    wanted = number if number is not None else last + 1
    if wanted > len(mutant.hints):
        raise Problem(409, "no_more_hints", wording.no_more_hints(mutant_id, len(mutant.hints)))
    if wanted <= last:
        found = _unlocked(wanted, mutant.hints[wanted - 1], rows.get(wanted))
        return Opened(found, new=False, left=max(0, len(mutant.hints) - last))
    if wanted > last + 1:
        raise Problem(409, "hint_out_of_turn", wording.hint_out_of_turn(mutant_id, last + 1), next=last + 1)
    if not account.sees_class:
        _check(budget(connection, stored, now, usual), now)
    connection.execute(
        hints.insert().values(**_keys(stored, mutant_id, wanted), unlocked_at=now, counted=not account.sees_class)
    )
    found = Unlocked(wanted, mutant.hints[wanted - 1], now, None)
    return Opened(found, new=True, left=len(mutant.hints) - wanted)


def rate(
    connection: sa.Connection, stored: Stored, unit: Unit, mutant_id: str, number: int, helpful: bool, now: float
) -> Unlocked:
    """Note what the student thinks of an unlocked hint, in place of what was noted before.

    Raises Problem 404 `mutant_unknown` or `hint_locked`, 409 `mutant_not_surviving`.
    """
    stored = _hold(connection, stored)
    mutant = _hinted(connection, stored, unit, mutant_id)
    rows = _rows(connection, stored).get(mutant_id, {})
    if number > min(_last(rows), len(mutant.hints)):
        raise Problem(404, "hint_locked", wording.hint_locked(mutant_id, number))
    keys = _keys(stored, mutant_id, number)
    if number not in rows:
        connection.execute(insert_or_ignore(connection, hints, {**keys, "unlocked_at": now, "counted": False}))
    this = sa.and_(*(hints.c[name] == value for name, value in keys.items()))
    connection.execute(hints.update().where(this).values(helpful=helpful, rated_at=now))
    row = connection.execute(sa.select(hints).where(this)).one()
    return _unlocked(number, mutant.hints[number - 1], row)


def _hold(connection: sa.Connection, stored: Stored) -> Stored:
    """The submission as it is now, which nobody erases before this transaction has ended; its student's others wait."""
    held = sa.select(submission_rows.c.id).where(submission_rows.c.id == stored.id)
    found = connection.execute(held.with_for_update(read=True, key_share=True)).first()
    if found is None:
        raise Problem(404, "submission_unknown", wording.SUBMISSION_UNKNOWN)
    if stored.student is None:
        raise Problem(409, "no_student", wording.HINTS_NO_STUDENT)
    take_turns(connection, f"hints of {stored.student}")
    return submissions.find(connection, stored.id) or stored


def _hinted(connection: sa.Connection, stored: Stored, unit: Unit, mutant_id: str) -> Mutant:
    """The mutant, if it survived the submission's tests."""
    survivors = {mutant.id: mutant for mutant in _survivors(_report(connection, stored), unit)}
    if mutant_id in survivors:
        return survivors[mutant_id]
    if mutant_id in {mutant.id for mutant in unit.mutants}:
        raise Problem(409, "mutant_not_surviving", wording.mutant_not_surviving(mutant_id))
    raise Problem(404, "mutant_unknown", wording.mutant_unknown(mutant_id))


def _keys(stored: Stored, mutant_id: str, number: int) -> dict[str, object]:
    return {
        "course": stored.course,
        "unit": stored.unit,
        "student": stored.student,
        "mutant": mutant_id,
        "number": number,
    }


def _check(found: Budget, now: float) -> None:
    limits = found.limits
    if found.left == 0:
        # No Retry-After: waiting does not help.
        message = wording.hints_used_up(limits.unlocks or 0)
        raise Problem(429, "hints_used_up", message, unlocks_left=0, left_this_hour=found.left_this_hour)
    if found.hour_free_at > now:
        message = wording.too_many_hints_per_hour(limits.per_hour or 0, found.hour_free_at - now)
        raise _later("too_many_hints_per_hour", message, found, now)
    if found.cooled_at > now:
        message = wording.hint_cooling_down(limits.cooldown_seconds or 0.0, found.cooled_at - now)
        raise _later("hint_cooling_down", message, found, now)


def _later(code: str, message: str, found: Budget, now: float) -> Problem:
    seconds = math.ceil(found.free_at - now)
    return Problem(
        429,
        code,
        message,
        headers={"Retry-After": str(seconds)},
        unlocks_left=found.left,
        left_this_hour=found.left_this_hour,
        retry_after_seconds=seconds,
    )


# -- for teachers ----------------------------------------------------------------------------------------------------


def use(connection: sa.Connection, unit: Unit, course: str | None) -> list[HintUse]:
    """How often each hint of the unit was unlocked, found helpful, and followed by a catch; in one course or in all.

    The first hint of a mutant is unlocked by nobody: it stands in the report.
    """
    where = [hints.c.unit == unit.id, *([hints.c.course == course] if course is not None else [])]
    opened = sa.func.count(sa.case((hints.c.number != IN_THE_REPORT, 1)))
    good, bad = (sa.func.count(sa.case((hints.c.helpful.is_(said), 1))) for said in (sa.true(), sa.false()))
    query = sa.select(hints.c.mutant, hints.c.number, opened, good, bad).where(*where)
    rows = connection.execute(query.group_by(hints.c.mutant, hints.c.number))
    counts = {(mutant, number): (unlocked, helpful, unhelpful) for mutant, number, unlocked, helpful, unhelpful in rows}
    caught = _caught(connection, where)
    return [
        HintUse(
            mutant.id,
            number,
            text,
            *counts.get((mutant.id, number), (0, 0, 0)),
            caught=caught.get((mutant.id, number), 0),
        )
        for mutant in unit.mutants
        for number, text in enumerate(mutant.hints, start=1)
    ]


def _caught(connection: sa.Connection, where: list[sa.ColumnElement[bool]]) -> dict[tuple[str, int], int]:
    """Of those who unlocked a hint, how many caught its mutant with a submission received later."""
    later = submission_rows
    caught = [MutantStatus.KILLED.value, MutantStatus.TIMEOUT.value]
    same = [getattr(later.c, name) == getattr(hints.c, name) for name in ("course", "unit", "student")]
    done = (
        sa.exists()
        .where(*same, later.c.received_at > hints.c.unlocked_at)
        .where(outcomes.c.run == later.c.run, outcomes.c.kind == "mutant", outcomes.c.name == hints.c.mutant)
        .where(outcomes.c.outcome.in_(caught))
    )
    query = sa.select(hints.c.mutant, hints.c.number, sa.func.count()).where(
        *where, hints.c.number != IN_THE_REPORT, done
    )
    rows = connection.execute(query.group_by(hints.c.mutant, hints.c.number))
    return {(mutant, number): count for mutant, number, count in rows}
