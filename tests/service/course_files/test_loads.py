"""The course's files are read again when an administrator says so; what was changed is told, and workers start anew."""

import json
import time

import pytest

from service import database, tables
from service.queue import Stopping
from service.worker import FakeGrading
from tests.grader import small_course
from tests.service import samples
from tests.service.test_serve import PATIENCE_SECONDS, Served, serve
from tests.service.test_worker import Engine, quick, start

__all__ = ["quick", "serve", "start"]  # fixtures

OTHER = small_course.PATCH.replace("x * x", "x * x * x")
MUTANT = "course/mutants/Z1/s01.patch"


@pytest.fixture
def write(bench):
    def write(changes=None):
        small_course.write_course(bench.settings.course.parent, changes)

    return write


@pytest.fixture
def reload(bench):
    def reload(who="admin"):
        return bench.client.request("POST", "/v1/course/reload", headers=bench.auth(who))

    return reload


def test_what_was_changed_is_told_and_in_use_from_then_on(bench, write, reload):
    write()
    first = reload().json()
    assert {each["unit"]: each["how"] for each in first["changed"]} == {"L0.0": "removed", "Z1": "added"}
    assert [unit["id"] for unit in bench.get("/v1/units").json()["units"]] == ["Z1"]
    assert reload().json()["changed"] == []
    write({MUTANT: OTHER})
    assert [unit["id"] for unit in bench.get("/v1/units").json()["units"]] == ["Z1"]
    second = reload().json()
    parts = [{"kind": "mutants", "name": "s01", "how": "changed"}]
    assert second["changed"] == [{"unit": "Z1", "how": "changed", "parts": parts}]
    assert second["digest"] != first["digest"]
    assert len(bench.rows(tables.course_loads)) == 2  # not for the one that changed nothing
    said = [json.loads(row.detail) for row in bench.rows(tables.audit) if row.action == "course.reload"]
    assert said[1] == {"units": {"Z1": ["changed", "mutants s01: changed"]}}


def test_files_that_would_lose_a_unit_in_use_are_not_taken(bench, write, reload):
    write()
    reload()
    write({"course/modules/Z1.toml": "id = 7"})
    answer = reload()
    assert (answer.status_code, answer.json()["code"]) == (409, "course_unusable")
    detail = answer.json()["detail"]
    assert "modules/Z1.toml" in detail and detail.endswith(". Units stay as they were.")
    assert [unit["id"] for unit in bench.get("/v1/units").json()["units"]] == ["Z1"]
    assert len(bench.rows(tables.course_loads)) == 1


def test_files_that_are_not_there_are_said_to_be_missing(bench, reload):
    assert (reload().status_code, reload().json()["code"]) == (409, "course_unusable")


def test_only_administrators_have_files_read(bench, write, reload):
    write()
    assert [reload(who).status_code for who in ("ada", "lms", "teacher")] == [403, 403, 403]
    assert [unit["id"] for unit in bench.get("/v1/units").json()["units"]] == ["L0.0"]


def test_the_page_does_the_same(bench, write):
    write()
    admin = bench.browser("root", admin=True)
    assert "L0.0" in admin.get("/course-files").text
    read = admin.post("/course-files").text
    assert "Z1 was added" in read and "L0.0 was removed" in read
    assert "Nothing was changed." in admin.post("/course-files").text
    write({"course/modules/Z1.toml": "id = 7"})
    refused = admin.post("/course-files")
    assert (refused.status_code, 'role="alert"' in refused.text) == (409, True)


def test_a_worker_ends_when_files_were_read_again_after_its_start(quick, start):
    with database.writing(quick.engine) as connection:
        connection.execute(tables.course_loads.insert().values(at=1.0, token="t", digest="0"))
    running = start(quick, Engine(), FakeGrading(samples.passes))
    running.until(lambda: running.worker._course_load is not None)
    assert not quick.stop.is_set()
    with database.writing(quick.engine) as connection:
        connection.execute(tables.course_loads.insert().values(at=2.0, token="t", digest="1"))
    running.until(lambda: not running.thread.is_alive())
    assert running.failure is None and quick.rows(tables.workers) == []


def test_what_is_sent_after_files_were_chosen_is_not_graded_by_those_before(bench):
    worker = bench.worker()
    first = bench.submitted("ada")
    bench.graded(worker)
    with database.writing(bench.engine) as connection:
        connection.execute(tables.course_loads.insert().values(at=1.0, token="t", digest="1"))
    second = bench.submitted("bob")
    with pytest.raises(Stopping):
        bench.graded(worker)
    assert bench.stop.is_set()
    assert [bench.get(f"/v1/submissions/{each}").json()["status"] for each in (first, second)] == ["done", "queued"]


# A fault that shows for large numbers only, which the tests of the submission do not try.
HARDER = small_course.PATCH.replace("x * x + self.offset", "x * self.factor + self.offset if x < 9 else x")


@pytest.mark.full
def test_a_mutant_is_changed_published_regraded_and_rolled_back(serve):
    served: Served = serve("--dev-token", "letmein")
    served.said(r"Serving at http://")
    client = served.client
    client.headers["Authorization"] = "Bearer letmein"
    before = served.post("?wait=100").json()
    assert before["mutation"]["killed"] == 1, before["reasons"]
    submission = before["submission"]["id"]

    worker = served.children()["worker"]
    files, folder = {"files": ("s01.patch", HARDER.encode())}, {"into": "course/mutants/Z1", "note": "a harder fault"}
    version = client.post("/v1/course/versions", files=files, data=folder).json()
    [changed] = client.post(f"{version['links']['self']}/publish").json()["changed"]
    assert [(each["kind"], each["name"]) for each in changed["parts"]] == [("mutants", "s01")]
    until(lambda: served.children().get("worker", worker) != worker)

    batch = client.post("/v1/regrades", json={"unit": "Z1", "reason": "a harder fault"}).json()
    here = f"/v1/regrades/{batch['id']}"
    until(lambda: client.get(here).json()["stage"] == "ready")
    [move] = client.get(f"{here}/moves").json()["moves"]
    assert (move["moved"], move["why"]["causes"], move["why"]["changed"]) == (
        True,
        ["mutants"],
        ["mutants s01: changed"],
    )
    assert client.get(f"/v1/submissions/{submission}/report").json()["score"] == before["score"]

    assert client.post(f"{here}/apply", json={}).json()["submissions"] == 1
    after = client.get(f"/v1/submissions/{submission}/report").json()
    assert (after["mutation"]["killed"], after["score"] < before["score"]) == (0, True)
    assert client.post(f"{here}/rollback", json={}).json()["submissions"] == 1
    assert client.get(f"/v1/submissions/{submission}/report").json() == before


def until(reached):
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not reached():
        assert time.monotonic() < give_up_at
        time.sleep(0.2)
