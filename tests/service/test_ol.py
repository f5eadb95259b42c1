"""The student's command hands in to a real service on a real socket, and tells what that says."""

import json
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from grader.ol import account, service, stops
from grader.ol.cli import run
from grader.units import load_course
from service.worker import FakeGrading
from tests.grader.small_course import REFERENCE, SUITE, write_course
from tests.grader.test_deps import BASE_UNIT
from tests.service import samples
from tests.service.live import live


@pytest.fixture
def repository(tmp_path, monkeypatch):
    root = tmp_path / "student"
    tree = write_course(root)
    (root / "python/tinyllm/demo").mkdir(parents=True)
    (root / "python/tinyllm/demo/double.py").write_text(REFERENCE)
    (root / "python/tests/z1-double").mkdir(parents=True)
    (root / "python/tests/z1-double/test_double.py").write_text(SUITE)
    monkeypatch.chdir(root)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("OL_SERVER", "OL_TOKEN", "OL_COURSE", "OL_COURSE_ID"):
        monkeypatch.delenv(name, raising=False)
    return tree


@pytest.fixture
def served(make_bench, repository):
    bench = make_bench(load_course(repository))
    with live(bench.app, bench.settings) as running:
        yield bench, running.url


def log_in(bench, url, monkeypatch, who="ada"):
    monkeypatch.setenv("OL_SERVER", url)
    monkeypatch.setenv("OL_TOKEN", bench.token("student", who))


def worker(bench, verdict="pass"):
    """Grades what comes, in a thread, until told to stop."""

    def grade(unit, submission, about, progress):
        return samples.report(about, unit.id, digest=submission.digest, verdict=verdict)

    ended = threading.Event()

    def work():
        while not ended.wait(0.05):
            bench.graded(bench.worker(FakeGrading(grade)))

    thread = threading.Thread(target=work)
    thread.start()

    def stop():
        ended.set()
        thread.join()

    return stop


@pytest.mark.parametrize(("verdict", "status"), [("pass", 0), ("fail", 1)])
def test_what_is_handed_in_is_followed_and_its_report_printed(served, monkeypatch, capsys, verdict, status):
    bench, url = served
    log_in(bench, url, monkeypatch)
    stop = worker(bench, verdict)
    try:
        assert run(["submit", "Z1"]) == status
        shown = capsys.readouterr()
        assert shown.out.startswith(f"Z1: {verdict.upper()}")
        assert "Handed in: " in shown.err
        assert run(["submit", "Z1", "--json"]) == status
        assert json.loads(capsys.readouterr().out)["submission"]["student"] == "ada"
    finally:
        stop()


def test_what_the_service_has_passed_is_passed_here_too(served, monkeypatch, capsys):
    bench, url = served
    log_in(bench, url, monkeypatch)
    assert run(["status", "--json"]) == 0
    [before] = json.loads(capsys.readouterr().out)["units"]
    assert (before["code"], before.get("verdict")) == ("started", None)
    stop = worker(bench)
    try:
        assert run(["submit", "Z1"]) == 0
    finally:
        stop()
    capsys.readouterr()
    assert run(["status", "--json"]) == 0
    [after] = json.loads(capsys.readouterr().out)["units"]
    assert (after["code"], after["verdict"], after["final_score"]) == ("passed", "pass", 1.0)
    assert run(["status"]) == 0
    assert "pass 100 %" in capsys.readouterr().out


