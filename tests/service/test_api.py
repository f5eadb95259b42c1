import contextlib
import dataclasses
import io
import zipfile

import pytest
import sqlalchemy as sa

from grader.unit import Listed
from sandbox.errors import EngineFailed
from service import database
from service.worker import FakeGrading
from tests.service import samples


def test_a_post_is_answered_with_the_status_object_and_where_to_look(bench):
    answer = bench.post("ada")
    assert answer.status_code == 202
    body = answer.json()
    assert answer.headers["Location"] == body["links"]["self"] == f"/v1/submissions/{body['id']}"
    assert int(answer.headers["Retry-After"]) > 0
    assert (body["unit"], body["status"], body["position"], body["attempts_left"]) == ("L0.0", "queued", 1, None)
    assert set(body) == {
        *("id", "unit", "status", "position", "estimate_seconds"),
        *("progress", "attempts_left", "quarantined", "links", "intake"),
    }


def seen(bench, request):
    """The transactions and the statements with which a request is answered."""
    begun, statements = [], []
    with contextlib.ExitStack() as stack:
        for name, note in (
            ("begin", lambda connection: begun.append(connection)),
            ("before_execute", lambda connection, statement, *_: statements.append(statement)),
        ):
            sa.event.listen(bench.engine, name, note)
            stack.callback(sa.event.remove, bench.engine, name, note)
        request()
    return begun, statements


@pytest.mark.both_databases
def test_where_a_submission_stands_is_looked_up_in_one_transaction_by_statements_made_once(bench):
    submission = bench.submitted("ada")
    (begun, statements), (_, again) = (
        seen(bench, lambda: bench.get(f"/v1/submissions/{submission}", "ada")) for _ in range(2)
    )
    assert len(begun) == 1 and len(statements) > 3
    assert [id(each) for each in statements] == [id(each) for each in again]


@pytest.mark.both_databases
def test_a_submission_is_stored_by_statements_made_once(bench):
    for student in ("ada", "bob", "cy"):
        bench.auth(student)
    bench.post("ada")  # whose files the others send again
    (_, statements), (_, again) = (seen(bench, lambda who=who: bench.post(who)) for who in ("bob", "cy"))
    assert len(statements) > 10
    assert [id(each) for each in statements] == [id(each) for each in again]


def test_a_graded_submission_shows_its_report_in_both_formats(bench):
    submission = bench.submitted("ada")
    assert bench.get(f"/v1/submissions/{submission}/report", "ada").status_code == 409
    bench.graded()
    assert bench.get(f"/v1/submissions/{submission}", "ada").json()["status"] == "done"
    answer = bench.get(f"/v1/submissions/{submission}/report", "ada")
    assert answer.json()["submission"]["id"] == submission
    assert answer.json()["submission"]["student"] == "ada"
    text = bench.get(f"/v1/submissions/{submission}/report?format=text", "ada")
    assert text.headers["content-type"].startswith("text/plain")
    assert "Nothing is left to do." in text.text


def test_units_are_listed_with_their_files_and_links_that_work(bench):
    [unit] = bench.get("/v1/units").json()["units"]
    assert (unit["id"], unit["files"]) == ("L0.0", [samples.PATH])
    for link in (unit["links"]["self"], unit["links"]["course_tests"], unit["links"]["page"]):
        assert bench.get(link).status_code == 200


def test_a_unit_says_what_to_send_and_how_it_is_judged(bench):
    unit = bench.get("/v1/units/L0.0").json()
    assert [(field["name"], field["repeatable"]) for field in unit["fields"]] == [("twice", False), ("tests", True)]
    assert (unit["threshold"], unit["mutants"], unit["required_mutants"]) == (0.8, 2, 1)
    assert unit["attempts_left"] is None
    assert unit["limits"]["upload_bytes"] == bench.settings.max_body_bytes
    [test] = unit["course_tests"]
    assert (test["id"], test["why"]) == ("test_doubles", "a double is twice the number")
    assert "s01" not in str(unit)


