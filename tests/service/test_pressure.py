"""Intake closes before anything breaks, says why, and does not flap."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import anyio
import httpx
import pytest
import sqlalchemy as sa

from service import database, pressure, tables
from service.pressure import Pressure
from service.problems import Problem
from service.queue import FakeQueue
from service.settings import Settings
from tests.service import samples

PATH = "/v1/units/L0.0/submissions"
LEAST, MOST = 1000, 10
SETTINGS = Settings(min_free_bytes=LEAST, max_queued=MOST)


def codes(found):
    return [closed.code for closed in found]


def test_intake_closes_at_a_mark_and_opens_only_with_clear_room():
    state = Pressure()
    ample = 10 * LEAST
    free = [ample, LEAST, LEAST - 1, LEAST, int(LEAST * 1.19), int(LEAST * 1.2), LEAST]
    assert [codes(state.judge(SETTINGS, each, 0)) != [] for each in free] == [
        False,
        False,
        True,
        True,
        True,
        False,
        False,
    ]
    queued = [MOST - 1, MOST, MOST + 5, MOST, 9, MOST - 1, MOST]
    assert [codes(state.judge(SETTINGS, ample, each)) != [] for each in queued] == [
        *(False, True, True, True, False, False, True)
    ]
    assert codes(state.judge(SETTINGS, 0, MOST)) == ["disk_low", "queue_full"]


@pytest.mark.both_databases
def test_a_full_queue_is_a_503_with_a_receipt_until_enough_is_graded(make_bench):
    bench = make_bench(max_queued=10)
    for _ in range(10):
        assert bench.post("ada").status_code == 202
    answer = bench.post("bob")
    assert (answer.status_code, answer.json()["code"]) == (503, "queue_full")
    assert "10 submissions wait" in answer.json()["message"]
    assert int(answer.headers["Retry-After"]) == answer.json()["retry_after_seconds"] > 0
    receipt, first = answer.json()["receipt"], bench.clock()
    bench.clock.now += 60
    bench.worker().grade_run(bench.queue.submitted.pop(0))
    assert bench.post("bob", receipt=receipt).status_code == 202
    assert min(row.received_at for row in bench.rows(tables.submissions) if row.student == "bob") == first


def test_a_full_disk_is_a_503_before_anything_is_written(bench):
    bench.service.pressure.free_bytes = lambda folder: 3 * 2**20
    answer = bench.post("ada")
    assert (answer.status_code, answer.json()["code"]) == (503, "disk_low")
    assert "3 MiB are free" in answer.json()["message"]
    assert "receipt" in answer.json()
    assert bench.rows(tables.submissions) == bench.rows(tables.blobs) == []


def test_what_was_accepted_is_replayed_also_while_nothing_more_is_taken_in(bench):
    headers = {**bench.auth("ada"), "Idempotency-Key": "k1"}
    first = bench.client.request("POST", PATH, headers=headers, **samples.form())
    bench.service.pressure.free_bytes = lambda folder: 0
    again = bench.client.request("POST", PATH, headers=headers, **samples.form())
    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])
    assert bench.post("ada").status_code == 503


def test_the_free_bytes_are_those_of_the_data_directorys_disk(tmp_path):
    import shutil

    assert pressure.free_bytes(tmp_path) == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.2)


def test_the_state_is_there_for_readiness(bench):
    with database.reading(bench.engine) as connection:
        assert bench.service.pressure.state(bench.settings, connection) == ()
        bench.service.pressure.free_bytes = lambda folder: 0
        [closed] = bench.service.pressure.state(bench.settings, connection)
    assert (closed.code, "disk" in closed.reason) == ("disk_low", True)


class Held(FakeQueue):
    """Keeps whoever enqueues waiting until `leave` is set."""

    def __init__(self):
        super().__init__()
        self.entered, self.leave = threading.Semaphore(0), threading.Event()

    def submit(self, connection, run_id, priority):
        self.entered.release()
        assert self.leave.wait(60)
        super().submit(connection, run_id, priority)


def test_too_many_uploads_are_turned_away_before_they_are_read(make_bench, monkeypatch):
    monkeypatch.setattr(pressure, "PLACE_WAIT_SECONDS", 0.2)
    bench = make_bench(max_uploads=1)
    object.__setattr__(bench.service, "queue", Held())
    bench.auth("ada")
    read = []

    async def body():
        read.append(1)
        yield b""

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(bench.post, "ada")
        assert bench.service.queue.entered.acquire(timeout=30)
        headers = {**bench.auth("ada"), "Content-Type": "multipart/form-data; boundary=x"}
        second = bench.client.request("POST", PATH, headers=headers, content=body())
        bench.service.queue.leave.set()
        assert first.result().status_code == 202
    assert (second.status_code, second.json()["code"], read) == (503, "too_many_uploads", [])
    assert int(second.headers["Retry-After"]) > 0
    assert bench.post("ada").status_code == 202


def test_an_upload_waits_a_moment_for_a_place(make_bench, monkeypatch):
    monkeypatch.setattr(pressure, "PLACE_WAIT_SECONDS", 60.0)
    bench = make_bench(max_uploads=1)
    bench.auth("ada")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: bench.post("ada"), range(8)))
    assert {answer.status_code for answer in answers} == {202}
    assert bench.service.pressure.uploads == []


def test_only_some_store_at_a_time_and_others_are_answered_meanwhile(bench):
    submission = bench.submitted("ada")
    storing = bench.service.pressure.storing
    for n in range(8):
        bench.token("student", f"student-{n}")
    with ThreadPoolExecutor(8) as students, database.writing(bench.engine):  # so that nobody gets on
        posts = [students.submit(bench.post, f"student-{n}") for n in range(8)]
        give_up_at = time.monotonic() + 30
        while storing.statistics().tasks_waiting < 8 - pressure.STORING and time.monotonic() < give_up_at:
            time.sleep(0.01)
        assert storing.borrowed_tokens == pressure.STORING
        assert bench.get(f"/v1/submissions/{submission}", "ada").status_code == 200
    assert [post.result().status_code for post in posts] == [202] * 8


def test_who_waits_to_be_stored_is_stored_in_turn(bench):
    bench.service.pressure.storing.total_tokens = 1
    storing = bench.service.pressure.storing
    students = [f"student-{n}" for n in range(5)]
    for student in students:
        bench.token("student", student)
    with ThreadPoolExecutor(len(students)) as pool:
        with database.writing(bench.engine):
            posts = []
            for waiting, student in enumerate(students):
                posts.append(pool.submit(bench.post, student))
                give_up_at = time.monotonic() + 30
                while storing.borrowed_tokens + storing.statistics().tasks_waiting <= waiting:
                    assert time.monotonic() < give_up_at
                    time.sleep(0.01)
        stored = [post.result().json()["id"] for post in posts]
    with database.reading(bench.engine) as connection:
        runs = connection.execute(sa.select(tables.submissions.c.id, tables.submissions.c.run)).all()
    by_run = {row.run: row.id for row in runs}
    assert [by_run[run] for run in bench.queue.submitted] == stored


def test_who_sends_slowly_holds_nobody_up(bench):
    bench.service.pressure.storing.total_tokens = 1
    bench.auth("bob")
    begun, go_on = threading.Event(), threading.Event()
    request = httpx.Request("POST", f"http://grader.example{PATH}", **samples.form())
    whole = request.read()

    async def slowly():
        yield whole[:200]
        begun.set()
        while not go_on.is_set():
            await anyio.sleep(0.01)
        yield whole[200:]

    headers = {**bench.auth("ada"), "Content-Type": request.headers["Content-Type"]}
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(bench.client.request, "POST", PATH, headers=headers, content=slowly())
        assert begun.wait(30)
        assert bench.post("bob").status_code == 202
        assert not slow.done()
        go_on.set()
        assert slow.result().status_code == 202


def test_one_token_leaves_places_to_others(monkeypatch):
    monkeypatch.setattr(pressure, "PLACE_WAIT_SECONDS", 0.0)
    settings, state = Settings(max_uploads=8), Pressure()

    async def main():
        async with state.place(settings, "a"), state.place(settings, "a"):
            with pytest.raises(Problem):
                async with state.place(settings, "a"):
                    pass
            async with state.place(settings, "b"):
                assert len(state.uploads) == 3

    anyio.run(main)
    assert state.uploads == []


def test_a_client_that_stalls_loses_its_place(make_bench, monkeypatch):
    from service import upload

    monkeypatch.setattr(upload, "PAUSE_SECONDS", 0.1)
    bench = make_bench(max_uploads=1)

    async def stalls():
        yield b"--x\r\n"
        await anyio.sleep(60)

    headers = {**bench.auth("ada"), "Content-Type": "multipart/form-data; boundary=x"}
    begun = time.monotonic()
    answer = bench.client.request("POST", PATH, headers=headers, content=stalls())
    assert (answer.status_code, answer.json()["code"]) == (408, "upload_too_slow")
    assert time.monotonic() - begun < 50
    monkeypatch.undo()
    assert bench.post("ada").status_code == 202


def test_a_client_that_sends_next_to_nothing_loses_its_place(make_bench, monkeypatch):
    from service import upload

    monkeypatch.setattr(upload, "SLOW_SECONDS", 1.0)
    bench = make_bench(max_uploads=1)
    sent = 0

    async def drips():
        nonlocal sent
        yield b"--x\r\n"
        while True:
            await anyio.sleep(0.01)
            sent += 1
            yield b"a"

    headers = {**bench.auth("ada"), "Content-Type": "multipart/form-data; boundary=x"}
    answer = bench.client.request("POST", PATH, headers=headers, content=drips())
    assert (answer.status_code, answer.json()["code"]) == (408, "upload_too_slow")
    assert 0 < sent < 1000


def test_openapi_documents_the_503_as_a_problem(bench):
    document = bench.get("/openapi.json").json()
    post = document["paths"]["/v1/units/{unit}/submissions"]["post"]
    assert list(post["responses"]["503"]["content"]) == ["application/problem+json"]
    assert {"idempotency-key", "submission-receipt"} <= {parameter["name"].lower() for parameter in post["parameters"]}
    assert "problem+json" not in str(document["paths"]["/readyz"]["get"]["responses"]["503"])
