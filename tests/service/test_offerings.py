import json

import pytest

from service import tables
from tests.service import samples

pytestmark = pytest.mark.both_databases

COURSE = "/v1/courses/autumn"
UNIT = f"{COURSE}/units/L0.0"
ADA = f"{UNIT}/extensions/ada"


def put(bench, path, who="teacher", **body):
    return bench.client.request("PUT", path, headers=bench.auth(who), json=body)


@pytest.fixture
def autumn(bench):
    assert put(bench, COURSE, title="Autumn", timezone="Europe/Berlin").status_code == 200
    return bench


def test_a_course_is_made_changed_and_listed(autumn):
    answer = put(autumn, COURSE, title="Autumn 2026", timezone="America/New_York", archived=True).json()
    assert (answer["title"], answer["timezone"], answer["archived"]) == ("Autumn 2026", "America/New_York", True)
    assert autumn.get(COURSE, "teacher").json() == answer
    listed = autumn.get("/v1/courses", "teacher").json()["courses"]
    assert [each["id"] for each in listed] == ["autumn", "default"]
    first_archived = answer["archived_at"]
    autumn.clock.now += 60
    assert put(autumn, COURSE, title="A", timezone="America/New_York", archived=True).json()["archived_at"] == (
        first_archived
    )
    assert put(autumn, COURSE, title="A").json()["archived_at"] is None


def test_what_is_asked_of_a_unit_is_shown_in_the_courses_zone(autumn):
    wanted = {
        "opens_at": "2026-10-01T08:00",
        "due_at": "2026-10-25T23:59",
        "closes_at": "2026-10-31T22:59:00Z",
        "late_policy": {"penalty": 0.1, "per": "day", "cap": 0.5, "grace_seconds": 600, "zero_after_seconds": None},
        "attempts": 20,
        "attempts_per_hour": 4,
        "cooldown_seconds": 30,
        "counts": "latest",
        "hints": 12,
        "hints_per_hour": 3,
        "hint_cooldown_seconds": 90,
        "feedback": {
            "normal": "counts",
            "past_limit": "none",
            "after_deadline": "names",
            "after_passing": "hints",
            "attempts": 10,
        },
    }
    answer = put(autumn, UNIT, **wanted)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        **wanted,
        "course": "autumn",
        "unit": "L0.0",
        "opens_at": "2026-10-01T08:00:00+02:00",
        "due_at": "2026-10-25T23:59:00+01:00",
        "closes_at": "2026-10-31T23:59:00+01:00",
    }
    assert autumn.get(UNIT, "teacher").json() == answer.json()
    assert autumn.get(COURSE, "teacher").json()["units"] == [answer.json()]


def test_what_is_shown_can_be_sent_back(autumn):
    put(autumn, UNIT, due_at="2026-10-25T02:30+01:00", attempts=3)
    shown = autumn.get(UNIT, "teacher").json()
    back = {name: value for name, value in shown.items() if name not in ("course", "unit")}
    assert put(autumn, UNIT, **back).json() == shown


def test_another_zone_moves_no_time(autumn):
    put(autumn, UNIT, due_at="2026-10-25T23:59")
    put(autumn, COURSE, title="", timezone="UTC")
    assert autumn.get(UNIT, "teacher").json()["due_at"] == "2026-10-25T22:59:00Z"


def test_a_unit_nobody_has_said_anything_about_is_without_limits(autumn):
    asked = autumn.get(UNIT, "teacher").json()
    assert {name for name, value in asked.items() if value is None} == {
        *("opens_at", "due_at", "closes_at", "attempts", "attempts_per_hour", "cooldown_seconds"),
    }
    assert asked["late_policy"]["penalty"] == 0


def test_hints_have_limits_unless_a_teacher_takes_them_away(autumn):
    names = ("hints", "hints_per_hour", "hint_cooldown_seconds")
    usual = [autumn.get(UNIT, "teacher").json()[name] for name in names]
    assert None not in usual
    shown = put(autumn, UNIT, attempts=3).json()
    assert [shown[name] for name in names] == usual
    put(autumn, UNIT, hints=None, hints_per_hour=None, hint_cooldown_seconds=None)
    assert {autumn.get(UNIT, "teacher").json()[name] for name in names} == {None}
    assert put(autumn, UNIT, hints=0).json()["hints"] == 0
    assert json.loads(autumn.rows(tables.audit)[-1].detail)["hints"] == 0