def test_a_token_that_is_no_students_has_a_standing_all_the_same(served, monkeypatch, capsys):
    bench, url = served
    monkeypatch.setenv("OL_SERVER", url)
    monkeypatch.setenv("OL_TOKEN", bench.token("teacher"))
    assert run(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["units"][0]["attempts_left"] is None


STANDING = {
    "id": "1",
    "unit": "Z1",
    "status": "queued",
    "progress": None,
    "links": {"self": "/v1/submissions/1", "report": "/v1/submissions/1/report"},
}
ENDED = {**STANDING, "status": "done"}


@contextmanager
def answering(answers: dict[str, object], **headers: str) -> Iterator[str]:
    """The address of a service that answers each path, or all others, by what stands here."""

    class Odd(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = answers.get(self.path, answers.get("", {}))
            body = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(302 if "Location" in headers else 200)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


ODD = {
    "no JSON": "<h1>Welcome</h1>",
    "no object": [],
    "no links": {**STANDING, "links": {}},
    "another host": {**ENDED, "links": {"self": "/", "report": "//elsewhere.example"}},
    "no verdict": ENDED,
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("words", [["submit", "Z1"], ["status"]])
def test_an_answer_that_is_not_understood_is_said_in_a_line(repository, monkeypatch, capsys, odd, words):
    with answering({"": ODD[odd]}) as url:
        monkeypatch.setenv("OL_SERVER", url)
        monkeypatch.setenv("OL_TOKEN", "ag_x")
        assert run(words) == 5
    told = capsys.readouterr().err.strip().splitlines()
    assert told and "Traceback" not in str(told)
    assert len([line for line in told if not line.startswith("Handed in")]) == 1


def test_an_address_that_leads_elsewhere_is_to_be_given_anew(repository, monkeypatch, capsys):
    with answering({}, Location="https://elsewhere.example/") as url:
        monkeypatch.setattr("sys.stdin", open_text("ag_x"))
        assert run(["login", url]) == 2
    assert "https://elsewhere.example/" in capsys.readouterr().err


@pytest.mark.parametrize("asked", ["Wed, 21 Oct 2026 07:28:00 GMT", "nan", "-1", "", "1e999", "9" * 400])
def test_however_long_the_service_asks_to_wait_the_pause_has_bounds(asked):
    assert service.LEAST_PAUSE_SECONDS <= service.pause_seconds(asked) <= service.MOST_PAUSE_SECONDS


def test_a_token_is_tried_then_kept_for_its_owner_alone(served, monkeypatch, capsys):
    bench, url = served
    monkeypatch.setattr("sys.stdin", open_text(bench.token("student", "ada")))
    assert run(["login", url]) == 0
    kept = account.folder() / "account.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert account.load() == account.Account(url, bench.token("student", "ada"))
    assert run(["status"]) == 0
    assert run(["login", "--forget"]) == 0
    assert account.load() is None


def test_a_token_goes_to_the_service_it_was_kept_for_and_to_no_other(repository, monkeypatch):
    account.save(account.Account("https://grader.example", "ag_kept"))
    monkeypatch.setenv("OL_SERVER", "https://other.example")
    assert account.load() is None
    monkeypatch.setenv("OL_SERVER", "https://grader.example/")
    assert account.load() == account.Account("https://grader.example/", "ag_kept")


def open_text(text):
    import io

    return io.StringIO(text + "\n")


def test_a_token_that_does_not_count_is_not_kept(served, monkeypatch, capsys):
    _, url = served
    monkeypatch.setattr("sys.stdin", open_text("ag_wrong"))
    assert run(["login", url]) == 2
    assert "ol login" in capsys.readouterr().err
    assert not (account.folder() / "account.json").exists()


def test_a_refusal_has_the_services_own_words(served, monkeypatch, capsys):
    bench, url = served
    log_in(bench, url, monkeypatch)
    monkeypatch.setenv("OL_COURSE_ID", "spring")
    assert run(["submit", "Z1"]) == 6
    assert "spring" in capsys.readouterr().err
    assert bench.queue.submitted == []


def test_a_unit_to_be_built_first_blocks_at_the_service_as_it_does_at_home(make_bench, repository, monkeypatch, capsys):
    write_course(repository.parent, dict(BASE_UNIT))
    bench = make_bench(load_course(repository))
    with live(bench.app, bench.settings) as running:
        log_in(bench, running.url, monkeypatch)
        for command in ("mutate", "submit"):
            assert run([command, "Z1", "--json"]) == 3
            error = json.loads(capsys.readouterr().out)["error"]
            assert "Z0" in error and "--ref-deps" in error
        assert bench.queue.submitted == []
        stop = worker(bench)
        try:
            assert run(["submit", "Z1", "--ref-deps"]) == 0
        finally:
            stop()


def test_a_service_that_does_not_answer_is_no_fault_of_the_student(repository, monkeypatch, capsys):
    monkeypatch.setenv("OL_SERVER", "http://127.0.0.1:9")
    monkeypatch.setenv("OL_TOKEN", "ag_x")
    assert run(["submit", "Z1"]) == 5
    assert "Nothing was lost" in capsys.readouterr().err


def test_without_tests_nothing_is_handed_in_and_no_attempt_used(served, monkeypatch):
    bench, url = served
    log_in(bench, url, monkeypatch)
    Path("python/tests/z1-double/test_double.py").unlink()
    assert run(["submit", "Z1"]) == 6
    assert bench.queue.submitted == []


def test_who_is_logged_in_has_the_grade_of_the_service(served, monkeypatch, capsys):
    bench, url = served
    log_in(bench, url, monkeypatch)
    stop = worker(bench)
    try:
        assert run(["mutate", "Z1"]) == 0
        assert "Handed in" in capsys.readouterr().err
    finally:
        stop()


@pytest.mark.parametrize(
    "server", ["http://grader.example", "ftp://grader.example", "grader.example", "https://", "https://[x"]
)
def test_no_token_is_asked_for_where_others_could_read_it(repository, capsys, server):
    assert run(["login", server]) == 2
    assert "https" in capsys.readouterr().err


def test_it_works_where_the_service_is_served_under_a_path(make_bench, repository, monkeypatch):
    bench = make_bench(load_course(repository), root_path="/grader")
    with live(bench.app, bench.settings) as running:
        log_in(bench, f"{running.url}/grader", monkeypatch)
        stop = worker(bench)
        try:
            assert run(["submit", "Z1"]) == 0
        finally:
            stop()


@pytest.mark.parametrize("link", ["https://elsewhere.example/x", "//elsewhere.example/x", "x"])
def test_a_token_follows_no_link_to_another_host(link):
    with service.opened(account.Account("https://grader.example/sub", "ag_x")) as client:
        assert service.linked(client, "/sub/v1/units") == "https://grader.example/sub/v1/units"
        with pytest.raises(stops.Ours):
            service.linked(client, link)
