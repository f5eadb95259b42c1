"""A folder for data arrives; a service is started on it and posted to; seconds from POST to report leave."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx

from bench.work import ROOT

TOKEN = "token-of-the-benchmark-only"
READY_SECONDS = 300.0
POST_SECONDS = 300.0
SETTLED_SECONDS = 3.0
PAUSE_SECONDS = 4.0


class Service:
    """`url` is where it answers. What is posted differs each time, so that none is answered from the cache."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=POST_SECONDS)
        self._count = 0

    def post_warm(self, sample: Path) -> float:
        """The same when the service has had time to make its next container ready."""
        time.sleep(PAUSE_SECONDS)
        return self.post(sample)

    def post(self, sample: Path) -> float:
        """Seconds from the POST to the report, which says pass."""
        self._count += 1
        mha = (sample / "mha.py").read_bytes() + f"\n# {self._count}\n".encode()
        files = [("mha", ("mha.py", mha))]
        files += [("tests", (path.name, path.read_bytes())) for path in sorted((sample / "tests").glob("*.py"))]
        began = time.perf_counter()
        answer = self._client.post("/v1/units/L5.3/submissions?wait=120", files=files)
        took = time.perf_counter() - began
        if answer.status_code != 200 or answer.json()["verdict"] != "pass":
            raise RuntimeError(f"{answer.status_code}: {answer.text[:2000]}")
        return took

    def post_at_once(self, sample: Path, count: int) -> float:
        """Seconds until all are graded."""
        began = time.perf_counter()
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(self.post, [sample] * count))
        return time.perf_counter() - began


@contextmanager
def serving(data: Path, course: Path) -> Iterator[Service]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "service.cli", "serve", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--data", str(data), "--course", str(course), "--dev-token", TOKEN]
    with open(data / "serve.log", "wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env={**os.environ, **SETTINGS})
        try:
            wait_until_ready(url, data / "renderings", process)
            yield Service(url)
        finally:
            process.terminate()
            process.wait()


SETTINGS = {"AUTOGRADER_CACHE": "off"}


def wait_until_ready(url: str, kept: Path, process: subprocess.Popen[bytes]) -> None:
    """Until it answers, and has made what it makes ahead: nothing new for some seconds."""
    until, seen, since = time.monotonic() + READY_SECONDS, -1, time.monotonic()
    while time.monotonic() < until and process.poll() is None:
        time.sleep(0.2)
        count = sum(1 for _ in kept.glob("*")) if kept.is_dir() else 0
        if count != seen:
            seen, since = count, time.monotonic()
        if seen > 0 and time.monotonic() - since > SETTLED_SECONDS and answers(url):
            return
    raise RuntimeError("the service did not become ready")


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.HTTPError:
        return False