def test_the_course_tests_come_as_a_zip_without_the_reference(bench):
    answer = bench.get("/v1/units/L0.0/course-tests", "nobody")
    assert answer.headers["content-disposition"].startswith("attachment")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert set(archive.namelist()) == {"tests/suite/test_twice.py", "fixtures/L0.0/numbers.txt"}
        assert archive.read("tests/suite/test_twice.py") == samples.TESTS


@pytest.mark.parametrize(("query", "headers"), [("?wait=60", {}), ("", {"Prefer": "respond-async, wait=60"})])
def test_a_post_that_waits_is_answered_with_the_report(bench, query, headers):
    with bench.grading_what_comes():
        answer = bench.client.request(
            "POST",
            f"/v1/units/L0.0/submissions{query}",
            headers={**bench.auth("ada"), **headers},
            **samples.form(),
        )
    assert answer.status_code == 200
    assert answer.json()["schema"] == "autograder.report/1"
    assert answer.headers["Location"].endswith(answer.json()["submission"]["id"])
    assert ("Preference-Applied" in answer.headers) == bool(headers)


def test_a_wait_that_ends_too_early_is_a_202(bench):
    answer = bench.post("ada", query="?wait=0.2")
    assert (answer.status_code, answer.json()["status"]) == (202, "queued")


def test_no_wait_is_longer_than_the_services_own(make_bench):
    bench = make_bench(max_wait_seconds=0.2)
    assert bench.post("ada", query="?wait=86400").status_code == 202


def test_a_failure_of_ours_is_told_in_the_answer_that_waited(bench):
    bench.settings = dataclasses.replace(bench.settings, max_attempts=1)

    def fails(unit, submission, about, progress):
        raise EngineFailed("a container was lost")

    with bench.grading_what_comes(bench.worker(FakeGrading(fails))):
        answer = bench.post("ada", query="?wait=60&format=text")
    assert answer.status_code == 200
    assert "GRADER_ERROR" in answer.text


def test_what_intake_did_is_told_in_the_answer(bench):
    files = [
        ("twice", ("twice.py", samples.SOURCE.replace(b"\n", b"\r\n"))),
        ("tests", ("test_a.py", samples.TESTS)),
    ]
    answer = bench.client.request("POST", "/v1/units/L0.0/submissions", headers=bench.auth("ada"), files=files).json()
    assert [(note["action"], note["path"]) for note in answer["intake"]] == [("normalised", "twice.py")]
    assert bench.get(answer["links"]["self"], "ada").json()["intake"] == answer["intake"]


def test_what_waits_can_be_cancelled_what_is_done_cannot_and_twice_is_once(bench):
    waiting, graded = bench.submitted("ada"), bench.submitted("bob")
    for _ in range(2):
        answer = bench.client.request("DELETE", f"/v1/submissions/{waiting}", headers=bench.auth("ada"))
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    bench.graded()
    answer = bench.client.request("DELETE", f"/v1/submissions/{graded}", headers=bench.auth("bob"))
    assert (answer.status_code, answer.json()["code"]) == (409, "ended")
    report = bench.get(f"/v1/submissions/{waiting}/report", "ada")
    assert (report.status_code, report.json()["code"]) == (409, "report_not_ready")


def test_readyz_names_the_database_when_it_is_gone(bench):
    with database.writing(bench.engine) as connection:
        connection.execute(sa.text("DROP TABLE ag_workers"))
    answer = bench.get("/readyz", "nobody")
    assert answer.status_code == 503
    assert answer.json()["missing"][0].startswith("database")
    assert bench.get("/livez", "nobody").status_code == 200


def test_a_unit_that_is_only_listed_is_a_404_that_says_why(make_bench):
    course = dataclasses.replace(samples.course(), listed=(Listed("L9.9", "Later", "Not offered <yet>."),))
    bench = make_bench(course)
    answer = bench.client.request("POST", "/v1/units/L9.9/submissions", headers=bench.auth("ada"), **samples.form())
    assert (answer.status_code, answer.json()["code"]) == (404, "unit_not_offered")
    assert "Later: Not offered <yet>." in answer.json()["detail"]
    (told,) = bench.get("/v1/units").json()["not_offered"]
    assert told == {"unit": "L9.9", "title": "Later", "reason": "Not offered <yet>."}
    assert "Not offered &lt;yet&gt;." in bench.client.request("GET", "/").text
