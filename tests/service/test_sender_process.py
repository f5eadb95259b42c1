"""The sender as a real process, killed at any moment while it tells a class's grades."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from service import tables
from tests.service.receivers import Receiver

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120.0


def until(reached: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not reached():
        assert time.monotonic() < give_up_at, f"waited in vain for {what}"
        time.sleep(0.05)


@pytest.fixture
def start(tmp_path):
    """Starts a sender on a bench's database."""
    running = []

    def start(bench):
        environment = {
            **os.environ,
            "AUTOGRADER_DATA": str(bench.settings.data),
            "AUTOGRADER_DATABASE_URL": bench.settings.database_url,
            "AUTOGRADER_CALLBACK_HOSTS": bench.settings.callback_hosts,
        }
        # As `serve` starts it, but for its own file: then what a killed one was at is taken up at once.
        if bench.settings.url == f"sqlite:///{bench.settings.database_file}":
            del environment["AUTOGRADER_DATABASE_URL"]
        command = [sys.executable, "-m", "service.cli", "sender", "--until-stdin-closes"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT, env=environment)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stdin.close()


def states(bench):
    return {row.submission: row.state for row in bench.rows(tables.deliveries)}


def test_after_kills_everything_was_told_and_what_was_told_twice_is_known_by_its_id(make_bench, start):
    rng = random.Random(6)
    with Receiver(seconds=0.05) as receiver:  # so that none of those that are killed comes to the end
        bench = make_bench(callback_hosts="127.0.0.1")
        bench.clock.now = time.time() - 60
        expected = {
            bench.submitted("lms", student=f"s{number}", callback=f"{receiver.url}/hook") for number in range(40)
        }
        bench.graded()
        for _ in range(3):
            sender = start(bench)
            count = len(receiver.received)
            until(lambda before=count: len(receiver.received) > before, "a message")
            time.sleep(rng.uniform(0, 0.2))
            os.kill(sender.pid, signal.SIGKILL)
            sender.wait()
        sender = start(bench)
        until(lambda: set(states(bench).values()) == {"delivered"}, "the last message")
        sender.stdin.close()
        assert sender.wait(PATIENCE_SECONDS) == 0
        told: dict[str, set[bytes]] = {}
        for _, headers, body in receiver.received:
            told.setdefault(headers["webhook-id"], set()).add(body)
    assert len(told) == len(expected)
    assert all(len(bodies) == 1 for bodies in told.values())
    assert {json.loads(body)["data"]["submission"]["id"] for bodies in told.values() for body in bodies} == expected
    assert len(receiver.received) <= len(expected) + 3  # one for each kill at most


def test_a_sender_that_is_told_to_stop_leaves_its_targets_to_others(make_bench, start):
    with Receiver() as receiver:
        bench = make_bench(callback_hosts="127.0.0.1")
        bench.clock.now = time.time() - 60
        bench.submitted("lms", student="ada", callback=receiver.url)
        bench.graded()
        sender = start(bench)
        until(lambda: set(states(bench).values()) == {"delivered"}, "the message")
        sender.send_signal(signal.SIGTERM)
        assert sender.wait(PATIENCE_SECONDS) == 0
    assert [row.held_until for row in bench.rows(tables.targets)] == [0.0]
