import csv
import io
import json

import pytest

from grader.formats import Format
from grader.report import Verdict
from service import database, grades, spreadsheet, tables
from service.grades import View
from service.outbox import score
from service.worker import FakeGrading
from tests.service import samples

pytestmark = pytest.mark.both_databases

UNIT = "/v1/courses/default/units/L0.0"
ADA = f"{UNIT}/overrides/ada"
REASON = "she showed it in the oral exam"


def scores(score):
    def answer(unit, submission, about, progress):
        return samples.report(about, unit.id, digest=submission.digest, verdict=Verdict.FAIL, score=score)

    return FakeGrading(answer)


@pytest.fixture
def put(bench):
    def put(score=0.9, reason=REASON, who="teacher", path=ADA):
        body = {"score": score, "reason": reason}
        return bench.client.request("PUT", path, headers=bench.auth(who), json=body)

    return put


def grade_of(bench, student, query=""):
    grades = bench.get(f"/v1/units/L0.0/grades?course=default{query}", "teacher").json()["grades"]
    return next((grade for grade in grades if grade["student"] == student), None)


def test_a_grade_set_by_hand_counts_and_is_marked_with_its_reason(bench, put):
    bench.submitted("ada")
    bench.graded(bench.worker(scores(0.5)))
    answer = put()
    assert answer.status_code == 200, answer.text
    assert bench.get(ADA).json() == answer.json()
    [listed] = bench.get(f"{UNIT}/overrides").json()["overrides"]
    assert listed == answer.json()
    for found in (grade_of(bench, "ada"), bench.get("/v1/grades?course=default", "ada").json()["grades"][0]):
        assert (found["score"], found["final_score"]) == (0.5, 0.9)
        assert (found["by_hand"]["score"], found["by_hand"]["reason"]) == (0.9, REASON)


def test_it_survives_a_regrade_a_later_submission_and_a_deadline(bench, put):
    submission = bench.submitted("ada")
    bench.graded(bench.worker(scores(0.5)))
    put()
    reason = {"json": {"reason": "again"}}
    bench.client.request("POST", f"/v1/submissions/{submission}/runs", headers=bench.auth("teacher"), **reason)
    bench.graded(bench.worker(scores(1.0)))
    body = {"due_at": "2020-01-01T00:00:00Z", "late_policy": {"penalty": 1.0}}
    bench.client.request("PUT", UNIT, headers=bench.auth("teacher"), json=body)
    bench.submitted("ada")
    bench.graded(bench.worker(scores(0.1)))
    assert grade_of(bench, "ada")["final_score"] == 0.9


def test_without_it_the_submissions_are_the_grade_again(bench, put):
    bench.submitted("ada")
    bench.graded(bench.worker(scores(0.5)))
    put()
    taken = bench.client.request("DELETE", ADA, headers=bench.auth("teacher"))
    assert taken.status_code == 204
    assert (grade_of(bench, "ada")["final_score"], grade_of(bench, "ada")["by_hand"]) == (0.5, None)
    assert bench.get(ADA).json()["code"] == "override_unknown"
    assert bench.client.request("DELETE", ADA, headers=bench.auth("teacher")).status_code == 404


def test_a_student_who_sent_nothing_has_a_row_with_the_grade_set(bench, put):
    bench.submitted("bob")
    put(path=f"{UNIT}/overrides/zoe")
    put(path=f"{UNIT}/overrides/ann")
    answer = bench.get("/v1/units/L0.0/grades?course=default&limit=2", "teacher").json()
    assert [grade["student"] for grade in answer["grades"]] == ["ann", "bob"]
    assert answer["grades"][0]["submission"] is None and answer["grades"][0]["final_score"] == 0.9
    second = bench.get(answer["next"], "teacher").json()
    assert ([grade["student"] for grade in second["grades"]], second["next"]) == (["zoe"], None)
    assert bench.get("/v1/grades?course=default", "zoe").json()["grades"][0]["final_score"] == 0.9