@pytest.mark.parametrize(
    ("time", "code", "says"),
    [
        ("2026-03-29T02:30", "time_skipped", "2026-03-29T03:30:00+02:00"),
        ("2026-10-25T02:30", "time_repeated", "2026-10-25T02:30:00+01:00"),
        ("2026-10-25", "time_unreadable", "2026-10-25T23:59"),
        ("", "time_unreadable", "or with an offset"),
    ],
)
def test_a_time_that_is_none_is_refused_with_what_to_write(autumn, time, code, says):
    for path in (UNIT, ADA):
        answer = put(autumn, path, due_at=time)
        assert answer.status_code == 422
        assert (answer.json()["code"], answer.json()["field"]) == (code, "due_at")
        assert says in answer.json()["detail"]
    assert autumn.rows(tables.assignments) == autumn.rows(tables.extensions) == []


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        (UNIT, {"due_at": "2026-01-02T00:00", "closes_at": "2026-01-01T00:00"}, "times_disordered"),
        (UNIT, {"opens_at": "2026-01-02T00:00", "closes_at": "2026-01-01T00:00"}, "times_disordered"),
        (UNIT, {"attempts": 0}, "invalid_request"),
        (UNIT, {"attemps": 1}, "invalid_request"),
        (UNIT, {"hints": -1}, "invalid_request"),
        (UNIT, {"hint_cooldown_seconds": -1}, "invalid_request"),
        (UNIT, {"late_policy": {"penalty": 10}}, "invalid_request"),
        (COURSE, {"title": "x", "timezone": "Mars/Olympus"}, "timezone_unknown"),
        (COURSE, {"title": "x\0"}, "invalid_request"),
        ("/v1/courses/.hidden", {"title": "x"}, "invalid_request"),
        (ADA, {"reason": "none"}, "extension_empty"),
        (ADA, {"extra_attempts": -1}, "invalid_request"),
    ],
)
def test_what_means_nothing_is_refused(autumn, path, body, code):
    answer = put(autumn, path, **body)
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_an_extension_is_granted_replaced_listed_and_withdrawn(autumn):
    put(autumn, ADA, due_at="2026-11-01T12:00", extra_attempts=2, reason="ill")
    answer = put(autumn, ADA, closes_at="2026-11-02T12:00", reason="still ill").json()
    assert (answer["due_at"], answer["closes_at"]) == (None, "2026-11-02T12:00:00+01:00")
    assert (answer["extra_attempts"], answer["reason"]) == (0, "still ill")
    put(autumn, f"{UNIT}/extensions/a/b", extra_attempts=1)
    assert autumn.get(ADA, "teacher").json() == answer
    listed = autumn.get(f"{UNIT}/extensions", "teacher").json()["extensions"]
    assert [each["student"] for each in listed] == ["a/b", "ada"]
    taken = autumn.client.request("DELETE", ADA, headers=autumn.auth("teacher"))
    assert (taken.status_code, taken.content) == (204, b"")
    again = autumn.client.request("DELETE", ADA, headers=autumn.auth("teacher"))
    assert (again.status_code, again.json()["code"]) == (404, "extension_unknown")
    assert autumn.get(ADA, "teacher").status_code == 404


def test_every_change_is_in_the_audit_log(autumn):
    put(autumn, UNIT, due_at="2026-10-25T23:59")
    put(autumn, ADA, extra_attempts=2, reason="ill")
    autumn.client.request("DELETE", ADA, headers=autumn.auth("teacher"))
    put(autumn, ADA, due_at="never")
    rows = autumn.rows(tables.audit)
    assert [(row.action, row.object, row.student) for row in rows] == [
        ("course.create", "autumn", None),
        ("assignment.update", "autumn/L0.0", None),
        ("extension.grant", "autumn/L0.0", "ada"),
        ("extension.withdraw", "autumn/L0.0", "ada"),
    ]
    assert {row.token for row in rows} == {row.id for row in autumn.rows(tables.tokens) if row.role == "teacher"}
    assert json.loads(rows[1].detail)["due_at"] == "2026-10-25T22:59:00+00:00"
    assert json.loads(rows[1].detail)["late_policy"]["penalty"] == 0
    assert json.loads(rows[2].detail) == {"due_at": None, "closes_at": None, "extra_attempts": 2, "reason": "ill"}
    assert all(row.request_id for row in rows)


@pytest.mark.parametrize("path", [COURSE, UNIT, f"{UNIT}/extensions", ADA, "/v1/courses"])
@pytest.mark.parametrize(("who", "status"), [("nobody", 401), ("ada", 403), ("lms", 403)])
def test_only_teachers_see_and_change_what_is_asked(autumn, path, who, status):
    assert autumn.get(path, who).status_code == status
    if path not in ("/v1/courses", f"{UNIT}/extensions"):
        assert put(autumn, path, who, title="mine").status_code == status


@pytest.mark.parametrize("path", ["/v1/courses/spring", "/v1/courses/spring/units/L0.0", f"{COURSE}/units/L9.9"])
def test_what_is_not_there_is_not_found(autumn, path):
    assert autumn.get(path, "teacher").status_code == 404


def test_a_new_course_takes_submissions_and_an_archived_one_takes_those_of_teachers_only(autumn):
    assert autumn.post("ada", course="autumn").status_code == 202
    put(autumn, COURSE, title="", archived=True)
    answer = autumn.post("ada", course="autumn")
    assert (answer.status_code, answer.json()["code"]) == (403, "course_archived")
    assert autumn.post("teacher", course="autumn", student="ada").status_code == 202
    autumn.graded()
    assert len(autumn.rows(tables.results)) == 2


def test_a_unit_says_when_it_is_due_for_whoever_asks(make_bench):
    bench = make_bench(samples.course())
    put(bench, "/v1/courses/default", title="", timezone="Europe/Berlin")
    put(bench, "/v1/courses/default/units/L0.0", due_at="2027-02-01T12:00", attempts=3)
    put(bench, "/v1/courses/default/units/L0.0/extensions/ada", due_at="2027-02-03T12:00", extra_attempts=1)
    seen = {who: bench.get("/v1/units/L0.0", who).json()["assignment"] for who in ("nobody", "ada", "bob", "teacher")}
    assert {who: (each["due_at"], each["attempts"]) for who, each in seen.items()} == {
        "nobody": ("2027-02-01T12:00:00+01:00", 3),
        "bob": ("2027-02-01T12:00:00+01:00", 3),
        "teacher": ("2027-02-01T12:00:00+01:00", 3),
        "ada": ("2027-02-03T12:00:00+01:00", 4),
    }
    assert "2027-02-01 12:00+01:00" in bench.get("/units/L0.0", "nobody").text
    assert bench.get("/v1/units/L0.0?course=spring", "ada").status_code == 422
