"""What tests caught so far arrives, run by run; the order in which tests meet the next variant leaves.

Where runs stop at the first failure, what a mutant costs is what comes before the test that catches it. A test comes
early if it is likely to catch, for what it costs, and what it caught of the same category says most (decision 0247).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from grader.report import Outcome
from grader.verdicts import join
from sandbox.records import RunResult

ITEM_SECONDS = 0.001  # what running any test costs besides
OTHER_CATEGORY = 0.05  # what a mutant of another category says, of what one of the same says
GUESSED_MUTANTS, GUESSED_CATCHES = 1.0, 0.1  # as if every test had met so many, and caught so many


class Priorities:
    """What is known of a suite's tests, by name. `seconds` is what each takes on correct code."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self._seconds = seconds
        self._met: dict[str | None, Counter[str]] = defaultdict(Counter)  # by category, None for all of them
        self._caught: dict[str | None, Counter[str]] = defaultdict(Counter)
        self._refused: set[str] = set()

    def saw(self, category: str, result: RunResult) -> None:
        """Note what a mutant's run came to."""
        seen = join([result])
        passed = [name for name, test in seen.tests.items() if test.outcome is Outcome.PASSED]
        for key in (category, None):
            self._caught[key].update(seen.failing)
            self._met[key].update((*seen.failing, *passed))

    def saw_correct(self, result: RunResult) -> None:
        """Note what a run on correct code came to: tests that fail there come last."""
        self._refused.update(join([result]).failing)

    def order(self, category: str | None = None, entering: Collection[str] | None = None) -> tuple[str, ...]:
        """The tests for a mutant: of this category, or of any; `entering` it are those that can notice it, if known.

        Before anything was caught the quickest come first.
        """

        def worth(name: str) -> tuple[bool, bool, float]:
            likely = self._likely(name, category) / (self._seconds[name] + ITEM_SECONDS)
            return name not in self._refused, entering is None or name in entering, likely

        return tuple(sorted(self._seconds, key=worth, reverse=True))

    def _likely(self, name: str, category: str | None) -> float:
        """That a test catches the next mutant, by those that it met."""
        met, caught = float(self._met[None][name]), float(self._caught[None][name])
        if category is not None:
            met = self._met[category][name] + OTHER_CATEGORY * (met - self._met[category][name])
            caught = self._caught[category][name] + OTHER_CATEGORY * (caught - self._caught[category][name])
        return (caught + GUESSED_CATCHES) / (met + GUESSED_MUTANTS)
