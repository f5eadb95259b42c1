"""Clients that are too slow, too many or too odd, on real sockets."""

import json
import socket
import time

import httpx
import pytest

from service.connection import HEAD_BYTES, PatientConnection
from tests.service.live import PATIENCE_SECONDS, live

REQUEST = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def hasty(monkeypatch):
    """Deadlines short enough for a test."""
    monkeypatch.setattr(PatientConnection, "head_seconds", 0.4)
    monkeypatch.setattr(PatientConnection, "stalled_seconds", 0.4)


@pytest.fixture
def served(bench):
    with live(bench.app, bench.settings) as running:
        yield running


def is_let_go(connection):
    """Whether the server ends the connection without an answer."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def drip(connection, data, seconds=0.05):
    """Send byte by byte until the server has had enough; raises TimeoutError if it bears it all."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        try:
            connection.sendall(data)
        except (ConnectionResetError, BrokenPipeError):
            return
        time.sleep(seconds)
    raise TimeoutError


def test_a_body_does_not_wait_until_its_head_is_acknowledged(served):
    with served.connect() as connection:
        connection.sendall(REQUEST)
        assert connection.recv(1)
        (ours,) = served.server.server_state.connections
        options = ours.transport.get_extra_info("socket")
        assert options.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("begun", [b"", b"GET /livez HTTP/1.1\r\nX-A: "])
def test_a_head_that_does_not_come_is_not_waited_for(hasty, served, begun):
    with served.connect() as connection:
        connection.sendall(begun)
        assert is_let_go(connection)


def test_a_head_that_drips_is_not_waited_for(hasty, served):
    with served.connect() as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nX-A: ")
        drip(connection, b"a")


def test_a_head_that_drips_after_an_answer_is_not_waited_for_either(hasty, served):
    with served.connect() as connection:
        connection.sendall(REQUEST)
        assert b"200 OK" in connection.recv(100)
        drip(connection, b"G")


def test_a_body_that_goes_on_after_the_answer_is_not_read_for_ever(hasty, served):
    with served.connect() as connection:
        connection.sendall(b"POST /v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
        drip(connection, b"a" * 100)


def test_an_honest_client_may_keep_its_connection(served, monkeypatch):
    monkeypatch.setattr(PatientConnection, "head_seconds", 2.0)
    with served.connect() as connection:
        for _ in range(6):  # together for longer than one head may take
            connection.sendall(REQUEST)
            answer = b""
            while not answer.endswith(b'{"status":"alive"}'):
                more = connection.recv(10_000)
                assert more, "it was let go"
                answer += more
            time.sleep(0.5)


def test_a_client_that_does_not_read_its_answers_is_let_go(hasty, served):
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", served.port))
        connection.settimeout(PATIENCE_SECONDS)
        many = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 500
        try:
            connection.sendall(many)
        except (ConnectionResetError, BrokenPipeError):
            return
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while served.server.server_state.connections:
            assert time.monotonic() < give_up_at
            time.sleep(0.05)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",  # TLS
        b"GET /livez HTTP/1.1\r\nHost: x\r\nX-A: a\x00b\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET /livez HTTP/1.1\r\n\r\n",
        b"GET /li vez HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * (HEAD_BYTES + 1),
    ],
)
def test_what_is_no_request_is_answered_with_a_problem(served, sent):
    with served.connect() as connection:
        connection.sendall(sent)
        answer = b"".join(iter(lambda: connection.recv(10_000), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and b"application/problem+json" in head
    assert json.loads(body)["code"] == "bad_request"
    assert httpx.get(f"{served.url}/livez").status_code == 200


@pytest.mark.parametrize("name", ["Authorization", "X-Request-ID", "Last-Event-ID", "Prefer", "Accept", "Cookie"])
def test_odd_header_values_are_never_our_failure(bench, name):
    submission = bench.submitted("ada")
    for value in (b"", b"\xff\xfe", b"a" * 20_000, b"Bearer", b"Bearer \xed\xa0\x80", b"wait=1e999, wait=-1", b",;="):
        for method, path in (
            ("GET", f"/v1/submissions/{submission}"),
            ("GET", "/"),
            ("POST", "/v1/units/L0.0/submissions"),
        ):
            answer = bench.client.request(method, path, headers={**bench.auth("ada"), name: value})
            assert answer.status_code < 500


def test_a_body_that_drips_is_a_408(make_bench):
    bench = make_bench(max_upload_seconds=0.4)
    with live(bench.app, bench.settings) as running, running.connect() as connection:
        token = bench.auth("admin")["Authorization"].encode()
        head = (
            b"PUT /v1/courses/a HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Type: application/json\r\n" % token
        )
        connection.sendall(head + b"Content-Length: 100\r\n\r\n{")
        answer = b"".join(iter(lambda: connection.recv(10_000), b""))
    assert answer.startswith(b"HTTP/1.1 408 ") and b"upload_too_slow" in answer


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_that_is_no_submission_is_small(served, bench, declared):
    body = b'{"title": "' + b"a" * 300_000 + b'"}'
    content = body if declared else iter([body[:100_000], body[100_000:]])
    headers = {**bench.auth("admin"), "Content-Type": "application/json"}
    answer = httpx.put(f"{served.url}/v1/courses/a", content=content, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_over_the_limit_of_connections_a_client_is_told_to_come_back(make_bench):
    bench = make_bench(max_connections=3)
    with live(bench.app, bench.settings) as running:
        idle = [running.connect() for _ in range(3)]
        assert httpx.get(f"{running.url}/livez").status_code == 503
        for connection in idle:
            connection.close()
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while httpx.get(f"{running.url}/livez").status_code != 200:
            assert time.monotonic() < give_up_at
