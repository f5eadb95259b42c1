"""A submission goes in; the report comes out that the real sandbox once gave for the same work.

    python -m tests.browser.replay

records those reports anew: it grades every piece of work of the evening in the sandbox and keeps the report, packed,
under reports/. So a class can be watched without Docker, and what is shown is what a teacher would see.
"""

import gzip
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from grader.grade import Progress, grade
from grader.intake import take_in
from grader.oracle import OracleProcesses
from grader.report import MutantStatus, Report
from grader.seen import About
from grader.submission import Submission, Upload
from grader.unit import Unit
from grader.units import DEFAULT_COURSE, load_course
from sandbox.docker_engine import DockerSandbox
from service.worker import FakeGrading
from tests.browser.works import UNIT, Work, mha_of, tests_of, unsigned

REPORTS = Path(__file__).parent / "reports"
SEED = 20260101
STEPS = ("course_tests", "student_tests", "mutants")


def replaying(
    unit: Unit, works: Iterable[Work], change: Callable[[Report], Report] = lambda report: report
) -> FakeGrading:
    """A grading that answers with recorded reports; `change` is made to each. Raises KeyError for unknown work."""
    recorded = {taken_in(unit, work).digest: read(work) for work in works}

    def answer(unit: Unit, submission: Submission, about: About, progress: Callable[[Progress], None]) -> Report:
        report = recorded[_of_unsigned(submission).digest]
        for number, step in enumerate(STEPS):
            progress(Progress(step, number, len(STEPS)))
        return change(_without_mutants(_about(report, submission, about, unit), unit))

    return FakeGrading(answer, conditions="replayed")


def taken_in(unit: Unit, work: Work) -> Submission:
    return take_in(unit, {"mha": Upload("mha.py", mha_of(work))}, tests_of(work))


def _of_unsigned(submission: Submission) -> Submission:
    files: Mapping[str, bytes] = {path: unsigned(data) for path, data in submission.files.items()}
    return Submission(submission.unit, files, submission.tests)


def _about(report: Report, submission: Submission, about: About, unit: Unit) -> Report:
    part = report.submission.model_copy(
        update={
            "id": about.id,
            "course": about.course,
            "student": about.student,
            "received_at": about.received_at,
            "digest": submission.digest,
        }
    )
    integrity = report.integrity
    if integrity is not None:
        integrity = integrity.model_copy(update={"digests": {**integrity.digests, "unit": unit.digest}})
    return report.model_copy(update={"submission": part, "integrity": integrity})


def _without_mutants(report: Report, unit: Unit) -> Report:
    """The report as it would be with the mutants that the unit still has."""
    part, there = report.mutation, {mutant.id for mutant in unit.mutants}
    if part is None or report.weights is None or report.course_tests is None:
        return report
    mutants = tuple(mutant for mutant in part.mutants if mutant.id in there)
    if len(mutants) == len(part.mutants):
        return report
    killed = sum(mutant.status in (MutantStatus.KILLED, MutantStatus.TIMEOUT) for mutant in mutants)
    share = killed / len(mutants)
    changed = {"mutants": mutants, "killed": killed, "total": len(mutants), "score_if_valid": share}
    score = 0.0 if part.void else share
    tests = report.course_tests.passed / report.course_tests.total
    return report.model_copy(
        update={
            "mutation": part.model_copy(update=changed | {"score": score, "kill_matrix": None}),
            "score": round(report.weights.course_tests * tests + report.weights.mutation * score, 6),
        }
    )


def read(work: Work) -> Report:
    return Report.model_validate_json(gzip.decompress((REPORTS / f"{work.name}.json.gz").read_bytes()))


def record(unit: Unit, works: Iterable[Work]) -> None:
    about = About(id="recorded", course="default", student=None, received_at=datetime(2026, 1, 1, tzinfo=UTC))
    REPORTS.mkdir(exist_ok=True)
    with DockerSandbox(jobs=1) as sandbox, OracleProcesses() as oracle:
        for work in works:
            report = grade(unit, taken_in(unit, work), sandbox=sandbox, oracle=oracle, seed=SEED, about=about)
            packed = gzip.compress(report.to_json().encode(), 9, mtime=0)
            (REPORTS / f"{work.name}.json.gz").write_bytes(packed)
            print(f"{work.name}: {report.verdict}, {report.score}", file=sys.stderr)


if __name__ == "__main__":
    from tests.browser.evening import all_works

    record(load_course(DEFAULT_COURSE).units[UNIT], all_works())
