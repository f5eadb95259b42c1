"""Processes are killed, frozen and cut off while they work: what was accepted is graded, and has one result.

The same at random moments, two hundred times: tests/reliability/kills.py.
"""

import signal
import subprocess
import time

import pytest

from service.processes import FENCED
from tests.reliability.conftest import TTL_SECONDS
from tests.reliability.stage import Stage, children, kill, until

on_postgresql = pytest.mark.parametrize("stage", ["postgresql"], indirect=True)
SLOW_SECONDS = 0.5  # of a test in each of its runs


def two_workers(stage: Stage) -> tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]:
    """Two workers that are ready, and a web process."""
    pair = stage.worker(), stage.worker()
    stage.web()
    until(lambda: len(stage.workers()) == 2, "two workers")
    return pair


def split(stage: Stage, pair: tuple[subprocess.Popen[bytes], ...], name: str) -> list[subprocess.Popen[bytes]]:
    """The worker of that name, and the others."""
    return sorted(pair, key=lambda process: f"-{process.pid}-" not in name)


def test_what_a_killed_worker_was_at_is_taken_over_and_done_once(stage: Stage) -> None:
    """All three bring the empty database up to date first, at the same moment."""
    pair = two_workers(stage)
    stage.admit()
    submission = stage.submitted(seconds=SLOW_SECONDS)
    until(lambda: stage.worker_of(submission) != "", "the first attempt")
    dead, _ = split(stage, pair, stage.worker_of(submission))
    first = stage.worker_of(submission)
    kill(dead)
    others = [stage.submitted() for _ in range(3)]
    until(lambda: stage.worker_of(submission) not in ("", first), "the takeover", 6 * TTL_SECONDS)
    stage.assert_each_done_once([submission, *others])
    assert stage.ended()[submission].attempts == 2
    assert len(stage.workers()) == 1


@on_postgresql
def test_a_worker_frozen_past_its_time_comes_back_too_late_and_ends(stage: Stage) -> None:
    stage.admit()
    pair = two_workers(stage)
    submission = stage.submitted(seconds=SLOW_SECONDS)
    until(lambda: stage.worker_of(submission) != "", "the first attempt")
    first = stage.worker_of(submission)
    frozen, _ = split(stage, pair, first)
    frozen.send_signal(signal.SIGSTOP)
    until(lambda: stage.worker_of(submission) not in ("", first), "the takeover")
    frozen.send_signal(signal.SIGCONT)
    stage.assert_each_done_once([submission])
    assert frozen.wait(60) == FENCED
    assert stage.ended()[submission].attempts == 2
    assert stage.worker_of(submission) not in ("", first)


@on_postgresql
def test_after_everything_died_at_once_and_the_database_recovered_all_is_done(stage: Stage) -> None:
    stage.admit()
    worker, web = stage.worker(), stage.web()
    accepted = [stage.submitted(seconds=SLOW_SECONDS), *(stage.submitted() for _ in range(3))]
    until(lambda: stage.worker_of(accepted[0]) != "", "the first attempt")
    assert stage.postgres is not None
    stage.postgres.stop_at_once()
    for process in (worker, web):
        kill(process)
    stage.postgres.start()
    stage.worker()
    stage.web()
    stage.assert_each_done_once(accepted)


@pytest.mark.full
@on_postgresql
def test_a_database_that_is_away_for_longer_than_a_workers_time_loses_nothing(stage: Stage) -> None:
    stage.admit()
    pair = two_workers(stage)
    accepted = [stage.submitted(seconds=SLOW_SECONDS) for _ in range(4)]
    until(lambda: all(stage.worker_of(each) for each in accepted[:2]), "both workers at work")
    assert stage.postgres is not None
    stage.postgres.stop_at_once()
    time.sleep(1.5 * TTL_SECONDS)
    answer = stage.post()
    assert answer.status_code == 503, answer.text
    stage.postgres.start()
    accepted += [stage.submitted()]
    stage.assert_each_done_once(accepted)
    assert all(process.poll() in (None, FENCED) for process in pair)
    assert any(process.poll() is None for process in pair)


@pytest.mark.full
def test_a_web_process_killed_after_its_202s_loses_nothing(stage: Stage) -> None:
    stage.admit()
    web = stage.web()
    accepted = [stage.submitted() for _ in range(3)]
    kill(web)
    stage.worker()
    stage.assert_each_done_once(accepted)


@pytest.mark.full
def test_a_killed_supervisor_takes_its_processes_along_and_the_next_one_goes_on(stage: Stage) -> None:
    stage.admit()
    supervisor = stage.serve()
    accepted = [stage.submitted(seconds=SLOW_SECONDS), *(stage.submitted() for _ in range(2))]
    until(lambda: stage.worker_of(accepted[0]) != "", "the first attempt")
    below = children(supervisor.pid)
    assert set(below) == {"web", "worker", "sender"}
    kill(supervisor)
    stage.serve()
    stage.assert_each_done_once(accepted)


@pytest.mark.full
def test_a_worker_that_is_told_to_stop_leaves_its_run_to_another_at_once(stage: Stage) -> None:
    stage.admit()
    pair = two_workers(stage)
    submission = stage.submitted(seconds=2 * SLOW_SECONDS)
    until(lambda: stage.worker_of(submission) != "", "the first attempt")
    stopping, _ = split(stage, pair, stage.worker_of(submission))
    stopping.send_signal(signal.SIGTERM)
    assert stopping.wait(60) == 0
    stage.assert_each_done_once([submission])
    assert stage.ended()[submission].attempts == 1


@pytest.mark.full
def test_a_run_is_cancelled_while_it_is_graded(stage: Stage) -> None:
    stage.admit()
    stage.worker()
    stage.web()
    unwanted, wanted = stage.submitted(seconds=5 * SLOW_SECONDS), stage.submitted()
    until(lambda: stage.worker_of(unwanted) != "", "the first attempt")
    assert stage.client.delete(f"/v1/submissions/{unwanted}").status_code == 202
    until(lambda: stage.status(unwanted) == "cancelled", "the end of it")
    stage.assert_each_done_once([wanted])
    assert stage.ended()[unwanted].results == 0


@pytest.mark.docker
@pytest.mark.full
@on_postgresql
def test_a_killed_workers_containers_are_removed_by_who_takes_over(stage: Stage) -> None:
    import docker

    from sandbox.docker_engine import BOOT_LABEL, LABEL, OWNER_LABEL
    from sandbox.owner import boot_id

    def owners() -> set[int]:
        found = client.api.containers(all=True, filters={"label": [LABEL, f"{BOOT_LABEL}={boot_id()}"]})
        return {int(container["Labels"][OWNER_LABEL].partition(":")[0]) for container in found}

    client = docker.from_env()
    stage.environment["AUTOGRADER_SANDBOX"] = "docker"
    stage.admit()
    pair = two_workers(stage)
    submission = stage.submitted(seconds=SLOW_SECONDS)
    until(lambda: stage.worker_of(submission) != "", "the first attempt")
    dead, _ = split(stage, pair, stage.worker_of(submission))
    until(lambda: dead.pid in owners(), "its container")
    kill(dead)
    stage.assert_each_done_once([submission])
    until(lambda: dead.pid not in owners(), "the removal of its containers")
    client.close()
