import json
import time

import pytest
from click.testing import CliRunner

from service import database, retention
from service.cli import main
from service.retention import SECONDS_PER_DAY, Swept
from service.settings import Settings
from service.tables import audit, blobs, cache, files, hints, idempotency, outcomes, results, runs, submissions, tokens

pytestmark = pytest.mark.both_databases


@pytest.fixture
def keeping(make_bench):
    """A service that keeps submissions for ten days."""
    return make_bench(keep_submissions_days=10.0)


def sweep(bench):
    return retention.sweep(bench.engine, bench.settings, bench.clock())


def later(bench, days):
    bench.clock.now += days * SECONDS_PER_DAY


def test_without_a_setting_submissions_stay_for_ever(bench):
    bench.submitted("ada")
    bench.graded()
    later(bench, 10_000)
    assert sweep(bench) == Swept(submissions=0, blobs=0, keys=0)
    assert len(bench.rows(submissions)) == 1


def test_an_old_submission_goes_with_everything_that_hangs_on_it(keeping):
    keeping.submitted("ada")
    keeping.graded()
    later(keeping, 10.1)
    assert sweep(keeping) == Swept(submissions=1, blobs=2, keys=0)
    for table in (submissions, runs, results, outcomes, files, blobs, cache):
        assert keeping.rows(table) == [], table.name
    assert len(keeping.rows(tokens)) == 1


def test_a_younger_submission_stays_with_the_files_it_shares_with_an_older_one(keeping):
    keeping.submitted("ada")
    later(keeping, 9)
    young = keeping.submitted("bob")
    keeping.graded()
    later(keeping, 2)
    assert sweep(keeping) == Swept(submissions=1, blobs=0, keys=0)
    assert keeping.get(f"/v1/submissions/{young}/report", "bob").json()["verdict"] == "pass"
    assert [row.id for row in keeping.rows(submissions)] == [young]


def test_unlocked_hints_go_with_the_last_submission_of_their_student_and_unit(keeping):
    for who in ("ada", "bob"):
        keeping.submitted(who)
    with database.writing(keeping.engine) as connection:
        for student, number in (("ada", 2), ("ada", 3), ("bob", 2)):
            keys = {"course": "default", "unit": "L0.0", "student": student, "mutant": "m01", "number": number}
            connection.execute(hints.insert().values(**keys, unlocked_at=keeping.clock(), counted=True))
    keeping.graded()
    later(keeping, 9)
    keeping.submitted("bob")
    keeping.graded()
    later(keeping, 2)
    assert sweep(keeping).submissions == 2
    assert [row.student for row in keeping.rows(hints)] == ["bob"]
    later(keeping, 10)
    assert sweep(keeping).submissions == 1
    assert keeping.rows(hints) == []


def test_what_is_not_graded_yet_stays_however_old_it_is(keeping):
    keeping.submitted("ada")
    later(keeping, 100)
    assert sweep(keeping).submissions == 0
    keeping.graded()
    assert sweep(keeping).submissions == 1


def test_more_than_a_share_is_swept_in_several(keeping, monkeypatch):
    monkeypatch.setattr(retention, "AT_A_TIME", 2)
    for _ in range(5):
        keeping.submitted("ada")
    keeping.graded()
    later(keeping, 11)
    assert sweep(keeping).submissions == 5
    counts = [json.loads(row.detail)["count"] for row in keeping.rows(audit) if row.action == "submissions.sweep"]
    assert counts == [2, 2, 1]


def test_keys_of_requests_go_after_a_day_and_the_audit_log_stays(bench):
    now = bench.clock()
    with database.writing(bench.engine) as connection:
        for key, created_at in (("old", now - SECONDS_PER_DAY - 1), ("new", now - SECONDS_PER_DAY + 1)):
            values = {"token": "t", "key": key, "fingerprint": "", "created_at": created_at}
            connection.execute(idempotency.insert().values(values))
        audit_values = {"role": "system", "action": "a", "object": "o", "detail": "{}", "request_id": "", "at": 0}
        connection.execute(audit.insert().values(audit_values))
    assert sweep(bench).keys == 1
    assert [row.key for row in bench.rows(idempotency)] == ["new"]
    assert len(bench.rows(audit)) == 1


def test_a_worker_sweeps_by_itself_and_stops_with_it(keeping):
    keeping.submitted("ada")
    keeping.graded()
    later(keeping, 11)
    give_up_at = time.monotonic() + 30
    with retention.daily(keeping.engine, keeping.settings, keeping.clock, first_seconds=0.01, every_seconds=0.01):
        while keeping.rows(submissions):
            assert time.monotonic() < give_up_at
    keeping.submitted("ada")
    keeping.graded()
    later(keeping, 11)
    assert len(keeping.rows(submissions)) == 1


def test_a_sweep_that_fails_is_tried_again(keeping, caplog):
    keeping.submitted("ada")
    keeping.graded()
    later(keeping, 11)
    calls = []

    def clock():
        calls.append(1)
        if len(calls) == 1:
            raise database.sa.exc.OperationalError("", {}, Exception("the database does not answer"))
        return keeping.clock()

    give_up_at = time.monotonic() + 30
    with retention.daily(keeping.engine, keeping.settings, clock, first_seconds=0.01, every_seconds=0.01):
        while keeping.rows(submissions):
            assert time.monotonic() < give_up_at
    assert "the sweep failed" in caplog.text


def test_the_command_line_sweeps_at_once(keeping, monkeypatch):
    keeping.submitted("ada")
    keeping.graded()
    monkeypatch.setenv("AUTOGRADER_DATABASE_URL", keeping.settings.url)
    words = ["sweep", "--data", str(keeping.settings.data)]
    assert "0 submissions" in CliRunner().invoke(main, words).output
    monkeypatch.setenv("AUTOGRADER_KEEP_SUBMISSIONS_DAYS", "0.5")
    keeping.clock.now = 0
    with database.writing(keeping.engine) as connection:
        connection.execute(submissions.update().values(received_at=0))
    assert "1 submissions" in CliRunner().invoke(main, words).output


@pytest.mark.parametrize("days", [-1, float("nan")])
def test_a_time_that_cannot_be_is_refused(days):
    with pytest.raises(ValueError, match="keep_submissions_days"):
        Settings(keep_submissions_days=days)
