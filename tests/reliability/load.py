"""A deadline night on this machine: `python -m tests.reliability.load --database sqlite|postgresql`

Students post as fast as web takes them, each with files of their own, while somebody keeps asking where submissions
stand. Web and workers are real processes; grading takes a given time and no CPU, because what is measured is the
service around it. Prints what came of it, and as the last line one JSON object.
"""

import argparse
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from service import accounts, database, dbos_queue
from service.accounts import Role
from service.settings import Settings
from service.tables import results, runs, submissions
from tests.service import samples
from tests.service.ports import free_port
from tests.service.postgres import Postgres

ROOT = Path(__file__).parents[2]

AT_ONCE_REQUESTS = 300
IDLE_SECONDS = 20.0
ASK_SECONDS = 0.05
WARM_UP_REQUESTS = 20  # of an Asker, not counted: its first ones open the connection and load code
NICENESS = 15  # of who posts, once all that is measured has started: students' machines take nothing from the service
START_SLACK_SECONDS = 2.0  # two workers that poll apart may take neighbours in either order


@dataclass(frozen=True)
class Told:
    """What a submission was told at a time (UTC seconds): so many more seconds until its report."""

    id: str
    at: float
    seconds: float


@dataclass
class Posted:
    """What a POST was answered with."""

    status: int
    seconds: float
    id: str = ""
    told: Told | None = None


