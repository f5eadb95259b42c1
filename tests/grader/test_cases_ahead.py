"""The next grading's cases are drawn while there is none, and are those of the seed it gets."""

import threading
from dataclasses import replace

import pytest

from grader.cases_ahead import CasesAhead
from grader.errors import OracleFailed
from grader.oracle import FakeOracle, Trial
from grader.plan import oracle_seed
from grader.unit import Unit, UnitOracle

ORACLE = UnitOracle(b"", b"")


class Drawn:
    """An oracle that notes for which seeds cases were drawn, and can fail."""

    def __init__(self) -> None:
        self.seeds: list[int] = []
        self.works = True
        self.asked = threading.Event()

    def __call__(self, seed: int) -> tuple[Trial, ...]:
        self.seeds.append(seed)
        self.asked.set()
        if not self.works:
            raise OracleFailed("no")
        return (Trial(str(seed), "", b"", {}),)


@pytest.fixture
def drawn() -> Drawn:
    return Drawn()


def graded(ahead: CasesAhead, unit: Unit) -> tuple[int, tuple[Trial, ...]]:
    with ahead.grading(unit) as seeded:
        return seeded.seed, seeded.trials(ORACLE, oracle_seed(seeded.seed))


def test_the_cases_of_a_grading_are_its_seed_s_and_were_drawn_before_it_began(unit: Unit, drawn: Drawn) -> None:
    ahead, unit = CasesAhead(FakeOracle(drawn), settle_seconds=0), replace(unit, oracle=ORACLE)
    first, trials = graded(ahead, unit)
    assert [trial.id for trial in trials] == [str(oracle_seed(first))]
    drawn.asked.clear()
    while len(drawn.seeds) < 2:
        assert drawn.asked.wait(30)
    second, trials = graded(ahead, unit)
    ahead.close()
    assert second != first
    assert [trial.id for trial in trials] == [str(oracle_seed(second))]
    assert drawn.seeds[:2] == [oracle_seed(first), oracle_seed(second)]


def test_nothing_is_drawn_beside_a_grading_nor_after_the_end(unit: Unit, drawn: Drawn) -> None:
    ahead, unit = CasesAhead(FakeOracle(drawn), settle_seconds=0), replace(unit, oracle=ORACLE)
    with ahead.grading(unit):
        graded(ahead, unit)
        ahead._draw(ORACLE)
        assert len(drawn.seeds) == 1
        ahead.close()
    ahead._draw(ORACLE)
    assert len(drawn.seeds) == 1


def test_an_oracle_that_fails_ahead_is_asked_again_by_the_grading(unit: Unit, drawn: Drawn) -> None:
    ahead, unit = CasesAhead(FakeOracle(drawn), settle_seconds=3600), replace(unit, oracle=ORACLE)
    drawn.works = False
    ahead._draw(ORACLE)
    assert len(drawn.seeds) == 1
    with pytest.raises(OracleFailed):
        graded(ahead, unit)
    ahead.close()
    assert drawn.seeds[0] == drawn.seeds[1]


def test_a_unit_without_an_oracle_gets_a_seed(unit: Unit, drawn: Drawn) -> None:
    ahead, unit = CasesAhead(FakeOracle(drawn), settle_seconds=0), replace(unit, oracle=None)
    with ahead.grading(unit) as one, ahead.grading(unit) as other:
        assert one.seed != other.seed
    ahead.close()
    assert drawn.seeds == []
