"""Every route with every role, and with another student's ids."""

import pytest

from service import accounts, database
from tests.service.samples import HIDDEN

ROLES = ["nobody", "ada", "bob", "lms", "teacher", "admin"]

# (method, path, who may, status for those who may not); {id} is a graded submission of ada's.
ROUTES = [
    ("GET", "/v1/units", ROLES),
    ("GET", "/v1/units/L0.0", ROLES),
    ("GET", "/v1/units/L0.0/course-tests", ROLES),
    ("GET", "/v1/submissions/{id}", ["ada", "lms", "teacher", "admin"]),
    ("GET", "/v1/submissions/{id}/report", ["ada", "lms", "teacher", "admin"]),
    ("GET", "/v1/submissions/{id}/runs", ["ada", "lms", "teacher", "admin"]),
    ("GET", "/v1/submissions/{id}/runs/{run}/report", ["ada", "lms", "teacher", "admin"]),
    ("GET", "/v1/units/L0.0/submissions", ["teacher", "admin"]),
    ("GET", "/v1/units/L0.0/stats", ["teacher", "admin"]),
    ("GET", "/v1/audit", ["teacher", "admin"]),
    ("GET", "/livez", ROLES),
    ("GET", "/openapi.json", ROLES),
    ("GET", "/", ROLES),
    ("GET", "/units/L0.0", ROLES),
]


@pytest.mark.parametrize(("method", "path", "allowed"), ROUTES)
def test_a_route_opens_to_exactly_its_roles(bench, method, path, allowed):
    submission = bench.submitted("ada")
    (run,) = bench.queue.submitted
    bench.graded()
    for who in ROLES:
        answer = bench.client.request(method, path.format(id=submission, run=run), headers=bench.auth(who))
        if who in allowed:
            assert answer.status_code == 200, (who, answer.text)
        elif who == "nobody":
            assert answer.status_code == 401, who
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        elif "{id}" in path:
            assert answer.status_code == 404, who
        else:
            assert answer.status_code == 403, who


def test_every_documented_route_is_tried_above_or_below(bench):
    tried = {(method, path) for method, path, _ in ROUTES}
    tried |= {("POST", "/v1/units/L0.0/submissions"), ("DELETE", "/v1/submissions/{id}"), ("GET", "/readyz")}
    tried |= {("POST", "/v1/submissions/{id}/runs")}
    tried |= {(method, "/v1/students/{student}") for method in ("GET", "DELETE")}  # test_students.py
    documented = {
        (method.upper(), path.replace("{unit}", "L0.0").replace("{submission_id}", "{id}").replace("{run_id}", "{run}"))
        for path, operations in bench.app.openapi()["paths"].items()
        for method in operations
    }
    assert documented <= tried


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


def test_another_students_submission_looks_exactly_like_one_that_never_was(bench):
    submission = bench.submitted("ada")
    theirs = bench.get(f"/v1/submissions/{submission}", "bob").json()
    none = bench.get(f"/v1/submissions/{'0' * 32}", "bob").json()
    del theirs["request_id"], none["request_id"]
    assert theirs == none


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
