"""Tokens of students that name no course, and courses that are only for people on their class list."""

import pytest


@pytest.fixture
def put(bench):
    def put(listed_only):
        body = {"title": "Other", "listed_only": listed_only}
        answer = bench.client.request("PUT", "/v1/courses/other", headers=bench.auth("admin"), json=body)
        assert answer.json()["listed_only"] is listed_only
        bench.person("ada", other="student")

    return put


@pytest.mark.both_databases
@pytest.mark.parametrize(("listed_only", "bob"), [(False, 202), (True, 403)])
def test_a_course_for_its_list_takes_nobody_elses_submissions(bench, put, listed_only, bob):
    put(listed_only)
    assert bench.post("ada", course="other").status_code == 202
    assert bench.post("bob", course="other").status_code == bob
    assert bench.post("bob").status_code == 202  # elsewhere


def test_who_is_taken_off_the_list_sees_nothing_there_any_more(bench, put):
    put(True)
    sent = bench.submitted("ada", course="other")
    assert bench.get(f"/v1/submissions/{sent}", "ada").status_code == 200
    path = "/v1/courses/other/members/ada"
    assert bench.client.request("DELETE", path, headers=bench.auth("admin")).status_code == 204
    assert bench.get(f"/v1/submissions/{sent}", "ada").status_code == 404
    assert bench.get(f"/v1/submissions/{sent}", "teacher").status_code == 200


def test_courses_that_are_made_on_a_page_are_for_their_list_unless_somebody_opens_them(bench):
    admin = bench.browser("root", admin=True)
    assert 'name="listed_only" value="1" checked' in admin.get("/courses").text
    admin.post("/courses", course="new", title="New", listed_only="1")
    assert bench.get("/v1/courses/new").json()["listed_only"] is True
    admin.post("/courses/new/settings", title="New")
    assert bench.get("/v1/courses/new").json()["listed_only"] is False
