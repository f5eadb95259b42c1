"""`autograder serve` as a person runs it: web, worker and grading are the product's own, on a small course tree."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.grader import small_course
from tests.service.ports import free_port

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120.0
TESTS = b"""
from tinyllm.demo.double import Double

def test_doubles():
    for number in (0, 1, -2.5):
        assert Double()(number) == 2 * number
"""


class Served:
    """A running `autograder serve` and a client with its administrator's token."""

    def __init__(self, folder: Path, *words: str, course: Path | None = None, sandbox: str = "process") -> None:
        self.port = free_port()
        self.data = folder / "data"
        course = course or small_course.write_course(folder)
        self.command = [
            *(sys.executable, "-m", "service.cli", "serve", "--sandbox", sandbox),
            *("--port", str(self.port), "--data", str(self.data), "--course", str(course), *words),
        ]
        self.log = folder / "log"
        self.process = self.start()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENCE_SECONDS)

    def start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(self.command, cwd=ROOT, stdout=log, stderr=log, env=dict(os.environ))

    def said(self, pattern: str) -> re.Match[str]:
        """Wait until the output holds `pattern`."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while not (found := re.search(pattern, self.log.read_text())):
            assert time.monotonic() < give_up_at, self.log.read_text()
            time.sleep(0.05)
        return found

    def children(self) -> dict[str, int]:
        """Process ids of the web, the worker and the sender process."""
        found = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
                words = (stat.parent / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if parent == self.process.pid and len(words) > 3:  # one that has just ended has no words
                found[words[3].decode()] = int(stat.parent.name)
        return found

    def post(self, query: str = "") -> httpx.Response:
        reference = small_course.REFERENCE.encode()
        files = [("double", ("double.py", reference)), ("tests", ("test_double.py", TESTS))]
        return self.client.post(f"/v1/units/Z1/submissions{query}", files=files)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.stop()
        self.client.close()


@pytest.fixture
def serve(tmp_path):
    made = []

    def serve(*words):
        made.append(Served(tmp_path, *words))
        return made[-1]

    yield serve
    for served in made:
        served.close()


def test_a_first_start_prints_a_token_grades_survives_its_processes_and_stops_cleanly(serve):
    served = serve()
    secret = served.said(r"token, shown this once: (\S+)")[1]
    served.said(r"Serving at http://")
    served.client.headers["Authorization"] = f"Bearer {secret}"
    answer = served.post("?wait=100")
    assert answer.status_code == 200, answer.text
    report = answer.json()
    assert report["course_tests"]["passed"] == report["course_tests"]["total"] > 0, report
    assert report["mutation"]["killed"] == report["mutation"]["total"] > 0

    before = served.children()
    for process in before.values():
        os.kill(process, signal.SIGKILL)
    served.said(r"the web process ended with status -9")
    served.said(r"the worker process ended with status -9")
    served.said(r"the sender process ended with status -9")
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not answers(served):
        assert time.monotonic() < give_up_at, served.log.read_text()
    again = served.post("?wait=100").json()
    assert (again["verdict"], again["score"]) == (report["verdict"], report["score"])

    assert set(before) == {"web", "worker", "sender"}
    while set(after := served.children()) != set(before):
        assert time.monotonic() < give_up_at, after
    assert served.stop() == 0
    assert not any(Path(f"/proc/{process}").exists() for process in after.values())
    assert secret.encode() not in b"".join(file.read_bytes() for file in served.data.rglob("*") if file.is_file())


def answers(served: Served) -> bool:
    try:
        return served.client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.full
def test_a_second_service_on_the_same_directory_or_port_is_refused_in_words(serve):
    served = serve("--dev-token", "letmein")
    served.said(r"Serving at http://")
    second = subprocess.run(served.command, cwd=ROOT, capture_output=True, timeout=PATIENCE_SECONDS)
    assert second.returncode == 2
    assert b"held by another process" in second.stderr
    other = [word if word != str(served.data) else f"{served.data}2" for word in served.command]
    other = other[: other.index("--dev-token")]
    third = subprocess.run(other, cwd=ROOT, capture_output=True, timeout=PATIENCE_SECONDS)
    assert third.returncode == 2
    assert b"Address already in use" in third.stderr
    assert b"token" not in third.stdout  # it would open nothing
