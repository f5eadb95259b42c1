"""A submission and the grade it leads to go in; the message that tells of them comes out, signed. Pure.

The form is that of Standard Webhooks: {"type", "timestamp", "data"} and the headers webhook-id, webhook-timestamp and
webhook-signature. An id stands for one state of affairs: whoever has seen it has nothing to do.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from standardwebhooks import Webhook

from grader.report import Verdict
from service.grades import Grade
from service.instants import rfc3339
from service.outbox.score import Content
from service.runs import Status
from service.submissions import Stored

PREFIX = "whsec_"


@dataclass(frozen=True)
class Ended:
    """Where a submission stands, by the run that counts."""

    stored: Stored
    status: Status
    verdict: Verdict | None
    score: float | None


def content(ended: Ended, grade: Grade | None) -> Content:
    stored = ended.stored
    here = f"/v1/submissions/{stored.id}"
    return {
        "type": f"submission.{ended.status.value}",
        "data": {
            "submission": {
                "id": stored.id,
                "course": stored.course,
                "unit": stored.unit,
                "student": stored.student,
                "received_at": rfc3339(stored.received_at),
                "status": ended.status.value,
                "verdict": ended.verdict.value if ended.verdict is not None else None,
                "score": ended.score,
                "links": {"self": here, "report": f"{here}/report"},
            },
            "grade": _grade(grade),
        },
    }


def _grade(grade: Grade | None) -> Mapping[str, Any] | None:
    if grade is None or grade.final_score is None:
        return None
    graded, by_hand = grade.graded, grade.by_hand
    sent = graded.sent if graded is not None else None
    return {
        "submission": sent.id if sent is not None else None,
        "received_at": rfc3339(sent.received_at) if sent is not None else None,
        "verdict": sent.verdict.value if sent is not None and sent.verdict is not None else None,
        "score": sent.score if sent is not None else None,
        "late_seconds": round(graded.late.seconds, 3) if graded is not None else None,
        "penalty": round(graded.late.penalty, 6) if graded is not None else None,
        "final_score": round(grade.final_score, 6),
        "by_hand": {"score": by_hand.score, "reason": by_hand.reason} if by_hand is not None else None,
        "attempts_used": grade.attempts_used,
        "pending": grade.pending,
    }


def stamped(content: Content, told: Content, stamp: float) -> Content:
    return {**content, "timestamp": rfc3339(stamp)}


def signed(message: Content, message_id: str, secrets: Sequence[bytes], now: float) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a message sent now; while a secret is replaced, it is signed with both."""
    body = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
    at = datetime.fromtimestamp(int(now), UTC)
    return body.encode(), {
        "content-type": "application/json",
        "user-agent": "tinyllm-autograder",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now)),
        "webhook-signature": " ".join(Webhook(secret).sign(message_id, at, body) for secret in secrets),
    }


def shown_secret(secret: bytes) -> str:
    """The secret as Standard Webhooks' libraries take it."""
    return PREFIX + base64.b64encode(secret).decode()
