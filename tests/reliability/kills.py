"""kill -9 at random moments, under load: `python -m tests.reliability.kills --database sqlite|postgresql --kills 200`

Runs `autograder serve` (a supervisor with web and worker) and more `autograder worker`, lets somebody post all the
time, and at random moments kills web, a worker, the supervisor or the database server with all its processes. What a
machine's own supervisor would start again is started again: `serve`, the workers beside it, the database. At the end
every submission that was answered with 202 must be done, with one result. Prints what came of it, and as the last line
one JSON object; exit status 1 if anything was lost, done twice or left behind. Ctrl-C ends the killing early.

Attempts are set high: here it is never the submission that kills a worker.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import docker
import docker.errors
import httpx
import sqlalchemy as sa

from sandbox.docker_engine import BOOT_LABEL, LABEL, OWNER_LABEL
from sandbox.owner import boot_id, owner_lives
from service import database
from service.database import AWAY
from service.processes import EMBEDDED_NAME
from service.tables import runs
from tests.reliability.stage import PATIENCE_SECONDS, Stage, children, until
from tests.service.postgres import Postgres

MOST_WAITING = 12  # posting pauses while so many wait
LOOK_SECONDS = 0.05
SETTLE_SECONDS = 60.0
SETTLED_SHARE = 0.5  # of the kills that wait until the one before is got over; the others come on top of it


@dataclass
class Posted:
    accepted: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass
class Takeover:
    """A run that was under way when its worker was killed."""

    run: str
    attempts: int
    killed_at: float
    disturbed: bool = False  # something else was killed before it was begun again
    freed_seconds: float | None = None  # until it was no longer the dead worker's
    seconds: float | None = None  # until it was begun again, for which a slot must be free


class Show:
    """The processes that are kept running, and killed."""

    def __init__(self, stage: Stage, workers: int, rng: random.Random) -> None:
        self.stage = stage
        self.rng = rng
        self.supervisor = stage.start("serve", "--port", str(stage.port))
        self.beside = [stage.worker() for _ in range(workers - 1)]
        self.killed: Counter[str] = Counter()
        self.takeovers: list[Takeover] = []
        self.lock = threading.Lock()
        self.over = threading.Event()

    def targets(self) -> dict[str, list[int]]:
        below = children(self.supervisor.pid) if self.supervisor.poll() is None else {}
        beside = [process.pid for process in self.beside if process.poll() is None]
        found = {
            "web": [below["web"]] if "web" in below else [],
            "worker": [*([below["worker"]] if "worker" in below else []), *beside],
            "supervisor": [self.supervisor.pid] if self.supervisor.poll() is None else [],
        }
        if self.stage.postgres is not None:
            found["database"] = [0]
        return {kind: pids for kind, pids in found.items() if pids}

    def kill_one(self) -> None:
        targets = self.targets()
        if not targets:
            return
        kind = self.rng.choice(sorted(targets))
        pid = self.rng.choice(targets[kind])
        # A killed supervisor takes its worker along.
        below = children(pid).get("worker") if kind == "supervisor" else pid if kind == "worker" else None
        under_way = self.under_way(below) if below else []
        now = time.monotonic()
        if kind == "database":
            assert self.stage.postgres is not None
            self.stage.postgres.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with self.lock:
            self.killed[kind] += 1
            for each in self.takeovers:
                each.disturbed = each.disturbed or (each.seconds is None and kind != "web")
            self.takeovers += [Takeover(run, attempts, now) for run, attempts in under_way]
        if kind == "database":
            time.sleep(self.rng.uniform(0, 2))
            assert self.stage.postgres is not None
            self.stage.postgres.start()

    def settle(self, accepted: int, posted: Posted) -> None:
        """Wait until something new is accepted and a worker is at something."""

        def settled() -> bool:
            with contextlib.suppress(*AWAY):
                return len(posted.accepted) > accepted and self.under_way(None) != []
            return False

        with contextlib.suppress(AssertionError):
            until(settled, "work", SETTLE_SECONDS)

    def under_way(self, pid: int | None) -> list[tuple[str, int]]:
        """The runs that the worker of that process is at; None: any."""
        mine = sa.or_(runs.c.worker.like(f"%-{pid}-%"), self._embedded(pid)) if pid is not None else sa.true()
        query = sa.select(runs.c.id, runs.c.attempts).where(runs.c.status == "running", mine)
        with contextlib.suppress(*AWAY), database.reading(self.stage.engine) as connection:
            return [(row.id, row.attempts) for row in connection.execute(query)]
        return []

    def _embedded(self, pid: int) -> sa.ColumnElement[bool]:
        is_it = children(self.supervisor.pid).get("worker") == pid
        return runs.c.worker == EMBEDDED_NAME if is_it else sa.false()

    def keep_running(self) -> None:
        """Start again what ended, as an init system would."""
        while not self.over.wait(0.2):
            if self.supervisor.poll() is not None:
                self.supervisor = self.stage.start("serve", "--port", str(self.stage.port))
            for index, process in enumerate(self.beside):
                if process.poll() is not None:
                    self.beside[index] = self.stage.worker()

    def watch_takeovers(self) -> None:
        while not self.over.wait(LOOK_SECONDS):
            with self.lock:
                open_ones = {each.run: each for each in self.takeovers if each.seconds is None}
            if not open_ones:
                continue
            query = sa.select(runs.c.id, runs.c.status, runs.c.attempts).where(runs.c.id.in_(list(open_ones)))
            with contextlib.suppress(*AWAY), database.reading(self.stage.engine) as connection:
                now = time.monotonic()
                for row in connection.execute(query):
                    each = open_ones[row.id]
                    if each.freed_seconds is None and (row.status != "running" or row.attempts > each.attempts):
                        each.freed_seconds = now - each.killed_at
                    if row.status not in ("queued", "running") or row.attempts > each.attempts:
                        each.seconds = now - each.killed_at

    def stop(self) -> None:
        for process in (self.supervisor, *self.beside):
            process.terminate()
        for process in (self.supervisor, *self.beside):
            process.wait(60)


def post_all_the_time(stage: Stage, posted: Posted) -> None:
    while not posted.stop.is_set():
        try:
            answer = stage.post()
        except httpx.TransportError as error:
            posted.refused[type(error).__name__] += 1
            posted.stop.wait(0.2)
            continue
        if answer.status_code == 202:
            posted.accepted.append(answer.json()["id"])
            place = answer.json()["position"] or 0
            posted.stop.wait(0.05 if place < MOST_WAITING else 1.0)
        else:
            posted.refused[str(answer.status_code)] += 1
            posted.stop.wait(0.3)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], required=True)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--ttl", type=float, default=15.0, help="of workers, in seconds")
    parser.add_argument(
        "--pause", type=float, default=3.0, help="between two kills at most, in seconds; half on average"
    )
    parser.add_argument("--sandbox", choices=["process", "docker"], default="process")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args(words)
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="ag-kills-") as folder:
        server = Postgres(durable=True) if options.database == "postgresql" else None
        stage = Stage(Path(folder), server, worker_ttl_seconds=options.ttl, max_attempts=50, sandbox=options.sandbox)
        try:
            summary = show(stage, options)
        finally:
            stage.close()
            if server is not None:
                server.close()
    print(json.dumps(summary))
    good = summary["accepted"] == summary["done"] and not summary["left_behind"] and not summary["unfinished"]
    return 0 if good else 1


def show(stage: Stage, options: argparse.Namespace) -> dict[str, object]:
    stage.admit()
    began_at = time.monotonic()
    acts, posted = Show(stage, options.workers, random.Random(options.seed)), Posted()
    stage.until_it_answers()
    threads = [
        threading.Thread(target=acts.keep_running, daemon=True),
        threading.Thread(target=acts.watch_takeovers, daemon=True),
        threading.Thread(target=post_all_the_time, args=(stage, posted), daemon=True),
    ]
    for thread in threads:
        thread.start()
    for number in range(options.kills):
        try:
            if acts.rng.random() < SETTLED_SHARE:
                acts.settle(len(posted.accepted), posted)
            time.sleep(acts.rng.uniform(0, options.pause))
        except KeyboardInterrupt:
            break
        acts.kill_one()
        if number % 20 == 19:
            print(
                f"{number + 1} kills, {len(posted.accepted)} accepted, {time.monotonic() - began_at:.0f} s", flush=True
            )
    posted.stop.set()
    threads[-1].join(PATIENCE_SECONDS)
    killed_for = time.monotonic() - began_at

    def finished() -> bool:
        return all(each.status not in ("queued", "running") for each in stage.ended().values())

    with contextlib.suppress(AssertionError):
        until(finished, "the end of all runs", 600)
    acts.over.set()
    for thread in threads[:2]:
        thread.join(60)
    acts.stop()
    return {"database": options.database, "seed": options.seed} | summary_of(stage, acts, posted, killed_for)


def summary_of(stage: Stage, acts: Show, posted: Posted, seconds: float) -> dict[str, object]:
    found = stage.ended()
    accepted = {each: found.get(each) for each in posted.accepted}
    freed = sorted(each.freed_seconds for each in acts.takeovers if each.freed_seconds and not each.disturbed)
    quiet = sorted(each.seconds for each in acts.takeovers if each.seconds is not None and not each.disturbed)
    all_of_them = sorted(each.seconds for each in acts.takeovers if each.seconds is not None)
    return {
        "kills": dict(acts.killed),
        "seconds": round(seconds),
        "accepted": len(accepted),
        "done": sum(each is not None and each.status == "done" and each.results == 1 for each in accepted.values()),
        "stored_without_answer": len(set(found) - set(accepted)),
        "unfinished": sum(each.status in ("queued", "running") for each in found.values()),
        "statuses": Counter(each.status for each in found.values()),
        "marks": Counter(str(each.verdict) for each in found.values()),
        "attempts": Counter(each.attempts for each in found.values()),
        "refused": posted.refused,
        "interrupted_runs": len(acts.takeovers),
        "freed_seconds": {
            "undisturbed": len(freed),
            "median": round(statistics.median(freed), 1) if freed else None,
            "most": round(freed[-1], 1) if freed else None,
        },
        "takeover_seconds": {
            "undisturbed": len(quiet),
            "median": round(statistics.median(quiet), 1) if quiet else None,
            "most": round(quiet[-1], 1) if quiet else None,
            "most_of_all": round(all_of_them[-1], 1) if all_of_them else None,
        },
        "left_behind": left_behind(stage.environment["AUTOGRADER_SANDBOX"]),
    }


def left_behind(sandbox: str) -> list[str]:
    """Processes or containers of workers that are gone."""
    give_up_at = time.monotonic() + 30
    look = _containers if sandbox == "docker" else _supervisors
    while (found := look()) and time.monotonic() < give_up_at:
        time.sleep(1)
    return found


def _supervisors() -> list[str]:
    """Sandboxes of the process kind whose worker is gone: they belong to init then."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = (stat.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            if "sandbox/inside/__main__.py process" in words and parent == 1:
                found.append(words)
    return found


def _containers() -> list[str]:
    """Containers of this boot whose owner is gone."""
    with contextlib.suppress(docker.errors.DockerException), contextlib.closing(docker.from_env()) as client:
        found = client.api.containers(all=True, filters={"label": [LABEL, f"{BOOT_LABEL}={boot_id()}"]})
        return [each["Id"] for each in found if not owner_lives(each["Labels"].get(OWNER_LABEL, ""))]
    return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
