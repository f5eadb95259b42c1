import asyncio
import queue
import threading

from service import bells
from service.bells import Waiters
from service.dbos_queue import LightSleep

LONG = 60.0


def test_whoever_hears_a_bell_is_told_its_word(tmp_path):
    words: queue.Queue[str] = queue.Queue()
    with bells.ended(tmp_path).heard(words.put):
        bells.ended(tmp_path).ring("run-1")
        assert words.get(timeout=LONG) == "run-1"


def test_a_bell_is_of_one_name_and_one_data_directory(tmp_path):
    words: queue.Queue[str] = queue.Queue()
    with bells.ended(tmp_path).heard(words.put):
        bells.queued(tmp_path).ring("other name")
        bells.ended(tmp_path / "other").ring("other directory")
        bells.ended(tmp_path).ring("mine")
        assert words.get(timeout=LONG) == "mine"
    assert words.empty()


def test_ringing_where_nobody_hears_does_nothing(tmp_path):
    bells.ended(tmp_path).ring("run-1")
    with bells.ended(tmp_path).heard(lambda word: None):
        pass
    bells.ended(tmp_path).ring("run-1")


def test_a_second_that_wants_to_hear_goes_without_until_the_first_has_left(tmp_path):
    first: queue.Queue[str] = queue.Queue()
    second: queue.Queue[str] = queue.Queue()
    bell = bells.queued(tmp_path)
    with bell.heard(first.put):
        with bell.heard(second.put):
            bell.ring("a")
            assert first.get(timeout=LONG) == "a"
        bell.ring("b")
        assert first.get(timeout=LONG) == "b"
    with bell.heard(second.put):
        bell.ring("c")
        assert second.get(timeout=LONG) == "c"
    assert first.empty()


def test_those_who_wait_for_a_word_are_told_that_word_from_any_thread():
    waiters = Waiters()

    async def wait() -> tuple[bool, bool]:
        with waiters.waiting("run-1") as one, waiters.waiting("run-1") as other, waiters.waiting("run-2") as third:
            threading.Thread(target=waiters.tell, args=("run-1",)).start()
            await asyncio.wait_for(asyncio.gather(one.wait(), other.wait()), LONG)
            waiters.tell("run-3")
            return one.is_set(), third.is_set()

    assert asyncio.run(wait()) == (True, False)
    waiters.tell("run-1")  # nobody waits any more


def test_a_light_sleep_ends_when_it_is_rung_and_only_a_stop_says_stop():
    stop, rung = threading.Event(), threading.Event()
    busy = threading.Event()
    sleep = LightSleep(stop, rung, busy.is_set)
    assert not sleep.wait(0.02)
    rung.set()
    assert not sleep.wait(LONG) and not rung.is_set()
    busy.set()
    threading.Timer(0.1, rung.set).start()
    assert not sleep.wait(0.02)
    assert not rung.is_set()  # it slept on until it was rung
    stop.set()
    assert sleep.wait(LONG) and sleep.is_set()
