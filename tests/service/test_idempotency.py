"""The same Idempotency-Key never makes two submissions."""

import io
import os
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service import database, idempotency, tables
from service.queue import FakeQueue
from tests.service import samples

pytestmark = pytest.mark.both_databases

PATH = "/v1/units/L0.0/submissions"
ROOT = Path(__file__).parent.parent.parent


def post(bench, key, who="ada", query="", tests=samples.TESTS, **fields):
    files = [("twice", ("twice.py", samples.SOURCE)), ("tests", ("test_a.py", tests))]
    headers = {**bench.auth(who), "Idempotency-Key": key}
    return bench.client.request("POST", PATH + query, headers=headers, files=files, data=fields)


def test_the_same_again_is_answered_with_the_first_submission_and_its_status_of_now(bench):
    first = post(bench, "k1")
    assert (first.status_code, first.headers.get("Idempotency-Replayed")) == (202, None)
    bench.graded()
    again = post(bench, "k1")
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (202, "true")
    assert again.headers["Location"] == first.headers["Location"]
    assert (again.json()["id"], again.json()["status"]) == (first.json()["id"], "done")
    assert len(bench.rows(tables.submissions)) == len(bench.rows(tables.runs)) == 1


def test_a_replay_can_wait_for_the_report(bench):
    first = post(bench, "k1")
    bench.graded()
    again = post(bench, "k1", query="?wait=30")
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (200, "true")
    assert again.json()["submission"]["id"] == first.json()["id"]


def test_the_same_files_packed_otherwise_are_the_same(bench):
    post(bench, "k1")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("test_a.py", samples.TESTS)
    files = [("twice", ("other_name.py", samples.SOURCE)), ("tests", ("a.zip", packed.getvalue()))]
    headers = {**bench.auth("ada"), "Idempotency-Key": "k1"}
    again = bench.client.request("POST", PATH, headers=headers, files=files)
    assert again.headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize("other", [{"tests": b"x = 1\n"}, {"student": "bob"}])
def test_another_body_with_the_key_is_a_422(bench, other):
    post(bench, "k1", who="teacher")
    answer = post(bench, "k1", who="teacher", **other)
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_mismatch")
    assert len(bench.rows(tables.submissions)) == 1


def test_a_key_belongs_to_its_token(bench):
    first, second = post(bench, "k1", who="ada"), post(bench, "k1", who="bob")
    assert first.json()["id"] != second.json()["id"]
    assert "Idempotency-Replayed" not in second.headers


@pytest.mark.parametrize("key", ["k" * 256, "a\tb", "é".encode().decode("latin-1")])
def test_an_odd_key_is_refused(bench, key):
    headers = {**bench.auth("ada"), "Idempotency-Key": key.encode("latin-1")}
    answer = bench.client.request("POST", PATH, headers=headers, **samples.form())
    assert (answer.status_code, answer.json()["code"]) == (400, "idempotency_key_invalid")


def test_a_key_of_255_characters_works(bench):
    key = "".join(chr(33 + i % 94) for i in range(255))
    assert post(bench, key).json()["id"] == post(bench, key).json()["id"]


def test_a_refused_request_frees_its_key(bench):
    assert post(bench, "k1", course="spring").json()["code"] == "course_unknown"
    assert bench.rows(tables.idempotency) == []
    assert post(bench, "k1").status_code == 202


def test_a_key_is_kept_for_a_day(bench):
    first = post(bench, "k1")
    bench.clock.now += 24 * 3600 - 1
    assert post(bench, "k1").json()["id"] == first.json()["id"]
    bench.clock.now += 2
    again = post(bench, "k1")
    assert again.json()["id"] != first.json()["id"]
    assert len(bench.rows(tables.idempotency)) == 1


def test_a_second_request_while_the_first_is_stored_is_a_409_and_then_a_replay(bench):
    entered, leave = threading.Event(), threading.Event()

    class Slow(FakeQueue):
        def submit(self, connection, run_id, priority):
            super().submit(connection, run_id, priority)
            entered.set()
            assert leave.wait(30)

    object.__setattr__(bench.service, "queue", Slow())
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(post, bench, "k1")
        assert entered.wait(30)
        second = post(bench, "k1")
        other = post(bench, "k1", tests=b"x = 1\n")
        leave.set()
        first = first.result()
    assert (second.status_code, second.json()["code"]) == (409, "idempotency_in_flight")
    assert int(second.headers["Retry-After"]) > 0
    assert other.json()["code"] == "idempotency_mismatch"
    assert first.status_code == 202
    assert post(bench, "k1").json()["id"] == first.json()["id"]


def test_of_many_requests_at_once_with_one_key_one_is_stored(bench):
    bench.auth("ada")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: post(bench, "k1"), range(16)))
    assert {answer.status_code for answer in answers} <= {202, 409}
    assert len({answer.json()["id"] for answer in answers if answer.status_code == 202}) == 1
    assert len(bench.rows(tables.submissions)) == len(bench.queue.submitted) == 1


DIES = """
import os, sys
from pathlib import Path
from grader.submission import Upload
from service import database
from service.accept import Posting, accept
from service.accounts import authenticate, digest_of
from service.dependencies import Sender, Service
from service.settings import Settings
from service.upload import Form
from tests.service import samples

class Dies:
    def submit(self, connection, run_id, priority):
        os._exit(9)

data, url, secret, now = sys.argv[1:]
engine = database.open_engine(url)
clock = lambda: float(now)
service = Service(Settings(data=Path(data), database_url=url), engine, Dies(), samples.course(), clock)
with database.reading(engine) as connection:
    account = authenticate(connection, secret, clock())
form = Form({"twice": (Upload("twice.py", samples.SOURCE),), "tests": (Upload("test_a.py", samples.TESTS),)}, {})
accept(service, Sender(digest_of(secret), account), samples.unit(), form, Posting(key="k1"))
"""


def test_a_process_that_dies_between_claim_and_submission_blocks_the_key_for_five_minutes_only(bench):
    words = [str(bench.settings.data), bench.settings.url, bench.token("student", "ada"), str(bench.clock())]
    died = subprocess.run([sys.executable, "-c", DIES, *words], cwd=ROOT, env=dict(os.environ), capture_output=True)
    assert died.returncode == 9, died.stderr.decode()
    [row] = bench.rows(tables.idempotency)
    assert (row.submission, bench.rows(tables.submissions)) == (None, [])
    assert post(bench, "k1").json()["code"] == "idempotency_in_flight"
    bench.clock.now += idempotency.LAPSE_SECONDS + 1
    assert post(bench, "k1").status_code == 202
    assert len(bench.rows(tables.submissions)) == 1


def test_a_claim_that_lapsed_stores_nothing_when_it_comes_back(bench):
    now = bench.clock()
    late = idempotency.claim(bench.engine, "token", "k1", "f", now)
    again = idempotency.claim(bench.engine, "token", "k1", "f", now + idempotency.LAPSE_SECONDS + 1)
    assert again != late
    with pytest.raises(idempotency.InFlight), database.writing(bench.engine) as connection:
        idempotency.bind(connection, late, "1")
    with database.writing(bench.engine) as connection:
        idempotency.release(connection, late)
    assert len(bench.rows(tables.idempotency)) == 1
