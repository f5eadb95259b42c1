"""A submission goes in; the report of the same files, graded before under the same conditions, comes out as its own.

What a grade depends on is in the key: every file (the submission's digest), the unit, and the conditions of the worker
(service/conditions.py). Only what was graded is kept: never a failure of ours, never what waiting decided. Of the
submission that was graded first nothing shows but when that was. (docs/decisions/0139)
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from grader.digest import digest_of
from grader.report import CachedPart, Report, SubmissionPart, Timing, Verdict, intake_entries
from service import runs
from service.answers import moment
from service.database import insert_or_ignore
from service.runs import RunState, Status
from service.submissions import Stored
from service.tables import cache, results, submissions
from service.tables import runs as runs_table

_KEPT = (
    sa.select(cache.c.key, cache.c.run, results.c.report, runs_table.c.finished_at)
    .select_from(cache.join(runs_table, runs_table.c.id == cache.c.run).join(results, results.c.run == cache.c.run))
    .where(cache.c.key.in_(sa.bindparam("keys", expanding=True)), runs_table.c.status == Status.DONE.value)
)
BY_THE_CLOCK = frozenset({"no_progress", "deadline"})  # causes that a busy machine can bring about


@dataclass(frozen=True)
class Hit:
    """The run whose report answers, and when that ended."""

    key: str
    run: str
    report: Report
    graded_at: float


def key_of(grading: str, unit: str, submission_digest: str) -> str:
    """`grading` is the digest of the worker's conditions."""
    parts = {"grading": grading, "unit": unit, "submission": submission_digest}
    return digest_of((name, text.encode()) for name, text in parts.items())


def of_workers(connection: sa.Connection, now: float) -> set[str]:
    """The conditions under which the workers that are ready grade."""
    return {worker.grading for worker in runs.alive(connection, now) if worker.ready and worker.grading}


def find(connection: sa.Connection, gradings: Iterable[str], unit: str, submission_digest: str) -> Hit | None:
    """What was graded under any of these conditions."""
    keys = [key_of(grading, unit, submission_digest) for grading in gradings if grading]
    row = connection.execute(_KEPT, {"keys": keys}).first() if keys else None
    if row is None:
        return None
    return Hit(row.key, row.run, Report.model_validate_json(zlib.decompress(row.report)), row.finished_at)


def copy(hit: Hit, stored: Stored, queued_seconds: float = 0.0) -> Report:
    """The hit's report as one of this submission."""
    return hit.report.model_copy(
        update={
            "submission": SubmissionPart(
                id=stored.id,
                unit=stored.unit,
                course=stored.course,
                student=stored.student,
                received_at=moment(stored.received_at),
                digest=stored.digest,
            ),
            "intake": intake_entries(stored.notes),
            "timing": Timing(queued=round(queued_seconds, 4), phases={}, total=round(queued_seconds, 4)),
            "cached": CachedPart(graded_at=moment(hit.graded_at)),
        }
    )


def answer(connection: sa.Connection, stored: Stored, hit: Hit, now: float) -> None:
    """End a submission's run, which has not been enqueued, with the hit's report, in the transaction that stores it."""
    connection.execute(
        runs_table.update()
        .where(runs_table.c.id == stored.run)
        .values(status=Status.DONE.value, finished_at=now, version=runs_table.c.version + 1, **_origin(hit))
    )
    runs.add_result(connection, stored.run, copy(hit, stored), now)


def note_origin(connection: sa.Connection, run_id: str, stored: Stored, hit: Hit) -> None:
    """Note, in the transaction that ends a run, that its report is the hit's; a repetition uses no attempt."""
    connection.execute(runs_table.update().where(runs_table.c.id == run_id).values(**_origin(hit)))
    if sent_before(connection, stored.course, stored.unit, stored.student, stored.digest, but=stored.id):
        connection.execute(submissions.update().where(submissions.c.id == stored.id).values(counted=False))


def keep(connection: sa.Connection, run: RunState, stored: Stored, report: Report, grading: str, now: float) -> None:
    """Remember a run's report, in the transaction that ends the run. A regrade replaces what was kept before."""
    if not grading or not may_repeat(report):
        return
    key = key_of(grading, stored.unit, stored.digest)
    connection.execute(runs_table.update().where(runs_table.c.id == run.id).values(cache_key=key))
    if run.kind == runs.REGRADE:
        connection.execute(cache.delete().where(cache.c.key == key))
    connection.execute(insert_or_ignore(connection, cache, {"key": key, "run": run.id, "created_at": now}))


def may_repeat(report: Report) -> bool:
    """Whether the same files would be judged the same again: graded, and nothing in it decided by the clock."""
    if report.verdict not in (Verdict.PASS, Verdict.FAIL) or report.cached is not None:
        return False
    causes = [test.cause for test in report.course_tests.tests] if report.course_tests else []
    if report.student_tests is not None:
        causes += [test.cause for test in report.student_tests.tests]
        causes += [run.cause for run in report.student_tests.baselines.correct]
    late = any(cause is not None and cause.code in BY_THE_CLOCK for cause in causes)
    return not late and all(reason.code != "out_of_time" for reason in report.reasons)


def sent_before(
    connection: sa.Connection, course: str, unit: str, student: str | None, digest: str, *, but: str = ""
) -> bool:
    """Whether this student has sent these very files for this unit, and they are graded."""
    query = (
        sa.select(submissions.c.id)
        .join(runs_table, runs_table.c.id == submissions.c.run)
        .where(
            submissions.c.course == course,
            submissions.c.unit == unit,
            submissions.c.student == student,
            submissions.c.digest == digest,
            submissions.c.id != but,
            runs_table.c.status == Status.DONE.value,
        )
    )
    return student is not None and connection.execute(query).first() is not None


def _origin(hit: Hit) -> dict[str, str]:
    return {"cache_key": hit.key, "cached_from": hit.run}