def test_the_view_as_submitted_shows_what_it_was_without_hands(bench, put):
    bench.submitted("ada")
    bench.graded(bench.worker(scores(0.5)))
    put()
    found = {view.value: grade_of(bench, "ada", f"&view={view.value}")["final_score"] for view in View}
    assert found == {"best": 0.9, "latest": 0.9, "as_submitted": 0.5}


@pytest.mark.parametrize("form", list(Format))
def test_every_form_of_the_report_but_the_one_of_mutants_is_marked(bench, put, form):
    submission = bench.submitted("ada")
    bench.graded(bench.worker(scores(0.5)))
    put()
    for who in ("ada", "teacher", "lms"):
        text = bench.get(f"/v1/submissions/{submission}/report?format={form}", who).text
        assert (REASON in " ".join(text.split())) is (form is not Format.STRYKER)
        if form is Format.GRADESCOPE:
            assert json.loads(text)["score"] == 90.0
        if form is Format.JSON:
            assert (json.loads(text)["score"], json.loads(text)["by_hand"]["score"]) == (0.5, 0.9)


def test_lists_and_spreadsheets_are_marked(bench, put):
    bench.submitted("ada")
    bench.submitted("bob")
    bench.graded(bench.worker(scores(0.5)))
    put(reason="=1+1")
    rows = bench.get("/v1/units/L0.0/submissions", "teacher").json()["submissions"]
    assert {row["student"]: row["by_hand"] for row in rows} == {"ada": 0.9, "bob": None}
    target = io.StringIO()
    with database.reading(bench.engine) as connection:
        assert spreadsheet.write(connection, "default", target) == 2
    ada, bob = csv.DictReader(io.StringIO(target.getvalue()))
    assert (ada["score"], ada["final_score"], ada["by_hand"], ada["by_hand_reason"]) == ("0.5", "0.9", "0.9", "'=1+1")
    assert (bob["final_score"], bob["by_hand"], bob["by_hand_reason"]) == ("0.5", "", "")


def test_every_change_is_in_the_audit_log_with_what_was_before(bench, put):
    put(0.9)
    put(0.4, "it was another student")
    bench.client.request("DELETE", ADA, headers=bench.auth("admin"))
    entries = [row for row in bench.rows(tables.audit) if row.action.startswith("grade.")]
    assert [(row.action, row.role, row.student) for row in entries] == [
        ("grade.set", "teacher", "ada"),
        ("grade.set", "teacher", "ada"),
        ("grade.unset", "admin", "ada"),
    ]
    first, second, third = (json.loads(row.detail) for row in entries)
    assert (first["before"], first["after"], second["before"], second["after"]) == (None, 0.9, 0.9, 0.4)
    assert third["before"] == 0.4


@pytest.mark.parametrize(("score", "reason"), [(1.1, "x"), (-0.1, "x"), (0.5, ""), (0.5, "  "), (0.5, "a\x00")])
def test_a_grade_beyond_the_scale_or_without_a_reason_is_refused(bench, put, score, reason):
    assert put(score, reason).status_code == 422
    assert bench.get(ADA).status_code == 404


def test_it_goes_with_the_student_and_is_in_the_export(bench, put):
    put()
    put(path=f"{UNIT}/overrides/bob", reason="as good as ada")
    bench.token("student", "ada")
    assert bench.client.request("DELETE", "/v1/students/ada", headers=bench.auth("admin")).status_code == 200
    [left] = bench.rows(tables.overrides)
    assert left.student == "bob" and "ada" not in left.reason


@pytest.mark.parametrize("sent", [True, False])
def test_platforms_are_told_the_grade_set_and_why(bench, put, sent):
    if sent:
        bench.submitted("ada")
        bench.graded(bench.worker(scores(0.5)))
    put()
    with database.reading(bench.engine) as connection:
        [grade] = grades.of_student(connection, "default", "ada", None)
    told = score.content(grade, False, {})
    assert (told["given"], told["grading"]) == (90.0, "FullyGraded")
    assert REASON in told["comment"] and told["submitted_at"] is not None
