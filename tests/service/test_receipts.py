"""What was sent while there was no room, or no database, counts as received then."""

import dataclasses
import json
import os
import random
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from service import accounts, database, secrets, tables
from service.accounts import Role
from service.queue import FakeQueue
from service.receipts import BadReceipt, Receipt, Signer
from service.settings import Settings, to_environment
from tests.service import samples
from tests.service.ports import free_port
from tests.service.postgres import Postgres

PATH = "/v1/units/L0.0/submissions"
ROOT = Path(__file__).parent.parent.parent
DAY = 24 * 3600.0


def post(bench, who="ada", tests=samples.TESTS, headers=(), unit="L0.0", **fields):
    files = [("twice", ("twice.py", samples.SOURCE)), ("tests", ("test_a.py", tests))]
    path = f"/v1/units/{unit}/submissions"
    return bench.client.request("POST", path, headers={**bench.auth(who), **dict(headers)}, files=files, data=fields)


def is_away(bench, away=True):
    """Make the database unreachable, or reachable again."""
    gone = "sqlite:////nonexistent/autograder.sqlite"
    if bench.settings.url.startswith("postgresql"):
        gone = "postgresql+psycopg://nobody@/nothing?host=/nonexistent"
    object.__setattr__(bench.service, "engine", database.open_engine(gone) if away else bench.engine)


def receipt_of(bench, who="ada", **fields):
    bench.auth(who)
    is_away(bench)
    answer = post(bench, who, **fields)
    is_away(bench, False)
    assert answer.status_code == 503, answer.text
    return answer.json()["receipt"]


@pytest.mark.both_databases
def test_a_post_while_the_database_is_away_gets_a_receipt_and_the_command_to_repeat_it(bench):
    bench.auth("ada")
    is_away(bench)
    answer = post(bench, student="ada")
    assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    receipt = answer.json()["receipt"]
    assert answer.headers["Submission-Receipt"] == receipt
    words = shlex.split(answer.json()["curl"].replace("$TOKEN", "TOKEN"))
    assert {f"receipt={receipt}", "student=ada", "tests=@tests.zip", "twice=@twice.py"} <= set(words)
    assert words[-1].startswith("http://grader.example/v1/units/L0.0/submissions")
    is_away(bench, False)
    assert bench.rows(tables.submissions) == []


@pytest.mark.both_databases
@pytest.mark.parametrize("as_header", [True, False])
def test_sent_again_with_its_receipt_it_was_received_when_it_was_first_sent(bench, as_header):
    first = bench.clock()
    receipt = receipt_of(bench)
    bench.clock.now += 3600
    answer = post(bench, headers={"Submission-Receipt": receipt}) if as_header else post(bench, receipt=receipt)
    assert answer.status_code == 202
    [row] = bench.rows(tables.submissions)
    assert (row.received_at, row.stored_at) == (first, first + 3600)
    bench.graded()
    received = bench.get(f"/v1/submissions/{row.id}/report").json()["submission"]["received_at"]
    assert received.startswith("2027-01-15T08:00:00")


def test_a_receipt_counts_for_a_day_and_not_a_second_longer(bench):
    receipt = receipt_of(bench)
    bench.clock.now += DAY
    assert post(bench, receipt=receipt).status_code == 202
    bench.clock.now += 1
    answer = post(bench, receipt=receipt)
    assert (answer.status_code, answer.json()["code"]) == (422, "receipt_refused")
    assert "24 hours" in answer.json()["message"]
    assert "2027-01-16 08:00:00" in answer.json()["message"]
    assert len(bench.rows(tables.submissions)) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"who": "bob"}, "somebody else"),
        ({"who": "teacher"}, "somebody else"),
        ({"tests": b"x = 1\n"}, "other files"),
        ({"student": "ada"}, "other files, another unit, course or student"),
        ({"course": "spring"}, "other files, another unit, course or student"),
    ],
)
def test_a_receipt_is_refused_with_anything_else_than_what_it_was_given_for(bench, change, said):
    receipt = receipt_of(bench)
    answer = post(bench, **{"receipt": receipt, **change})
    assert (answer.status_code, answer.json()["code"]) == (422, "receipt_refused")
    assert said in answer.json()["message"]
    assert "Leave it out" in answer.json()["message"]
    assert bench.rows(tables.submissions) == []