@dataclass
class Night:
    """The processes, and what is seen of them."""

    url: str
    data: Path
    workers: int
    slots: int
    grading_seconds: float
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    memory: dict[int, list[int]] = field(default_factory=dict)
    port: int = field(default_factory=free_port)

    def start(self) -> None:
        environment = {
            **os.environ,
            "AUTOGRADER_DATA": str(self.data),
            "AUTOGRADER_DATABASE_URL": self.url,
            "AUTOGRADER_SLOTS": str(self.slots),
            "AUTOGRADER_LOG_LEVEL": "WARNING",
        }
        arguments = [["web", str(self.port)], *[["worker", str(self.grading_seconds)]] * self.workers]
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.service.fake_process", *words],
                stdin=subprocess.PIPE,
                cwd=ROOT,
                env=environment,
            )
            for words in arguments
        ]

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(60)

    def client(self, secret: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {secret}"}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=120)

    def note_memory(self) -> None:
        """Resident bytes of each process, once more."""
        for process in self.processes:
            pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
            self.memory.setdefault(process.pid, []).append(pages * os.sysconf("SC_PAGE_SIZE"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--submissions", type=int, default=2000)
    parser.add_argument("--students", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.0, help="that one grading takes")
    parser.add_argument("--posters", type=int, default=16)
    options = parser.parse_args()
    postgres = Postgres(durable=True) if options.database == "postgresql" else None
    try:
        with tempfile.TemporaryDirectory() as folder:
            url = postgres.fresh() if postgres is not None else f"sqlite:///{folder}/autograder.sqlite"
            found = night(url, Path(folder), options)
    finally:
        if postgres is not None:
            postgres.close()
    for name, value in found.items():
        print(f"{name:32} {value}")
    print(json.dumps({"database": options.database, **found}))


def night(url: str, data: Path, options: argparse.Namespace) -> dict[str, object]:
    settings = Settings(data=data, course=ROOT / "course", database_url=url)
    database.migrate(settings)
    dbos_queue.migrate(settings.url)
    engine = database.open_engine(settings.url)
    secrets = _tokens(engine, options.students)
    running = Night(url, data, options.workers, options.slots, options.seconds)
    running.start()
    try:
        _wait_until_ready(running, secrets[0], options.workers)
        at_once, idle = _idle(running, secrets[0])
        ended = threading.Event()
        known: list[tuple[str, str]] = []
        asker = Asker(running, known)
        watcher = threading.Thread(target=_watch_memory, args=(running, ended))
        watcher.start()
        os.nice(NICENESS)
        began = time.monotonic()
        posted = _post_all(running, secrets, options, known)
        posting_seconds = time.monotonic() - began
        _wait_until_graded(engine, sum(one.status == 202 for one in posted))
        grading_seconds = time.monotonic() - began
        ended.set()
        watcher.join()
        asked, later = asker.end()
    finally:
        running.stop()
    found = {
        "submissions": len(posted),
        "answers": dict(Counter(str(one.status) for one in posted)),
        "posting_seconds": round(posting_seconds, 1),
        "posts_per_second": round(len(posted) / posting_seconds, 1),
        "graded_seconds": round(grading_seconds, 1),
        "post_p99_s": round(_quantile([one.seconds for one in posted], 0.99), 3),
        "status_at_once_p99_s": round(_quantile(at_once, 0.99), 4),
        "status_idle_p50_s": round(_quantile(idle, 0.5), 4),
        "status_idle_p99_s": round(_quantile(idle, 0.99), 4),
        "status_loaded_p50_s": round(_quantile(asked, 0.5), 4),
        "status_loaded_p99_s": round(_quantile(asked, 0.99), 4),
        "status_ratio": round(_quantile(asked, 0.99) / _quantile(idle, 0.99), 2),
        "status_ratio_at_once": round(_quantile(asked, 0.99) / _quantile(at_once, 0.99), 2),
        "memory_growth": _memory_growth(running),
        **_in_the_end(engine, posted, later),
    }
    engine.dispose()
    return found


def _tokens(engine: sa.Engine, students: int) -> list[str]:
    secrets = [accounts.new_secret() for _ in range(students)]
    with database.writing(engine) as connection:
        for number, secret in enumerate(secrets):
            accounts.create(
                connection, secret=secret, role=Role.STUDENT, now=time.time(), student=f"student-{number:03}"
            )
    return secrets


def _wait_until_ready(running: Night, secret: str, workers: int) -> None:
    with running.client(secret) as client:
        for _ in range(600):
            try:
                answer = client.get("/readyz")
                if answer.status_code == 200 and answer.json()["workers"] == workers:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        else:
            raise RuntimeError("the service did not become ready")
        # Something to go by for estimates.
        for number in range(2 * running.workers * running.slots):
            client.post("/v1/units/L0.0/submissions?wait=30", **_form(f"warm {number}")).raise_for_status()


def _idle(running: Night, secret: str) -> tuple[list[float], list[float]]:
    """How many seconds answers about a graded submission take while nothing is posted or graded: to requests each of
    which follows at once on the answer before, and to those of an Asker, which asks as it does under load.

    The pause between them makes the difference: what slept for 50 ms begins with cold caches, loaded or not.
    """
    with running.client(secret) as client:
        path = client.post("/v1/units/L0.0/submissions?wait=30", **_form("idle")).headers["location"]
        at_once = [_timed(client, path) for _ in range(AT_ONCE_REQUESTS)]
    asker = Asker(running, [(secret, path)])
    time.sleep(IDLE_SECONDS)
    asked, _ = asker.end()
    return at_once, asked


def _timed(client: httpx.Client, path: str) -> float:
    began = time.monotonic()
    client.get(path).raise_for_status()
    return time.monotonic() - began


def _form(note: str) -> dict[str, object]:
    tests = samples.TESTS + f"# {note}\n".encode()
    return {"files": [("twice", ("twice.py", samples.SOURCE)), ("tests", ("test_twice.py", tests))]}


def _post_all(
    running: Night, secrets: Sequence[str], options: argparse.Namespace, known: list[tuple[str, str]]
) -> list[Posted]:
    """Everything, in an order in which some students come once and some all night."""
    draw = random.Random(7)
    weights = [1 / (rank + 1) for rank in range(len(secrets))]
    order = list(range(len(secrets))) + draw.choices(
        range(len(secrets)), weights, k=max(0, options.submissions - len(secrets))
    )
    draw.shuffle(order)
    clients = threading.local()

    def post(job: tuple[int, int]) -> Posted:
        number, student = job
        if not hasattr(clients, "client"):
            clients.client = running.client("")
        began = time.monotonic()
        answer = clients.client.post(
            "/v1/units/L0.0/submissions",
            headers={"Authorization": f"Bearer {secrets[student]}"},
            **_form(f"number {number}"),
        )
        seconds = time.monotonic() - began
        if answer.status_code != 202:
            return Posted(answer.status_code, seconds)
        body = answer.json()
        known.append((secrets[student], body["links"]["self"]))
        return Posted(202, seconds, body["id"], _told(body))

    with ThreadPoolExecutor(options.posters) as pool:
        return list(pool.map(post, enumerate(order)))


def _told(body: dict[str, Any]) -> Told | None:
    if body["status"] != "queued" or body["estimate_seconds"] is None:
        return None
    return Told(body["id"], time.time(), body["estimate_seconds"])


class Asker:
    """Asks where submissions stand, from a process of its own: beside the threads that post it would measure them."""

    def __init__(self, running: Night, known: list[tuple[str, str]]) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_ask, args=(running.port, theirs), daemon=True)
        self._process.start()
        self._known = known
        self._told = 0
        self._ended = threading.Event()
        self._feeder = threading.Thread(target=self._feed)
        self._feeder.start()

    def _feed(self) -> None:
        while not self._ended.wait(0.1):
            self._ours.send(self._known[self._told :])
            self._told = len(self._known)

    def end(self) -> tuple[list[float], list[Told]]:
        """The seconds that each answer took, and what they said of the time left."""
        self._ended.set()
        self._feeder.join()
        self._ours.send(None)
        found: tuple[list[float], list[Told]] = self._ours.recv()
        self._process.join()
        return found


def _ask(port: int, orders: Connection) -> None:
    asked: list[float] = []
    later: list[Told] = []
    known: list[tuple[str, str]] = []
    draw = random.Random(8)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
        while True:
            while orders.poll(0 if known else None):
                if (more := orders.recv()) is None:
                    orders.send((asked[WARM_UP_REQUESTS:], later))
                    return
                known += more
            if not known:
                continue
            secret, path = draw.choice(known)
            client.headers["Authorization"] = f"Bearer {secret}"
            began = time.monotonic()
            answer = client.get(path)
            asked.append(time.monotonic() - began)
            if told := _told(answer.raise_for_status().json()):
                later.append(told)
            time.sleep(ASK_SECONDS)


def _watch_memory(running: Night, ended: threading.Event) -> None:
    while not ended.wait(1.0):
        running.note_memory()


def _wait_until_graded(engine: sa.Engine, count: int) -> None:
    waiting = sa.select(sa.func.count()).select_from(runs).where(runs.c.status.in_(["queued", "running"]))
    while True:
        with database.reading(engine) as connection:
            left = connection.execute(waiting).scalar_one()
        if not left:
            return
        print(f"\r{left} of {count} wait or run ", end="", file=sys.stderr, flush=True)
        time.sleep(1)


def _in_the_end(engine: sa.Engine, posted: Sequence[Posted], later: Sequence[Told]) -> dict[str, object]:
    with database.reading(engine) as connection:
        rows = connection.execute(
            sa.select(runs, submissions.c.student).join(submissions, submissions.c.id == runs.c.submission)
        ).all()
        counted = dict(connection.execute(sa.select(results.c.run, sa.func.count()).group_by(results.c.run)).all())
    of = {row.submission: row for row in rows}
    accepted = [one for one in posted if one.status == 202]
    lost = [one.id for one in accepted if one.id not in of or of[one.id].status != "done"]
    once = sum(counted.get(of[one.id].id, 0) == 1 for one in accepted if one.id in of)
    at_once = _errors([one.told for one in accepted if one.told is not None], of)
    on_asking = _errors(later, of)
    waits = [row.started_at - row.queued_at for row in rows if row.priority == 1000]
    return {
        "accepted": len(accepted),
        "lost": len(lost),
        "with_one_result": once,
        "started_twice": sum(row.attempts != 1 for row in rows),
        "first_ones_wait_median_s": round(statistics.median(waits), 2),
        "overtaken": _overtaken(rows),
        "estimates_within_30_percent": _share_within(at_once, 0.3),
        "later_estimates": len(on_asking),
        "later_estimates_within_30_percent": _share_within(on_asking, 0.3),
    }


def _errors(told: Sequence[Told], of: Mapping[str, Any]) -> list[float]:
    """By what share of the real wait (a second at least) each estimate was wrong."""
    real = [(one.seconds, max(1.0, of[one.id].finished_at - one.at)) for one in told]
    return [abs(seconds - wait) / wait for seconds, wait in real]


def _share_within(errors: Sequence[float], share: float) -> float | None:
    return round(sum(error <= share for error in errors) / len(errors), 3) if errors else None


def _overtaken(rows: Sequence[sa.Row[tuple[object, ...]]]) -> int:
    """Runs of students who had another one unfinished that began while a student's only one had waited for longer
    than START_SLACK_SECONDS."""
    first = sorted((row.started_at, row.queued_at) for row in rows if row.priority == 1000)
    count = 0
    for row in rows:
        if row.priority > 1000:
            waited = any(
                queued + START_SLACK_SECONDS < row.started_at < started - START_SLACK_SECONDS
                for started, queued in first
            )
            count += waited
    return count


def _memory_growth(running: Night) -> list[float]:
    """Of each process, web first: resident memory in the last tenth of the night against the second tenth."""
    grown = []
    for seen in running.memory.values():
        tenth = max(1, len(seen) // 10)
        grown.append(round(statistics.median(seen[-tenth:]) / statistics.median(seen[tenth : 2 * tenth] or seen), 2))
    return grown


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


if __name__ == "__main__":
    main()
