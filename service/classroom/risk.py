"""How far a student is goes in; why somebody should look, if anybody need, comes out, what is urgent first. Pure.

A student who has passed is at no risk. The rules are few and each says itself in one sentence, so that a teacher can
judge whether it matters here. (docs/decisions/0183)
"""

from datetime import timedelta
from typing import NamedTuple

from service.classroom import wording
from service.classroom.answers import RiskReason

SOON_SECONDS = 2 * 86_400.0  # before it is due
SILENT_SECONDS = 3 * 86_400.0
STUCK_SUBMISSIONS = 4  # in a row that were no better
MOST_BEGAN = 0.5  # the share of a class after which those who have not are told of, without a date


class Situation(NamedTuple):
    """What the risk of a student who has not passed is judged by. Times in UTC seconds.

    `best_score` None: nothing has a score, as everything was rejected.
    """

    graded: int
    pending: int
    since_best: int
    best_score: float | None
    latest_at: float | None
    due_at: float | None
    attempts_used: int
    attempts_left: int | None


def risks(of: Situation, began: float, now: float) -> tuple[RiskReason, ...]:
    """Why to look after this student; `began` is the share of the class that has submitted something."""
    left = timedelta(seconds=of.due_at - now) if of.due_at is not None else None
    soon = left is not None and left.total_seconds() < SOON_SECONDS
    if not of.graded:
        if of.pending or not (soon or (left is None and began >= MOST_BEGAN)):
            return ()
        return (RiskReason(code="not_begun", message=wording.not_begun(left)),)
    found = []
    if of.attempts_left == 0:
        found.append(RiskReason(code="no_attempts_left", message=wording.no_attempts_left(of.attempts_used)))
    if soon and left is not None:
        found.append(RiskReason(code="due_soon", message=wording.behind(left)))
    if of.best_score is None:
        found.append(RiskReason(code="all_rejected", message=wording.all_rejected(of.graded)))
    elif of.since_best >= STUCK_SUBMISSIONS:
        found.append(RiskReason(code="no_progress", message=wording.no_progress(of.since_best)))
    silent = now - of.latest_at if of.latest_at is not None else 0.0
    if silent >= SILENT_SECONDS and not of.pending:
        found.append(RiskReason(code="silent", message=wording.silent(int(silent // 86_400))))
    return tuple(found)
