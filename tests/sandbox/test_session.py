"""Sessions over stations that are lost, lie, or run out of memory."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbox.errors import EngineFailed
from sandbox.records import EndingKind, Environment, File, Run, Suite
from sandbox.session import AHEAD, Batch, StationSession
from sandbox.station import SOURCES, Loss, Lost, Station
from sandbox.wire import Frames, encode

Answer = Callable[[int], bytes | None]
RECORD = b"".join(
    json.dumps(event).encode() + b"\n"
    for event in (
        {"event": "collected", "ids": []},
        {"event": "end", "status": 5, "interrupted": False, "selected": 0, "ran": 0},
    )
)


def result(nonce: str, seq: int, **changes: Any) -> bytes:
    header = {
        "frame": "result",
        "nonce": nonce,
        "seq": seq,
        "reason": "",
        "seen": 0.0,
        "status": 0,
        "cpu_seconds": 0.1,
        "wall_seconds": 0.1,
        "peak_memory_bytes": 1,
        "peak_processes": 1,
        "disk_full": False,
        "oom": False,
        "oom_known": True,
        "alone": True,
        "totals": [len(RECORD), 0, 0],
        "parts": [len(RECORD), 0, 0, 0, 0, 0],
    }
    return encode(header | changes, RECORD)


class FakeLine:
    """A supervisor that answers each run from a function; None loses the line."""

    def __init__(self, answer: Callable[[str, int], bytes | None], out_of_memory: bool) -> None:
        self._answer = answer
        self._out_of_memory = out_of_memory
        self._frames = Frames()
        self._answers: list[bytes | None] = []
        self.most_at_a_time = 0
        self.events = 0

    def send(self, data: bytes, until: float) -> None:
        for header, _ in self._frames.feed(data):
            nonce = header["nonce"]
            if header["frame"] == "open":
                versions = dict.fromkeys(("python", "numpy", "pytest", "hypothesis"), "1") | {"libraries": {}}
                self._answers.append(encode({"frame": "ready", "nonce": nonce, "sources": SOURCES, **versions}))
            else:
                self._answers.append(self._answer(nonce, header["seq"]))
                self.most_at_a_time = max(self.most_at_a_time, len(self._answers))

    def receive(self, until: float) -> bytes:
        answer = self._answers.pop(0) if self._answers else None
        if answer is None:
            raise Lost("gone")
        return answer

    def is_quiet(self) -> bool:
        return True

    def hasten(self) -> None: ...

    def memory_events(self) -> int:
        return self.events

    def kill(self) -> None: ...

    def close(self) -> Loss:
        return Loss(self._out_of_memory, "fake")


def session_of(*answers: Callable[[str, int], bytes | None], out_of_memory: bool = False) -> StationSession:
    """A session whose first station answers by the first function, and so on; the last goes on for ever."""
    lines = iter([*answers, *[answers[-1]] * 10])
    return StationSession(
        lambda: Station(FakeLine(next(lines), out_of_memory)),
        lambda station: Environment("fake", "", "", "", "", ""),
        (),
        jobs=2,
        deadline_seconds=60.0,
    )


def runs(count: int) -> list[Run]:
    return [Run(str(number), Suite((File("suite/t.py", b""),)), ()) for number in range(count)]


def test_a_run_is_asked_for_when_those_before_were_handed_over_and_may_depend_on_results() -> None:
    session = session_of(result)
    seen: list[str] = []
    known: list[int] = []

    def coming() -> Iterator[Run]:
        for run in runs(10):
            known.append(len(seen))
            yield run

    found = session.run(coming(), lambda each: seen.append(each.run_id))
    assert [each.run_id for each in found] == [str(number) for number in range(10)]
    assert known == [0] * (2 + AHEAD) + list(range(1, 7))


def test_where_none_comes_a_run_is_asked_for_again_after_the_next_result() -> None:
    session = session_of(result)
    seen: list[str] = []

    def coming() -> Iterator[Run | None]:
        first, second, third = runs(3)
        yield first
        yield second
        while len(seen) < 2:
            yield None
        yield third

    found = session.run(coming(), lambda each: seen.append(each.run_id))
    assert [each.run_id for each in found] == ["0", "1", "2"]
    assert line_of(session).most_at_a_time == 2


def test_runs_that_wait_for_one_that_is_made_again_are_made_behind_it() -> None:
    """Beside another it ran out of memory, or its station was lost."""
    for first in (lambda nonce, seq: result(nonce, seq, oom=seq == 1, alone=seq > 1), lambda nonce, seq: None):
        session = session_of(first, result)
        seen: list[str] = []

        def coming(seen: list[str] = seen) -> Iterator[Run | None]:
            for run in runs(3):
                yield run
                while run.id not in seen:
                    yield None

        session.run(coming(), lambda each, seen=seen: seen.append(each.run_id))
        assert seen == ["0", "1", "2"]


def test_who_waits_for_a_result_where_none_is_to_come_is_told() -> None:
    with pytest.raises(ValueError, match="no result"):
        session_of(result).run(iter([*runs(1), None, None]))


def test_runs_that_wait_for_a_result_end_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(result)
    left = iter([1.0] * 3)
    monkeypatch.setattr(session, "left_seconds", lambda: next(left, 0.0))
    seen: list[EndingKind] = []

    def coming() -> Iterator[Run | None]:
        for count, run in enumerate(runs(4)):
            while len(seen) < count:
                yield None
            yield run

    session.run(coming(), lambda each: seen.append(each.ending.kind))
    assert len(seen) == 4 and seen[0] is EndingKind.COMPLETE and seen[-1] is EndingKind.DEADLINE


def test_runs_that_come_from_a_generator_are_made_again_too_when_the_station_is_lost() -> None:
    session = session_of(lambda nonce, seq: None, result)
    found = session.run(iter(runs(7)))
    assert [each.run_id for each in found] == [str(number) for number in range(7)]
    assert all(each.complete for each in found)


def test_all_runs_that_were_to_come_end_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(result)
    left = iter([1.0] * 8)
    monkeypatch.setattr(session, "left_seconds", lambda: next(left, 0.0))
    found = session.run(iter(runs(9)))
    kinds = [each.ending.kind for each in found]
    assert kinds == sorted(kinds) and len(kinds) == 9
    assert {EndingKind.COMPLETE, EndingKind.DEADLINE} == set(kinds)


def test_a_lost_station_s_runs_are_made_again() -> None:
    session = session_of(lambda nonce, seq: None, result)
    assert all(found.complete for found in session.run(runs(5)))


def test_a_run_that_loses_its_station_twice_alone_is_our_failure() -> None:
    with pytest.raises(EngineFailed, match="twice"):
        session_of(lambda nonce, seq: None).run(runs(1))


def test_a_run_that_loses_it_twice_to_memory_has_its_ending() -> None:
    (found,) = session_of(lambda nonce, seq: None, out_of_memory=True).run(runs(1))
    assert found.ending.kind is EndingKind.MEMORY


def test_runs_beside_one_that_took_all_memory_are_made_again_alone() -> None:
    seen: list[int] = []

    def answer(nonce: str, seq: int) -> bytes:
        seen.append(seq)
        return result(nonce, seq, oom=True, alone=False) if seq <= 2 else result(nonce, seq)

    found = session_of(answer).run(runs(2))
    assert all(one.complete for one in found) and len(seen) == 4


def line_of(session: StationSession) -> FakeLine:
    assert session._station is not None and isinstance(session._station.line, FakeLine)
    return session._station.line


def test_where_one_run_alone_takes_all_memory_the_next_are_made_one_at_a_time() -> None:
    """Else each of many such runs would be made twice: beside another, and then alone."""
    made: list[int] = []

    def answer(nonce: str, seq: int) -> bytes:
        made.append(seq)
        return result(nonce, seq, oom=True, alone=seq > 2)

    session = session_of(answer)
    session.run(runs(2))
    line_of(session).most_at_a_time = 0
    assert {found.ending.kind for found in session.run(runs(6))} == {EndingKind.MEMORY}
    assert line_of(session).most_at_a_time == 1 and len(made) == 2 + 2 + 6


def test_after_a_run_alone_that_ends_well_others_are_beside_each_other_again() -> None:
    session = session_of(lambda nonce, seq: result(nonce, seq, oom=seq == 1))
    session.run(runs(1))
    line_of(session).most_at_a_time = 0
    assert all(found.complete for found in session.run(runs(6)))
    assert line_of(session).most_at_a_time == 2 + AHEAD


def test_runs_that_had_no_place_when_the_station_was_lost_are_not_made_alone() -> None:
    """They cannot have been the cause, and alone they would take longer."""
    beside: list[int] = []

    def answer(nonce: str, seq: int) -> bytes:
        beside.append(line_of(session).most_at_a_time)
        return result(nonce, seq)

    session = session_of(lambda nonce, seq: None, answer)
    assert all(found.complete for found in session.run(runs(6)))
    assert beside[:2] == [0, 1] and max(beside) == 2 + AHEAD - 1


def test_silence_counts_from_when_a_run_has_a_place() -> None:
    session = session_of(result)
    batch = Batch(session, runs(4), lambda found: None)
    batch._start_what_fits()
    assert [flight.has_place for flight in batch._flying.values()] == [True, True, False, False]
    batch._land(*session.receive(time.monotonic() + 1))
    assert [flight.has_place for flight in batch._flying.values()] == [True, True, False]


@pytest.mark.parametrize("ran_out", [True, False])
def test_where_the_supervisor_cannot_know_of_memory_the_engine_s_events_tell(ran_out: bool) -> None:
    def answer(nonce: str, seq: int) -> bytes:
        line_of(session).events += ran_out
        return result(nonce, seq, oom_known=False)

    session = session_of(answer)
    (found,) = session.run(runs(1))
    assert found.ending.kind is (EndingKind.MEMORY if ran_out else EndingKind.COMPLETE)


def test_events_of_earlier_runs_are_not_laid_at_a_later_one_s_door() -> None:
    session = session_of(lambda nonce, seq: result(nonce, seq, oom_known=False))
    line_of(session).events = 7
    assert all(found.complete for found in session.run(runs(3)))


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "another"},
        {"frame": "ready"},
        {"seq": 999},
        {"status": "0"},
        {"parts": [1, 2]},
        {"parts": [len(RECORD) + 1, -1, 0, 0, 0, 0]},
        {"reason": "boredom"},
        {"extra": 1},
    ],
)
def test_a_result_that_is_none_loses_the_station_and_not_the_run(changes: dict[str, Any]) -> None:
    def lies(nonce: str, seq: int) -> bytes:
        return result(**({"nonce": nonce, "seq": seq} | changes))

    (found,) = session_of(lies, result).run(runs(1))
    assert found.complete
