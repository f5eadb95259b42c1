"""A student's grade, and what a platform was told before, go in; what it is to be told comes out. Pure.

A platform is shown that something waits only while it holds no score: some take the score away with it.
(docs/decisions/0201)
"""

from collections.abc import Mapping
from typing import Any

from grader.report import Verdict
from service.grades import Grade
from service.outbox import wording

MAXIMUM = 100.0  # points; a platform scales them to its own

SUBMITTED, COMPLETED, STARTED = "Submitted", "Completed", "Started"
GRADED, PENDING, FAILED, NOT_READY = "FullyGraded", "Pending", "Failed", "NotReady"

Content = Mapping[str, Any]


def content(grade: Grade | None, failed: bool, told: Content) -> Content | None:
    """The activity, the state of grading, the score and where it comes from; None: there is nothing to say.

    `failed`: the last submission failed on our side. Times are UTC seconds.
    """
    if grade is not None and grade.final_score is not None:
        sent = grade.graded.sent if grade.graded is not None else None
        return {
            "activity": COMPLETED if sent is None or sent.verdict is Verdict.PASS else SUBMITTED,
            "grading": GRADED,
            "given": round(grade.final_score * MAXIMUM, 4),
            "maximum": MAXIMUM,
            "comment": wording.comment(grade),
            "submitted_at": sent.received_at if sent is not None else grade.by_hand.set_at if grade.by_hand else None,
            "submission": sent.id if sent is not None else None,
        }
    if told.get("grading") == GRADED:  # what it came from is no longer kept here
        return None
    if grade is not None and grade.pending:
        return {"activity": SUBMITTED, "grading": PENDING, "comment": wording.BEING_GRADED}
    if failed:
        return {"activity": SUBMITTED, "grading": FAILED, "comment": wording.GRADING_FAILED}
    return {"activity": STARTED, "grading": NOT_READY, "comment": ""} if told else None


def stamped(content: Content, told: Content, stamp: float) -> Content:
    """The message. `new_submission`: the score comes from another submission than the one that was told before."""
    known = told.get("submission") if told.get("grading") == GRADED else None
    return {**content, "timestamp": stamp, "new_submission": content.get("submission") != known}
