"""The facts of a student that count go in; how far the student is comes out, and is kept as one row of ag_progress.

The row is made anew from all of the student's facts whenever they change, so that it cannot drift from them.
(docs/decisions/0180)
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from grader.report import Verdict
from service.database import take_turns
from service.tables import facts, submissions
from service.tables import progress as progress_rows

NO_SCORE = -1.0  # below every score: of what was rejected


@dataclass(frozen=True)
class Whose:
    """A student at a unit of a course; nobody's submissions are nobody's progress."""

    course: str
    unit: str
    student: str | None


@dataclass(frozen=True)
class Graded:
    """A submission with a report, as progress is made of it."""

    run: str
    submission: str
    received_at: float
    verdict: Verdict
    score: float | None


@dataclass(frozen=True)
class Progress:
    """How far a student is. Of equal scores the earlier one is the best; `since_best` counts what came after it."""

    run: str  # of the latest submission
    graded: int
    first_at: float
    latest_at: float
    passed_at: float | None
    best_submission: str
    best_score: float | None
    since_best: int


def progress_of(graded: Sequence[Graded]) -> Progress | None:
    """How far one is who has sent these, in any order; None without any."""
    if not graded:
        return None
    sent = sorted(graded, key=lambda each: (each.received_at, each.submission))
    place, best = max(enumerate(sent), key=lambda pair: (_score(pair[1]), -pair[0]))
    return Progress(
        run=sent[-1].run,
        graded=len(sent),
        first_at=sent[0].received_at,
        latest_at=sent[-1].received_at,
        passed_at=next((each.received_at for each in sent if each.verdict is Verdict.PASS), None),
        best_submission=best.submission,
        best_score=best.score,
        since_best=len(sent) - 1 - place,
    )


def _score(graded: Graded) -> float:
    return graded.score if graded.score is not None else NO_SCORE


def of_submissions(connection: sa.Connection, submission_ids: Collection[str]) -> list[Whose]:
    """Whose submissions these are."""
    query = sa.select(submissions.c.course, submissions.c.unit, submissions.c.student).distinct()
    return [Whose(*row) for row in connection.execute(query.where(submissions.c.id.in_(submission_ids)))]


def renew(connection: sa.Connection, whose: Collection[Whose]) -> None:
    """Make the rows of these students anew, in the transaction that changed their facts."""
    # In one order, as two that renew the same students must not wait for one another.
    for each in sorted({each for each in whose if each.student is not None}, key=repr):
        take_turns(connection, f"progress of {each}")  # so that of two the second sees what the first has added
        _renew(connection, each)


def _renew(connection: sa.Connection, whose: Whose) -> None:
    mine = {"course": whose.course, "unit": whose.unit, "student": whose.student}
    query = sa.select(facts.c.run, facts.c.submission, facts.c.received_at, facts.c.verdict, facts.c.score)
    found = connection.execute(
        query.where(*(facts.c[name] == value for name, value in mine.items()), facts.c.counts.is_(True))
    )
    made = progress_of(
        [Graded(row.run, row.submission, row.received_at, Verdict(row.verdict), row.score) for row in found]
    )
    connection.execute(progress_rows.delete().where(*(progress_rows.c[name] == value for name, value in mine.items())))
    if made is not None:
        connection.execute(progress_rows.insert().values(**mine, **vars(made)))
