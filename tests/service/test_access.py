"""What roles may do beyond the table in test_matrix.py."""

import pytest

from service import accounts, database
from tests.service.samples import HIDDEN

ROLES = ["nobody", "ada", "bob", "lms", "teacher", "admin"]


def test_everybody_with_a_token_may_submit_and_nobody_without(bench):
    for who in ROLES:
        assert bench.post(who).status_code == (401 if who == "nobody" else 202), who


def test_only_the_owner_and_staff_can_cancel(bench):
    submission = bench.submitted("ada")
    for who, expected in (("nobody", 401), ("bob", 404)):
        answer = bench.client.request("DELETE", f"/v1/submissions/{submission}", headers=bench.auth(who))
        assert answer.status_code == expected
    assert bench.get(f"/v1/submissions/{submission}", "ada").json()["status"] == "queued"
    answer = bench.client.request("DELETE", f"/v1/submissions/{submission}", headers=bench.auth("ada"))
    assert answer.json()["status"] == "cancelled"


def test_only_teachers_have_a_submission_graded_again(bench):
    submission = bench.submitted("ada")
    bench.graded()
    for who, expected in (("nobody", 401), ("ada", 403), ("bob", 403), ("lms", 403), ("teacher", 202)):
        path = f"/v1/submissions/{submission}/runs"
        answer = bench.client.request("POST", path, headers=bench.auth(who), json={"reason": "why not"})
        assert answer.status_code == expected, who


def test_a_submission_without_a_student_is_no_students(bench):
    submission = bench.submitted("teacher")
    assert bench.get(f"/v1/submissions/{submission}", "ada").status_code == 404


def test_a_student_cannot_submit_for_another(bench):
    answer = bench.post("ada", student="bob")
    assert (answer.status_code, answer.json()["code"]) == (403, "student_mismatch")
    assert bench.post("ada", student="ada").status_code == 202


@pytest.mark.parametrize("who", ["lms", "teacher", "admin"])
def test_staff_submit_for_a_student_who_then_sees_it(bench, who):
    submission = bench.submitted(who, student="ada")
    assert bench.get(f"/v1/submissions/{submission}", "ada").status_code == 200
    assert bench.get(f"/v1/submissions/{submission}", "bob").status_code == 404


def test_only_teachers_see_what_tests_said_on_correct_code(bench):
    submission = bench.submitted("ada")
    bench.graded()
    path = f"/v1/submissions/{submission}/report"
    for who in ("ada", "lms"):  # an LMS passes the report on to the student
        for form in ("json", "text"):
            assert HIDDEN not in bench.get(f"{path}?format={form}", who).text
    for who in ("teacher", "admin"):
        assert HIDDEN in bench.get(path, who).text


def test_a_revoked_or_expired_token_opens_nothing(bench):
    submission = bench.submitted("ada")
    brief = {"Authorization": f"Bearer {bench.token('admin', expires_at=bench.clock() + 60)}"}
    path = f"/v1/submissions/{submission}"
    assert bench.client.request("GET", path, headers=brief).status_code == 200
    bench.clock.now += 61
    answer = bench.client.request("GET", path, headers=brief)
    assert (answer.status_code, answer.json()["code"]) == (401, "token_invalid")
    with database.writing(bench.engine) as connection:
        for account in accounts.list_all(connection):
            accounts.revoke(connection, account.id, bench.clock())
    assert bench.get(path, "ada").status_code == 401


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Basic YTpi", "Bearer \u00e9", "bearer nothing"])
def test_an_odd_authorization_header_is_a_401(bench, header):
    answer = bench.client.request(
        "GET", f"/v1/submissions/{'0' * 32}", headers={"Authorization": header.encode("latin-1")}
    )
    assert answer.status_code == 401


def test_no_token_is_in_the_database(bench):
    secret = bench.token("admin")
    bench.get("/v1/units/L0.0/stats", "admin")
    bench.engine.dispose()
    stored = b"".join(file.read_bytes() for file in bench.settings.data.iterdir())
    assert secret.encode() not in stored
    assert accounts.digest_of(secret).encode() in stored
