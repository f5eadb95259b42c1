"""The runs of a mutant arrive one by one, with which tests count; what to run on it next leaves, or what it comes to.

Which, is `mutation.decide`'s to say. A run can be asked for before all correct code was run, as if every test counted
that correct code has not spoken against so far. One that would not have been asked for in the end is dropped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader import mutation, plan
from grader.mutation import Correct, Decision, Judgement, Next
from grader.verdicts import SuiteSeen
from sandbox.records import RunResult


@dataclass(frozen=True)
class Counts:
    """Which tests' failures count on mutants and which do not, and the files that cannot be collected on correct code
    either."""

    valid: frozenset[str]
    invalid: frozenset[str]
    known_errors: frozenset[str]

    @classmethod
    def by(cls, calibration: SuiteSeen, correct: Correct, judgements: Mapping[str, Judgement]) -> "Counts":
        """`judgements` are those that the same runs on correct code led to."""
        valid = frozenset(name for name, judgement in judgements.items() if judgement.valid)
        errors = frozenset(mutation.known_errors(calibration, correct))
        return cls(valid, frozenset(judgements) - valid, errors)


@dataclass(frozen=True)
class Asked:
    """A further run of a mutant: of what, without the tests whose failures do not count."""

    next: Next
    only: tuple[str, ...]
    skip: tuple[str, ...]

    @property
    def is_alone(self) -> bool:
        return self.next is Next.ALONE

    @property
    def stops_at_first_failure(self) -> bool:
        return self.next is Next.CONFIRM and bool(self.only)


class MutantRuns:
    """`first` is the run that all variants have; `others` were made before it or within it, and count where they
    confirm it."""

    def __init__(self, first: RunResult, others: Sequence[RunResult] = ()) -> None:
        self._first = first
        self._others = tuple(others)
        self._further: list[tuple[Asked, RunResult]] = []
        self._counts: Counts | None = None
        self._decision = Decision(Next.NOTHING)

    def decision(self, counts: Counts) -> Decision:
        """Whatever was asked for as it would not be if these tests count is dropped."""
        if counts != self._counts:
            made, self._further = self._further, []
            self._decide(counts)
            for asked, result in made:
                if self.asked(counts) != asked:
                    break
                self.add(asked, result)
        return self._decision

    def asked(self, counts: Counts) -> Asked | None:
        """What is to be run next, if anything is."""
        decision = self.decision(counts)
        if decision.next is Next.NOTHING:
            return None
        invalid = plan.items_of(counts.invalid, self._first.record.collected)
        return Asked(decision.next, decision.only, tuple(dict.fromkeys((*invalid, *decision.skip))))

    def add(self, asked: Asked, result: RunResult) -> None:
        """Of a run that was asked for last."""
        self._further.append((asked, result))
        if self._counts is not None:
            self._decide(self._counts)

    def _decide(self, counts: Counts) -> None:
        confirming = (
            other for other in self._others if mutation.agree(self._first, other, counts.valid, counts.known_errors)
        )
        runs = [self._first, *confirming, *(result for _, result in self._further)]
        self._counts, self._decision = counts, mutation.decide(runs, counts.valid, counts.known_errors)
