"""What a second worker gains: `python -m tests.reliability.scaling`

The course's own unit, graded by one worker held to one core, then by two workers on two cores, in turns, on one
PostgreSQL. A worker's sandbox is a process of its own here, so that it is held to the same core. Prints each round, and
as the last line one JSON object.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tests.reliability.stage import ROOT, Stage, kill, until
from tests.samples.loading import load
from tests.service.postgres import Postgres

SAMPLE = "correct_plain"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=8, help="in each round; even")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("two cores are needed")
    postgres = Postgres(durable=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            stage = Stage(Path(folder), postgres, course=ROOT / "course")
            try:
                rounds = _rounds(stage, cores, options.submissions, options.rounds)
            finally:
                stage.close()
    finally:
        postgres.close()
    seconds = {count: statistics.median(found) for count, found in rounds.items()}
    print(
        json.dumps(
            {
                "submissions": options.submissions,
                "one_worker_s": round(seconds[1], 1),
                "two_workers_s": round(seconds[2], 1),
                "gain": round(seconds[1] / seconds[2], 2),
                "submissions_per_minute_and_core": round(60 * options.submissions / seconds[1], 1),
            }
        )
    )


def _rounds(stage: Stage, cores: list[int], submissions: int, count: int) -> dict[int, list[float]]:
    stage.admit()
    stage.web()
    found: dict[int, list[float]] = {1: [], 2: []}
    number = 0
    for _ in range(count):
        for workers in found:
            started = [_worker_on(stage, core) for core in cores[:workers]]
            until(lambda: len(stage.workers()) == workers, "the workers")  # noqa: B023
            for _ in range(2 * workers):  # renderings and the oracle are made once
                number += 1
                _post(stage, number)
            _wait(stage)
            began = time.monotonic()
            for _ in range(submissions):
                number += 1
                _post(stage, number)
            _wait(stage)
            seconds = time.monotonic() - began
            found[workers].append(seconds)
            print(f"{workers} worker(s): {submissions} submissions in {seconds:.1f} s", flush=True)
            for worker in started:
                worker.terminate()
                worker.wait(60)
            until(lambda: not stage.workers(), "the workers to leave")
    return found


def _worker_on(stage: Stage, core: int) -> subprocess.Popen[bytes]:
    worker = stage.worker()
    try:
        os.sched_setaffinity(worker.pid, {core})  # before it has threads or children
    except OSError:
        kill(worker)
        raise
    return worker


def _post(stage: Stage, number: int) -> None:
    sample = load(SAMPLE)
    files = [("mha", ("mha.py", sample.mha + f"\n# {number}\n".encode()))]
    files += [("tests", (upload.name, upload.data)) for upload in sample.tests]
    stage.client.post("/v1/units/L5.3/submissions", files=files).raise_for_status()


def _wait(stage: Stage) -> None:
    until(lambda: all(each.status == "done" for each in stage.ended().values()), "the end of all runs", 900)


if __name__ == "__main__":
    main()
