"""A decision on a large batch: carried out in steps by whoever is there, also when one of them is killed half way."""

import json
import signal
import subprocess
import sys
from collections import Counter

import pytest

from grader.report import Verdict
from service import database, outbox, tables
from service.regrading import decisions
from service.worker import FakeGrading
from tests.service import samples

STUDENTS = [f"s{number:02}" for number in range(8)]
AT_A_TIME = 3

CUT_OFF = """
import os, signal, sys, time
from service import database, outbox
from service.regrading import decisions

told = outbox.grade_changed
left = int(sys.argv[3])

def tell(*args, **values):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    told(*args, **values)

outbox.grade_changed = tell
decisions.AT_A_TIME = int(sys.argv[4])
decisions.carry_on(database.open_engine(sys.argv[1]), sys.argv[2], time.time, 600)
"""


def gives(score):
    def answer(unit, submission, about, progress):
        verdict = Verdict.PASS if score == 1 else Verdict.FAIL
        return samples.report(about, unit.id, digest=submission.digest, verdict=verdict, score=score)

    return FakeGrading(answer)


@pytest.fixture
def batch(bench):
    """The id of a batch of two submissions of each student, tried: all would pass now."""
    for _ in range(2):
        bench.clock.now += 60
        for student in STUDENTS:
            bench.submitted(student)
    bench.graded(bench.worker(gives(0.5)))
    with database.writing(bench.engine) as connection:
        for student in STUDENTS:
            outbox.connect(
                connection,
                platform="lms",
                line_item="https://lms.example/1",
                recipient=student,
                course="default",
                unit="L0.0",
                student=student,
                now=bench.clock(),
            )
    bench.clock.now += 60
    body = {"unit": "L0.0", "reason": "a mutant was wrong"}
    batch = bench.client.request("POST", "/v1/regrades", headers=bench.auth("teacher"), json=body).json()["id"]
    bench.graded(bench.worker(gives(1.0)))
    return batch


@pytest.fixture
def slowly(monkeypatch):
    """Small steps, of which a request takes one only."""
    monkeypatch.setattr(decisions, "AT_A_TIME", AT_A_TIME)
    monkeypatch.setattr(decisions, "AT_ONCE_SECONDS", 0.0)


def decide(bench, batch, what="apply"):
    return bench.client.request("POST", f"/v1/regrades/{batch}/{what}", headers=bench.auth("teacher"), json={})


def asked(bench, batch):
    return bench.get(f"/v1/regrades/{batch}", "teacher").json()


def revisions(bench):
    return {row.student: row.revision for row in bench.rows(tables.deliveries)}


def changes(bench):
    """How often the audit log says that the grade of a submission changed."""
    return Counter(row.object for row in bench.rows(tables.audit) if row.action == "grade.change")


@pytest.mark.both_databases
def test_a_decision_that_is_killed_twice_is_carried_out_once(bench, batch, slowly):
    answer = decide(bench, batch).json()
    assert (answer["ended"], answer["submissions"]) == (False, 4)  # of two students, though a step is of three
    for calls in (3, 5):  # in the middle of a step, before and after others
        words = [bench.settings.url, batch, str(calls), str(AT_A_TIME)]
        killed = subprocess.run([sys.executable, "-c", CUT_OFF, *words], capture_output=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert 4 < sum(changes(bench).values()) < 2 * len(STUDENTS)
    told = [revision for student, revision in revisions(bench).items()]
    assert told.count(1) and told.count(3)  # twice for who has two submissions, or not at all yet

    bench.worker()._carry_on_decisions()
    while not asked(bench, batch)["decision"]["ended"]:
        bench.worker()._carry_on_decisions()
    done = asked(bench, batch)
    assert (done["progress"]["applied"], done["decision"]["submissions"]) == (16, 16)
    assert set(changes(bench).values()) == {1} and len(changes(bench)) == 16
    assert set(revisions(bench).values()) == {3}  # nothing is sent between the two, which are of one transaction
    steps = [json.loads(row.detail) for row in bench.rows(tables.audit) if row.action == "regrade.apply"]
    assert sum(step["submissions"] for step in steps) == 16
    grades = bench.get("/v1/units/L0.0/grades", "teacher").json()["grades"]
    assert {grade["final_score"] for grade in grades} == {1.0}


def test_nothing_else_is_decided_until_a_decision_has_ended(bench, batch, slowly):
    decide(bench, batch)
    second = decide(bench, batch, "rollback")
    assert (second.status_code, second.json()["code"]) == (409, "decision_under_way")
    page = bench.browser("tess", default="teacher").get(f"/courses/default/regrades/{batch}").text
    assert "Applied so far: 4 submissions." in page and 'name="do"' not in page and "regrade.js" in page
    while not asked(bench, batch)["decision"]["ended"]:
        bench.worker()._carry_on_decisions()
    assert decide(bench, batch, "rollback").status_code == 200


def test_a_batch_is_dropped_in_steps_that_tell_nobody_and_leave_no_name(bench, batch, slowly):
    decide(bench, batch, "drop")
    while not asked(bench, batch)["decision"]["ended"]:
        bench.worker()._carry_on_decisions()
    [row] = bench.rows(tables.regrade_decisions)
    assert (row.what, row.submissions, row.after) == ("drop", 16, "")  # no name of a student is left
    assert not changes(bench) and set(revisions(bench).values()) == {1}


def test_what_names_no_submission_is_no_decision(bench, batch):
    browser = bench.browser("tess", default="teacher")
    for fields in (
        {"do": "apply chosen", "submission": "a\0b"},
        {"do": "apply chosen", "submission": ""},
        {"do": "end"},
    ):
        answer = browser.post(f"/courses/default/regrades/{batch}", **fields)
        assert answer.status_code == 422, fields
    assert bench.rows(tables.regrade_decisions) == []  # or workers would try it for ever


def test_a_decision_that_cannot_be_carried_out_holds_up_no_other(bench, monkeypatch):
    tried = []

    def carry_on(engine, batch_id, clock, seconds):
        tried.append(batch_id)
        if batch_id == "first":
            raise ValueError

    monkeypatch.setattr(decisions, "under_way", lambda connection: ["first", "second"])
    monkeypatch.setattr(decisions, "carry_on", carry_on)
    bench.worker()._carry_on_decisions()
    assert tried == ["first", "second"]