def test_a_receipt_is_refused_for_another_unit(make_bench):
    bench = make_bench(samples.course(samples.unit(), samples.unit("L0.1")))
    receipt = receipt_of(bench)
    assert post(bench, unit="L0.1", receipt=receipt).json()["code"] == "receipt_refused"


def test_a_student_with_a_new_token_keeps_the_receipt(bench):
    receipt = receipt_of(bench)
    with database.writing(bench.engine) as connection:
        connection.execute(tables.tokens.update().values(revoked_at=bench.clock()))
    bench.tokens.clear()
    assert post(bench, receipt=receipt).status_code == 202


def test_a_receipt_used_twice_does_no_harm(bench):
    receipt, first = receipt_of(bench), bench.clock()
    bench.clock.now += 60
    assert post(bench, receipt=receipt).status_code == post(bench, receipt=receipt).status_code == 202
    assert [row.received_at for row in bench.rows(tables.submissions)] == [first, first]


def test_refused_again_it_keeps_its_first_time(bench):
    receipt, first = receipt_of(bench), bench.clock()
    bench.clock.now += 600
    second = receipt_of(bench, receipt=receipt)
    bench.clock.now += 600
    assert post(bench, receipt=second).status_code == 202
    assert bench.rows(tables.submissions)[0].received_at == first


def test_an_unknown_token_gets_no_further_with_a_receipt_than_without(bench):
    bench.tokens["student/eve/None"] = "ag_made_up"
    receipt = receipt_of(bench, "eve")
    assert post(bench, "eve", receipt=receipt).status_code == 401
    assert post(bench, "ada", receipt=receipt).json()["code"] == "receipt_refused"


def test_what_is_wrong_with_the_files_is_said_also_without_a_database(bench):
    bench.auth("ada")
    is_away(bench)
    answer = post(bench, tests=b"\xff")
    assert (answer.status_code, "receipt" in answer.json()) == (422, False)


@pytest.mark.parametrize("change", ["cut", "payload", "signature", "empty", "nonsense", "long"])
def test_a_text_that_was_not_signed_here_is_no_receipt(change):
    signer = Signer(b"k" * 32)
    text = signer.text(Receipt("f", "t", 1.0))
    payload, _, signature = text.partition(".")
    other = Signer(b"x" * 32).text(Receipt("f", "t", 2.0))
    changed = {
        "cut": text[:-1],
        "payload": f"{other.partition('.')[0]}.{signature}",
        "signature": f"{payload}.{other.partition('.')[2]}",
        "empty": "",
        "nonsense": "é.\udc80",
        "long": text + "A" * 2000,
    }
    assert signer.read(text) == Receipt("f", "t", 1.0)
    with pytest.raises(BadReceipt):
        signer.read(changed[change])


@pytest.mark.parametrize("text", ["x", "a.b", "." * 400, "\u00e9"])
def test_nonsense_for_a_receipt_is_a_problem_of_the_clients(bench, text):
    assert post(bench, receipt=text).json()["code"] == "receipt_refused"


@pytest.mark.both_databases
def test_every_process_on_a_database_signs_with_the_same_key(bench):
    def key(_):
        with database.writing(bench.engine) as connection:
            return secrets.key(connection, "receipts", bench.clock())

    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(key, range(16)))
    assert len(keys) == 1
    with database.writing(bench.engine) as connection:
        assert secrets.key(connection, "another", bench.clock()) not in keys


def test_a_locked_database_is_called_busy_and_a_full_one_full(bench):
    bench.auth("ada")

    def wait_briefly(connection, record):
        connection.execute("PRAGMA busy_timeout=50")

    bench.engine.dispose()
    sa.event.listen(bench.engine, "connect", wait_briefly)
    with database.writing(bench.engine):
        locked = post(bench)

    def stay_small(connection, record):
        [pages] = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")

    bench.engine.dispose()
    sa.event.listen(bench.engine, "connect", stay_small)
    full = post(bench, tests=b'x = "%s"' % random.Random(0).randbytes(100_000).hex().encode())
    assert (locked.status_code, locked.json()["code"]) == (503, "database_busy")
    assert (full.status_code, full.json()["code"]) == (503, "database_full")
    assert {"receipt", "curl"} <= set(locked.json()) & set(full.json())
    assert bench.rows(tables.submissions) == []


