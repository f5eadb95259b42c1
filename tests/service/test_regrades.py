import json
import threading

import pytest

from grader.errors import OracleError
from grader.report import Verdict
from service import database, runs, submissions
from service.routes.submissions import RETRY_SECONDS
from service.submissions import PRIORITY_CLASS
from service.tables import audit
from service.tables import runs as run_rows
from service.worker import FakeGrading
from tests.service import samples

pytestmark = pytest.mark.both_databases


def fails_for_us(unit, submission, about, progress):
    raise OracleError("not today")


def scores(score):
    """A grading that gives everyone this score."""

    def answer(unit, submission, about, progress):
        verdict = Verdict.PASS if score == 1 else Verdict.FAIL
        return samples.report(about, unit.id, digest=submission.digest, verdict=verdict, score=score)

    return FakeGrading(answer)


@pytest.fixture
def regrade(bench):
    def regrade(submission, who="teacher", reason="the course test was wrong"):
        return bench.client.request(
            "POST", f"/v1/submissions/{submission}/runs", headers=bench.auth(who), json={"reason": reason}
        )

    return regrade


@pytest.fixture
def grade(bench):
    def grade(grading):
        bench.stop.clear()
        bench.graded(bench.worker(grading))

    return grade


def listed(bench, submission, who="teacher"):
    return bench.get(f"/v1/submissions/{submission}/runs", who).json()["runs"]


def counted_score(bench, submission):
    return bench.get(f"/v1/submissions/{submission}/report", "ada").json()["score"]


def test_a_regrade_counts_when_it_is_done_and_not_before(bench, regrade, grade):
    submission = bench.submitted("ada")
    grade(scores(0.5))
    answer = regrade(submission)
    assert answer.status_code == 202, answer.text
    assert counted_score(bench, submission) == 0.5
    assert bench.get(f"/v1/submissions/{submission}", "ada").json()["status"] == "done"
    grade(scores(1.0))
    assert counted_score(bench, submission) == 1.0
    assert [(run["kind"], run["counts"], run["score"]) for run in listed(bench, submission)] == [
        ("first", False, 0.5),
        ("regrade", True, 1.0),
    ]


def test_a_regrade_may_lower_a_grade_and_the_audit_log_holds_both(bench, regrade, grade):
    submission = bench.submitted("ada")
    grade(scores(1.0))
    regrade(submission, reason="a test let too much through")
    grade(scores(0.25))
    asked, changed = bench.rows(audit)
    assert (asked.action, asked.role, asked.object) == ("submission.regrade", "teacher", submission)
    assert json.loads(asked.detail)["reason"] == "a test let too much through"
    assert (changed.action, changed.student, changed.unit) == ("grade.change", "ada", "L0.0")
    detail = json.loads(changed.detail)
    assert [(detail[when]["verdict"], detail[when]["score"]) for when in ("before", "after")] == [
        ("pass", 1.0),
        ("fail", 0.25),
    ]
    assert [detail["before"]["run"], detail["after"]["run"]] == [run["id"] for run in listed(bench, submission)]


def test_a_failure_of_ours_never_replaces_a_grade(make_bench, regrade_of):
    bench = make_bench(max_attempts=1)
    submission = bench.submitted("ada")
    bench.graded(bench.worker(scores(0.5)))
    assert regrade_of(bench, submission).status_code == 202
    bench.graded(bench.worker(FakeGrading(fails_for_us)))
    first, second = listed(bench, submission)
    assert (second["status"], second["counts"]) == ("error", False)
    assert first["counts"] and counted_score(bench, submission) == 0.5
    assert [row.action for row in bench.rows(audit)] == ["submission.regrade"]


@pytest.fixture
def regrade_of():
    def regrade_of(bench, submission):
        path = f"/v1/submissions/{submission}/runs"
        return bench.client.request("POST", path, headers=bench.auth("teacher"), json={"reason": "ours"})

    return regrade_of


def test_after_a_failure_of_ours_a_regrade_becomes_the_grade(make_bench, regrade_of):
    bench = make_bench(max_attempts=1)
    submission = bench.submitted("ada")
    bench.graded(bench.worker(FakeGrading(fails_for_us)))
    assert bench.get(f"/v1/submissions/{submission}", "ada").json()["status"] == "error"
    regrade_of(bench, submission)
    bench.graded(bench.worker(scores(0.75)))
    assert bench.get(f"/v1/submissions/{submission}", "ada").json()["status"] == "done"
    assert counted_score(bench, submission) == 0.75


