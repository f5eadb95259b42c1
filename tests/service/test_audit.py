import json

import pytest
from click.testing import CliRunner

from service import audit, database
from service.audit import By
from service.cli import main
from service.tables import audit as table
from service.tables import tokens

pytestmark = pytest.mark.both_databases


def entries(bench, query="", who="admin"):
    answer = bench.get(f"/v1/audit{query}", who)
    assert answer.status_code == 200, answer.text
    return answer.json()["entries"]


@pytest.fixture
def record(bench):
    def record(**given):
        values = {"who": None, "action": "thing.change", "object": "1", "now": bench.clock()} | given
        with database.writing(bench.engine) as connection:
            by = By(values.pop("who"), values.pop("now"), values.pop("request_id", ""))
            audit.note(connection, by, **values)

    return record


def test_a_cancelled_submission_says_who_cancelled_it_and_in_which_request(bench):
    submission = bench.submitted("ada")
    answer = bench.client.request("DELETE", f"/v1/submissions/{submission}", headers=bench.auth("teacher"))
    (entry,) = entries(bench)
    assert (entry["action"], entry["object"], entry["role"]) == ("submission.cancel", submission, "teacher")
    assert (entry["student"], entry["course"], entry["unit"]) == ("ada", "default", "L0.0")
    assert entry["request_id"] == answer.headers["X-Request-ID"]
    assert [row.role for row in bench.rows(tokens) if row.id == entry["token"]] == ["teacher"]


def test_what_was_not_done_is_not_in_the_log(bench):
    submission = bench.submitted("ada")
    bench.graded()
    answer = bench.client.request("DELETE", f"/v1/submissions/{submission}", headers=bench.auth("ada"))
    assert answer.status_code == 409
    assert entries(bench) == []


def test_an_entry_is_gone_with_the_transaction_that_failed(bench):
    with pytest.raises(RuntimeError), database.writing(bench.engine) as connection:
        audit.note(connection, By(None, 0), action="thing.change", object="1")
        raise RuntimeError
    assert entries(bench) == []


def test_pages_hold_every_entry_once_while_more_are_written(bench, record):
    for number in range(7):
        record(object=str(number))
    found, path = [], "/v1/audit?limit=3"
    while path:
        page = bench.get(path).json()
        found += [entry["object"] for entry in page["entries"]]
        path = page["next"]
        record(object="later")
    assert found == ["6", "5", "4", "3", "2", "1", "0"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("action=a.b", {"1"}),
        ("object=2", {"2"}),
        ("student=ada", {"1", "3"}),
        ("course=default&unit=L0.0", {"2"}),
        ("since=2027-01-15T08:00:20Z", {"3"}),
        ("until=2027-01-15T09:00:20%2B01:00", {"1", "2"}),
        ("student=ada&until=2027-01-15T08:00:20", {"1"}),
    ],
)
def test_every_filter_leaves_what_fits(bench, record, query, expected):
    record(object="1", action="a.b", student="ada", now=1_800_000_000)
    record(object="2", course="default", unit="L0.0", now=1_800_000_010)
    record(object="3", student="ada", now=1_800_000_020)
    assert {entry["object"] for entry in entries(bench, f"?{query}")} == expected


def test_a_teacher_sees_what_was_done_in_courses_and_a_student_nothing(bench, record):
    record(object="token")
    record(object="course", course="default")
    assert [entry["object"] for entry in entries(bench, who="teacher")] == ["course"]
    assert len(entries(bench)) == 2
    assert {bench.get("/v1/audit", who).status_code for who in ("ada", "lms")} == {403}


def test_tokens_made_and_revoked_at_the_command_line_are_in_the_log(bench, monkeypatch):
    monkeypatch.setenv("AUTOGRADER_DATABASE_URL", bench.settings.url)

    def run(*words):
        return CliRunner().invoke(main, ["token", *words, "--data", str(bench.settings.data)])

    secret = run("create", "--role", "student", "--student", "ada", "--label", "desk 3").stdout.strip()
    (made,) = bench.rows(table)
    assert run("revoke", made.object).exit_code == 0
    assert [(row.action, row.role, row.student) for row in bench.rows(table)] == [
        ("token.create", "system", "ada"),
        ("token.revoke", "system", "ada"),
    ]
    assert json.loads(made.detail) == {"role": "student", "label": "desk 3"}
    assert secret not in str(bench.rows(table))
