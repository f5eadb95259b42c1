"""The course tests that do not pass arrive; which planted faults they point to leaves. Pure.

Each course test says which planted faults it catches. Code that fails the very tests that catch a fault has that fault,
as far as tests can tell.
"""

from collections.abc import Collection

from grader.hints import PITFALLS
from grader.unit import Unit

ALIKE = 0.75  # how much two sets of failing tests must have in common to be of one fault


class Faults:
    """Which planted faults make course tests fail: those that the same tests catch, or nearly.

    Of several such faults a pitfall is the likelier one: students make those, machines make the others.
    """

    def __init__(self, unit: Unit) -> None:
        self._bits = {test.name: 1 << place for place, test in enumerate(unit.course_tests)}
        caught = {mutant.id: 0 for mutant in unit.mutants}
        for test in unit.course_tests:
            for mid in caught.keys() & set(test.catches):
                caught[mid] |= self._bits[test.name]
        self._pitfalls: dict[int, list[str]] = {}  # ids by the tests that catch them
        self._others: dict[int, list[str]] = {}
        for mutant in unit.mutants:
            kind = self._pitfalls if mutant.tier == PITFALLS else self._others
            kind.setdefault(caught[mutant.id], []).append(mutant.id)

    def of(self, failing: Collection[str]) -> str | None:
        """The fault that makes exactly these course tests fail, or nearly these."""
        likely = self.pitfalls(failing)
        if likely:
            return likely[0]
        likeness, mids = self._closest(self._others, failing)
        return mids[0] if likeness >= ALIKE else None

    def pitfalls(self, failing: Collection[str]) -> tuple[str, ...]:
        """The pitfalls that it can be, which these tests do not tell apart; none where another fault is likelier."""
        likeness, mids = self._closest(self._pitfalls, failing)
        other, _ = self._closest(self._others, failing)
        return tuple(mids) if likeness >= max(ALIKE, other) else ()

    def _closest(self, faults: dict[int, list[str]], failing: Collection[str]) -> tuple[float, list[str]]:
        seen = sum(self._bits.get(name, 0) for name in failing)
        alike = (
            ((seen & caught).bit_count() / (seen | caught).bit_count(), mids)
            for caught, mids in faults.items()
            if seen & caught
        )
        return max(alike, key=lambda each: each[0], default=(0.0, []))