def test_a_quarantined_submission_gets_all_its_attempts_again(bench, regrade, grade):
    submission = bench.submitted("ada")
    bench.queue.submitted.clear()
    with database.writing(bench.engine) as connection:
        connection.execute(run_rows.update().values(attempts=3, status="error", quarantined=True, finished_at=0))
    assert regrade(submission).status_code == 202
    (enqueued,) = bench.queue.submitted
    with database.reading(bench.engine) as connection:
        assert runs.find(connection, enqueued).attempts == 0
    grade(scores(1.0))
    assert [(run["quarantined"], run["counts"]) for run in listed(bench, submission)] == [(True, False), (False, True)]


def test_a_regrade_waits_behind_every_students_own_submission(bench, regrade, grade):
    submission = bench.submitted("ada")
    grade(scores(1.0))
    regrade(submission)
    for _ in range(3):
        bench.submitted("bob")
    priorities = {row.kind: row.priority for row in bench.rows(run_rows) if row.status == "queued"}
    assert priorities["first"] < priorities["regrade"]
    own = bench.submitted("ada")  # and holds none of ada's back
    assert next(row.priority for row in bench.rows(run_rows) if row.submission == own) == PRIORITY_CLASS


def test_while_a_run_is_unfinished_no_other_is_begun(bench, regrade, grade):
    submission = bench.submitted("ada")
    assert (regrade(submission).status_code, regrade(submission).json()["code"]) == (409, "run_unfinished")
    grade(scores(1.0))
    assert regrade(submission).status_code == 202
    assert regrade(submission).json()["code"] == "run_unfinished"
    assert len(listed(bench, submission)) == 2


def test_two_regrades_asked_for_at_once_are_one(bench, regrade, grade):
    submission = bench.submitted("ada")
    grade(scores(1.0))
    bench.auth("teacher")
    found = []
    threads = [threading.Thread(target=lambda: found.append(regrade(submission).status_code)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [202, 409, 409, 409]


def test_what_a_student_cancelled_is_not_regraded(bench, regrade):
    submission = bench.submitted("ada")
    bench.client.request("DELETE", f"/v1/submissions/{submission}", headers=bench.auth("ada"))
    assert (regrade(submission).status_code, regrade(submission).json()["code"]) == (409, "submission_cancelled")


def test_students_see_their_runs_and_why_but_not_who_asked(bench, regrade, grade):
    submission = bench.submitted("ada")
    grade(scores(0.5))
    regrade(submission)
    grade(scores(1.0))
    for who in ("ada", "lms"):
        _, second = listed(bench, submission, who)
        assert (second["reason"], second["requested_by"], second["requester"]) == (
            "the course test was wrong",
            None,
            None,
        )
    assert listed(bench, submission)[1]["requested_by"] is not None


def test_every_runs_own_report_stays_readable_as_its_reader_may_see_it(bench, regrade, grade):
    submission = bench.submitted("ada")
    grade(scores(0.5))
    regrade(submission)
    grade(scores(1.0))
    for run in listed(bench, submission):
        assert bench.get(run["links"]["report"], "ada").json()["score"] == run["score"]
        assert samples.HIDDEN not in bench.get(run["links"]["report"], "ada").text
        assert samples.HIDDEN in bench.get(run["links"]["report"], "teacher").text
        assert bench.get(run["links"]["report"], "bob").status_code == 404


def test_a_report_that_is_not_there_yet_says_when_to_ask_again(bench, regrade, grade):
    submission = bench.submitted("ada")
    (run,) = listed(bench, submission)
    answer = bench.get(run["links"]["report"], "ada")
    assert (answer.status_code, answer.headers["Retry-After"]) == (409, str(RETRY_SECONDS))


def test_a_run_of_another_submission_is_no_run_of_this_one(bench):
    mine, theirs = bench.submitted("ada"), bench.submitted("bob")
    (run,) = listed(bench, theirs)
    for run_id in (run["id"], "0" * 32, "%00"):
        answer = bench.get(f"/v1/submissions/{mine}/runs/{run_id}/report", "ada")
        assert (answer.status_code, answer.json()["code"]) == (404, "run_unknown")


@pytest.mark.parametrize("body", [{}, {"reason": "  "}, {"reason": "\0"}, {"reason": "x" * 501}, {"reason": 1}, []])
def test_a_regrade_needs_a_reason(bench, grade, body):
    submission = bench.submitted("ada")
    grade(scores(1.0))
    path = f"/v1/submissions/{submission}/runs"
    answer = bench.client.request("POST", path, headers=bench.auth("teacher"), json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_a_regrade_is_enqueued_with_its_row_or_not_at_all(bench, regrade, grade, monkeypatch):
    submission = bench.submitted("ada")
    grade(scores(1.0))

    def refuse(connection, run_id, priority):
        raise RuntimeError("no queue")

    monkeypatch.setattr(bench.queue, "submit", refuse)
    assert regrade(submission).status_code == 500
    assert len(listed(bench, submission)) == 1
    with database.reading(bench.engine) as connection:
        assert submissions.find(connection, submission).run == listed(bench, submission)[0]["id"]
