"""The pool of warm stations, with stations that are only names."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from sandbox import docker_engine
from sandbox.docker_engine import ALIKE, Crowd, Pool, Stock
from sandbox.records import File, Module, SuiteFolder
from sandbox.station import Lost

LONG = 60.0


class Warm:
    """A station and its line."""

    def __init__(self, quiet: bool = True) -> None:
        self.line = self
        self.quiet = quiet
        self.hastened = self.closed = False
        self.modules: Sequence[Module] = ()
        self.suites: Sequence[SuiteFolder] = ()
        self.breaks = False

    def is_quiet(self) -> bool:
        return self.quiet

    def hasten(self) -> None:
        self.hastened = True

    def close(self) -> None:
        self.closed = True

    def can_serve(self, modules: Sequence[Module]) -> bool:
        return self.modules in ((), modules)

    def preload(self, modules: Sequence[Module]) -> None:
        if self.breaks:
            raise Lost("gone")
        self.modules = modules

    def prepare(self, suites: Sequence[SuiteFolder]) -> None:
        self.suites = suites


class Opening:
    """Opens stations when it is let, and fails while it is told to."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Semaphore(0), threading.Semaphore(0)
        self.fails = self.breaks = False
        self.made: list[Warm] = []

    def __call__(self) -> Any:
        self.begun.release()
        assert self.may_end.acquire(timeout=LONG)
        if self.fails:
            raise OSError("no engine")
        self.made.append(Warm())
        self.made[-1].breaks = self.breaks
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
    station = pools[0].taker(Stock())()
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
    station: Any = pools[0].taker(Stock())()
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
    assert pools[0].taker(Stock())() is own
    assert ahead.has_begun()
    ahead.fails = False
    ahead.may_end.release()
    station: Any = pools[0].taker(Stock())()
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
    station: Any = pools[0].taker(Stock())()
    assert ahead.made[0].closed and station is not ahead.made[0]
    assert station is own or station.hastened


ONE, OTHER = (
    Stock((Module(name, b"", name),), (SuiteFolder((File(f"suite/{name}.py", b""),), "suite", ()),)) for name in "ab"
)


def next_after(asked: Sequence[Stock], ahead: Opening, pools: list[Pool]) -> Any:
    """The station that is opened ahead after these sessions."""
    crowd = Crowd(1)
    with crowd.joined():
        pools.append(Pool(cannot_open, ahead, 1, crowd))
        takers = [pools[0].taker(stock) for stock in asked]
        ahead.may_end.release()
    assert ahead.has_begun()
    station = takers[-1]()
    ahead.may_end.release(5)
    return station


def test_what_the_last_sessions_all_began_with_is_laid_in_ahead(ahead: Opening, pools: list[Pool]) -> None:
    station = next_after([OTHER] + [ONE] * ALIKE, ahead, pools)
    assert (station.modules, station.suites) == (ONE.modules, ONE.suites)


@pytest.mark.parametrize("asked", [[ONE] * (ALIKE - 1), [*[ONE] * (ALIKE - 1), OTHER], [OTHER, *[ONE] * (ALIKE - 1)]])
def test_where_sessions_differ_nothing_is_laid_in(asked: list[Stock], ahead: Opening, pools: list[Pool]) -> None:
    station = next_after(asked, ahead, pools)
    assert not station.modules and not station.suites


def test_a_session_of_another_sort_gets_no_station_that_holds_what_it_did_not_ask_for(
    ahead: Opening, pools: list[Pool]
) -> None:
    own: Any = Warm()
    pools.append(Pool(lambda: own, ahead, 1, Crowd(1)))
    ahead.may_end.release()
    while not pools[0].ready():
        pass
    ahead.made[0].modules = ONE.modules
    ahead.may_end.release(5)
    station: Any = pools[0].taker(OTHER)()
    assert ahead.made[0].closed and station is not ahead.made[0] and not station.modules


def test_a_station_that_is_lost_while_it_is_stocked_is_closed_and_another_opened(
    ahead: Opening, pools: list[Pool]
) -> None:
    own: Any = Warm()
    crowd = Crowd(1)
    with crowd.joined():
        pools.append(Pool(lambda: own, ahead, 1, crowd))
        takers = [pools[0].taker(ONE) for _ in range(ALIKE)]
        ahead.breaks = True
        ahead.may_end.release()
    assert ahead.has_begun() and takers[0]() in (own, *ahead.made[1:])
    assert ahead.has_begun() and ahead.made[0].closed
    ahead.breaks = False
    ahead.may_end.release(5)
