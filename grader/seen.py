"""What grading sees of a submission, from the runs to the decisions, before a report is made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from grader import contract
from grader.agreement import OracleSeen
from grader.mutation import Decision, Judgement
from grader.report import (
    Cause,
    MutantStatus,
)
from grader.verdicts import SuiteSeen
from sandbox.records import Environment, RunResult


@dataclass(frozen=True)
class About:
    """Whose submission this is, and when it came."""

    id: str
    course: str
    student: str | None
    received_at: datetime
    queued_seconds: float = 0.0
    course_digest: str = ""


@dataclass(frozen=True)
class OwnSeen:
    """What was run on the student's unit: the course tests (by name, the runs of each), the student's tests, and the
    oracle's cases if the unit has an oracle."""

    course: Mapping[str, Sequence[RunResult]]
    suite: SuiteSeen
    oracle: OracleSeen | None = None

    @property
    def ok(self) -> bool:
        """Every test ran and none failed."""
        return not self.suite.failing and self.suite.cause is None and not self.suite.unanswered


@dataclass(frozen=True)
class Stopped:
    """Why the suite was not held against mutants, and what that makes of them."""

    code: str
    message: str
    status: MutantStatus


@dataclass(frozen=True)
class MutationSeen:
    """The student's tests on correct code and on mutants; empty behind the calibration when `stopped`."""

    calibration: SuiteSeen
    broken: SuiteSeen
    correct: Sequence[tuple[str, SuiteSeen]] = ()
    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    complete: bool = False
    remembered: bool = False
    """seen when the same tests were graded before"""
    stopped: Stopped | None = None

    @property
    def ended(self) -> Cause | None:
        """How a run on correct code ended that no test can be blamed for."""
        return next((suite.cause for _, suite in self.correct if suite.cause is not None), None)

    @property
    def failures_seen(self) -> bool:
        """Whether the forced failure showed: otherwise no mutant is believed."""
        return self.broken.shows_failure

    @property
    def void(self) -> bool:
        """Whether the suite gets no score, whatever it catches."""
        invalid = any(judgement.invalid for judgement in self.judgements.values())
        return self.stopped is not None or invalid or self.ended is not None or not self.failures_seen


@dataclass(frozen=True)
class Seen:
    """Everything grading saw. `own` is None when the student's unit is not Python."""

    problems: Sequence[contract.Problem]
    own: OwnSeen | None
    mutation: MutationSeen
    environment: Environment
