"""The pool of warm stations, with stations that are only names."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox import docker_engine
from sandbox.docker_engine import Crowd, Pool

LONG = 60.0


class Warm:
    """A station and its line."""

    def __init__(self, quiet: bool = True) -> None:
        self.line = self
        self.quiet = quiet
        self.hastened = self.closed = False

    def is_quiet(self) -> bool:
        return self.quiet

    def hasten(self) -> None:
        self.hastened = True

    def close(self) -> None:
        self.closed = True


class Opening:
    """Opens stations when it is let, and fails while it is told to."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Semaphore(0), threading.Semaphore(0)
        self.fails = False
        self.made: list[Warm] = []

    def __call__(self) -> Any:
        self.begun.release()
        assert self.may_end.acquire(timeout=LONG)
        if self.fails:
            raise OSError("no engine")
        self.made.append(Warm())
        return self.made[-1]

    def has_begun(self) -> bool:
        return self.begun.acquire(timeout=LONG)


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Opening:
    monkeypatch.setattr(docker_engine, "SETTLE_SECONDS", 0.01)
    monkeypatch.setattr(docker_engine, "RETRY_SECONDS", 0.01)
    return Opening()


@pytest.fixture
def pools() -> Iterator[list[Pool]]:
    made: list[Pool] = []
    yield made
    for pool in made:
        pool.close()


def cannot_open() -> Any:
    raise AssertionError("opened one although one was coming")


def test_nothing_is_opened_ahead_while_the_sessions_need_all_cores(ahead: Opening, pools: list[Pool]) -> None:
    crowd = Crowd(2)
    with crowd.joined():
        with crowd.joined():
            pools.append(Pool(cannot_open, ahead, 1, crowd))
            assert not ahead.begun.acquire(timeout=0.2)
        ahead.may_end.release()  # one of two is over
        assert ahead.has_begun()
    station = pools[0].take()
    assert station is ahead.made[0]  # type: ignore[comparison-overlap]
    ahead.may_end.release()


def test_one_is_opened_beside_others_when_more_follow(ahead: Opening, pools: list[Pool]) -> None:
    crowd = Crowd(1)
    with crowd.joined():
        pools.append(Pool(cannot_open, ahead, 1, crowd))
        assert not ahead.begun.acquire(timeout=0.2)
        crowd.expect(True)
        assert ahead.has_begun()
        ahead.may_end.release()


def test_whoever_comes_while_one_is_being_opened_gets_that_one(ahead: Opening, pools: list[Pool]) -> None:
    pools.append(Pool(cannot_open, ahead, 1, Crowd(1)))
    assert ahead.has_begun() and pools[0].ready() == 0
    threading.Timer(0.05, ahead.may_end.release).start()
    station: Any = pools[0].take()
    assert station is ahead.made[0] and station.hastened
    ahead.may_end.release()


def test_one_that_fails_is_opened_again_and_whoever_takes_meanwhile_opens_one(
    ahead: Opening, pools: list[Pool]
) -> None:
    ahead.fails = True
    own: Any = Warm()
    pools.append(Pool(lambda: own, ahead, 1, Crowd(1)))
    assert ahead.has_begun()
    threading.Timer(0.05, ahead.may_end.release).start()
    assert pools[0].take() is own
    assert ahead.has_begun()
    ahead.fails = False
    ahead.may_end.release()
    station: Any = pools[0].take()
    assert station in (own, *ahead.made)
    ahead.may_end.release(5)


def test_one_that_has_gone_is_closed_and_the_next_is_taken(ahead: Opening, pools: list[Pool]) -> None:
    own: Any = Warm()
    pools.append(Pool(lambda: own, ahead, 1, Crowd(1)))
    ahead.may_end.release()
    while not pools[0].ready():
        pass
    ahead.made[0].quiet = False
    ahead.may_end.release(5)
    station: Any = pools[0].take()
    assert ahead.made[0].closed and station is not ahead.made[0]
    assert station is own or station.hastened