def test_the_key_is_freed_when_the_database_comes_back(bench):
    headers = {"Idempotency-Key": "k1"}
    bench.auth("ada")
    is_away(bench)
    receipt = post(bench, headers=headers).json()["receipt"]
    is_away(bench, False)
    assert post(bench, headers=headers, receipt=receipt).status_code == 202


def test_every_other_request_is_a_503_too_while_the_database_is_away(bench):
    bench.auth("ada")
    is_away(bench)
    for path in ("/v1/submissions/1", "/v1/submissions/1/report"):
        answer = bench.get(path, "ada")
        assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
        assert int(answer.headers["Retry-After"]) > 0
        assert "receipt" not in answer.json()


def test_a_database_that_goes_while_the_report_is_waited_for_takes_nothing_back(bench):
    bench.auth("ada")

    class LastWord(FakeQueue):
        def submit(self, connection, run_id, priority):
            super().submit(connection, run_id, priority)
            is_away(bench)  # the transaction that runs has its connection

    object.__setattr__(bench.service, "queue", LastWord())
    answer = post(bench)
    is_away(bench, False)
    assert (answer.status_code, answer.json()["status"]) == (202, "queued")
    [row] = bench.rows(tables.submissions)
    assert answer.headers["Location"] == answer.json()["links"]["self"] == f"/v1/submissions/{row.id}"


def test_a_server_that_stops_and_starts_again_loses_no_time_of_receipt(tmp_path, make_bench):
    server = Postgres(durable=True)
    try:
        bench = make_bench()
        settings = dataclasses.replace(bench.settings, database_url=server.fresh())
        bench.settings, bench.engine = settings, database.open_engine(settings.url)
        object.__setattr__(bench.service, "engine", bench.engine)
        assert post(bench).status_code == 202
        first = bench.clock()
        server.stop_at_once()
        answer = post(bench)
        server.start()
        assert answer.status_code == 503, answer.text
        bench.clock.now += 60
        assert post(bench, receipt=json.loads(answer.text)["receipt"]).status_code == 202
        assert [row.received_at for row in bench.rows(tables.submissions)] == [first, first]
        bench.engine.dispose()
    finally:
        server.close()


def answered(send):
    """What `send` returns, once there is somebody to answer."""
    give_up_at = time.monotonic() + 60
    while True:
        try:
            return send()
        except httpx.TransportError:
            assert time.monotonic() < give_up_at
            time.sleep(0.05)


def test_a_receipt_of_one_web_process_counts_at_another_of_the_same_database(tmp_path):
    server = Postgres(durable=True)
    settings = Settings(data=tmp_path, course=tmp_path, database_url=server.fresh())
    engine = database.open_engine(settings.url)
    with database.writing(engine) as connection:
        accounts.create(connection, secret="secret", role=Role.STUDENT, student="ada", now=time.time())
    environment = {**os.environ, **to_environment(settings)}
    ports = [free_port(), free_port()]
    webs = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.service.fake_process", "web", str(port)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for port in ports
    ]

    def send(port, **fields):
        headers = {"Authorization": "Bearer secret"}
        return httpx.post(f"http://127.0.0.1:{port}{PATH}", headers=headers, timeout=60, **samples.form(**fields))

    try:
        for port in ports:
            answered(lambda port=port: httpx.get(f"http://127.0.0.1:{port}/livez"))
        server.stop_at_once()
        first = send(ports[0])
        server.start()
        assert first.status_code == 503, first.text
        second = send(ports[1], receipt=first.json()["receipt"])
        assert second.status_code == 202, second.text
        with database.reading(engine) as connection:
            [row] = connection.execute(sa.select(tables.submissions))
        assert row.received_at < row.stored_at
        assert datetime.fromisoformat(first.json()["received_at"]).timestamp() == pytest.approx(
            row.received_at, abs=1e-3
        )
    finally:
        for web in webs:
            web.stdin.close()
            web.wait(30)
        engine.dispose()
        server.close()
