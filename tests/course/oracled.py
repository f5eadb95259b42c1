"""What the live oracle of every unit is tried with: a unit's id goes in; what its oracle expects of a seed, and where a
module differs from that, come out."""

import copy
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from grader.comparator import Expectation, Finding, findings
from grader.driver import driver_of
from tests.course import variants

Case = dict[str, Any]
Trial = list[tuple[Case, dict[str, Expectation]]]


def module_of(name: str, source: str | bytes) -> Any:
    """A module of this source, with no file of compiled code left beside the course's."""
    module = ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


class Oracle:
    """The oracle of a unit; `by` is what its cases are told apart by where they disagree."""

    def __init__(self, unit_id: str, by: str = "id") -> None:
        self.file = variants.COURSE / f"oracle/{unit_id}/live.py"
        self._by = by
        self._trials: dict[int, Trial] = {}

    @cached_property
    def source(self) -> bytes:
        return self.file.read_bytes()

    @cached_property
    def live(self) -> Any:
        return module_of("live", self.source)

    @cached_property
    def driver(self) -> Any:
        """What grading runs, without what knows right answers."""
        return module_of("driver", driver_of(self.source))

    def trial(self, seed: int) -> Trial:
        """Every case of a seed with what is expected."""
        if seed not in self._trials:
            self._trials[seed] = [
                (case, {name: Expectation.of(said) for name, said in self.live.expected(case).items()})
                for case in self.live.cases(seed)
            ]
        return self._trials[seed]

    def driven(self, module: Any, case: Case) -> Any:
        with np.errstate(all="ignore"):  # wrong code may overflow
            return self.driver.drive(module, case)

    def disagreements(self, module: Any, seed: int) -> dict[str, tuple[Finding, ...]]:
        """In which cases the module disagrees, and in what."""
        found = {case[self._by]: findings(self.driven(module, case), expected) for case, expected in self.trial(seed)}
        return {case: there for case, there in found.items() if there}

    def check_seeds(self) -> None:
        """The same seed gives the same cases, and another seed others."""
        first, again, other = self.live.cases(5), self.live.cases(5), self.live.cases(6)
        for one, two in zip(first, again, strict=True):
            assert one["says"] == two["says"]
            assert all(np.array_equal(array, two["arrays"][name]) for name, array in one["arrays"].items())
        assert [case["says"] for case in first] != [case["says"] for case in other]

    def check_left_alone(self, *modules: Any) -> None:
        """No case is another after it was driven, with code that writes into its arguments either."""
        for case in self.live.cases(2):
            kept = copy.deepcopy(case["arrays"])
            for module in modules:
                self.driven(module, case)
            assert all(np.array_equal(array, case["arrays"][name]) for name, array in kept.items())

    def check_driver(self, *words: str) -> None:
        """What grading runs can drive, and holds none of the words by which one could compute what is right."""
        text = driver_of(self.source).decode()
        assert "def drive" in text
        assert not [word for word in ("def expected", *words) if word in text]
