"""What the student's suite did on correct code and on mutants arrives; which tests are valid and which mutants are
killed leaves. The rules are those of docs/grading-rules.md; all functions are pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from grader import wording
from grader.plan import REFERENCE
from grader.report import Cause, MutantStatus, Outcome
from grader.verdicts import OUT_OF_TIME, SuiteSeen, TestSeen, join
from sandbox.records import EndingKind, RunResult, function_of

MOST_RUNS_OF_A_MUTANT = 5


@dataclass(frozen=True)
class Judgement:
    """One test function against correct code: on how many runs it passed, and the variants it rejected.

    `flaky` says that it passed and failed on the very same code. `blank` marks tests that say nothing: skipped, or
    marked xfail.
    """

    passed: int
    total: int
    rejected: tuple[str, ...] = ()
    flaky: bool = False
    blank: bool = False

    @property
    def invalid(self) -> bool:
        return bool(self.rejected) or self.flaky

    @property
    def valid(self) -> bool:
        return not self.blank and not self.invalid


def judge_tests(calibration: SuiteSeen, correct: Sequence[tuple[str, SuiteSeen]]) -> dict[str, Judgement]:
    """Hold every test against correct code. `correct` pairs a variant's id with what the suite did on it.

    The calibration run is not counted, but it was correct code too: a test that failed there only is flaky, and one
    that ended that run is not run again and rejects everything. Files that could not be collected appear under their
    path.
    """
    suites = [calibration, *(suite for _, suite in correct)]
    names = dict.fromkeys(name for suite in suites for name in (*suite.tests, *error_paths(suite)))
    return {name: _judge(name, calibration, correct) for name in names}


def error_paths(suite: SuiteSeen) -> tuple[str, ...]:
    """Files of the suite that could not be collected."""
    return tuple(error.path for error in suite.errors)


def _judge(name: str, calibration: SuiteSeen, correct: Sequence[tuple[str, SuiteSeen]]) -> Judgement:
    first = calibration.tests.get(name)
    everything = tuple(variant for variant, _ in correct)
    if name in error_paths(calibration) or (first is not None and first.ended_run):
        return Judgement(0, len(correct), rejected=everything)
    seen = [(variant, suite.tests.get(name, TestSeen(Outcome.NOT_RUN))) for variant, suite in correct]
    said = [test for _, test in seen] + ([first] if first is not None else [])
    if not all(test.counts for test in said) or all(test.outcome is Outcome.SKIPPED for test in said):
        return Judgement(0, len(correct), blank=True)
    rejected = tuple(variant for variant, test in seen if test.outcome is not Outcome.PASSED)
    on_reference = {test.outcome is Outcome.PASSED for variant, test in seen if variant == REFERENCE}
    if first is not None:
        on_reference.add(first.outcome is Outcome.PASSED)
    return Judgement(len(correct) - len(rejected), len(correct), rejected, flaky=len(on_reference) > 1)


class Next(Enum):
    """What a mutant needs next."""

    NOTHING = auto()
    CONFIRM = auto()  # the tests that failed, once more
    CONTINUE = auto()  # the tests not yet answered
    AGAIN = auto()  # the whole suite once more
    ALONE = auto()  # the whole suite once more, with nothing beside it


@dataclass(frozen=True)
class Decision:
    """What is known of a mutant after the runs so far: its status if `next` is NOTHING, otherwise what to run."""

    next: Next
    status: MutantStatus = MutantStatus.SURVIVED
    killed_by: tuple[str, ...] = ()
    cause: Cause | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


def decide(runs: Sequence[RunResult], valid: frozenset[str], known_errors: frozenset[str]) -> Decision:
    """Decide a mutant from its runs so far, in order. `valid` are the tests whose failures count; `known_errors` are
    files that cannot be collected on correct code either.

    Killed needs two complete runs in which the same test fails; out of time needs two runs, the second alone; any other
    ending is void after two. A failure that does not come again is no kill.
    """
    last = runs[-1]
    kind = last.ending.kind
    if kind is EndingKind.DEADLINE:
        return Decision(Next.NOTHING, MutantStatus.VOID, cause=wording.cause(last.ending))
    if not last.complete:
        return _after_bad_ending(runs, last)
    complete = [run for run in runs if run.complete]
    now = _failing(last, valid, known_errors)
    before = frozenset(name for run in complete[:-1] for name in _failing(run, valid, known_errors))
    confirmed = tuple(name for name in now if name in before)
    if confirmed:
        return Decision(Next.NOTHING, MutantStatus.KILLED, killed_by=confirmed)
    if before or len(runs) >= MOST_RUNS_OF_A_MUTANT:
        return Decision(Next.NOTHING, MutantStatus.SURVIVED)
    if now:
        return Decision(Next.CONFIRM, only=() if set(now) - set(join([last]).tests) else now)
    seen = join(complete)
    left = tuple(item for item in seen.unanswered if function_of(item) in valid)
    if left and last.record.items:
        done = set(left)
        return Decision(Next.CONTINUE, skip=tuple(item for item in seen.collected if item not in done))
    return Decision(Next.NOTHING, MutantStatus.SURVIVED)


def _after_bad_ending(runs: Sequence[RunResult], last: RunResult) -> Decision:
    alike = [run for run in runs if not run.complete and (run.ending.kind in OUT_OF_TIME) == _timed_out(last)]
    cause = wording.cause(last.ending)
    if len(alike) < 2 and len(runs) < MOST_RUNS_OF_A_MUTANT:
        return Decision(Next.ALONE if _timed_out(last) else Next.AGAIN)
    if _timed_out(last):
        by = () if last.ending.item is None else (function_of(last.ending.item),)
        return Decision(Next.NOTHING, MutantStatus.TIMEOUT, killed_by=by, cause=cause)
    return Decision(Next.NOTHING, MutantStatus.VOID, cause=cause)


def _timed_out(run: RunResult) -> bool:
    return run.ending.kind in OUT_OF_TIME


def _failing(run: RunResult, valid: frozenset[str], known_errors: frozenset[str]) -> tuple[str, ...]:
    """Valid tests that failed in a run, and files that only this variant keeps from being collected."""
    seen = join([run])
    tests = tuple(name for name in seen.failing if name in valid)
    return tests + tuple(path for path in error_paths(seen) if path not in known_errors)


@dataclass(frozen=True)
class Score:
    """killed / total over the mutants that could be built; a timeout counts as killed."""

    killed: int
    total: int
    required_ok: bool

    @property
    def share(self) -> float:
        return self.killed / self.total if self.total else 0.0


CAUGHT = (MutantStatus.KILLED, MutantStatus.TIMEOUT)


def score(decisions: Mapping[str, Decision], required: Sequence[str]) -> Score:
    """Score the mutants, by id."""
    counted = {mid: decision for mid, decision in decisions.items() if decision.status is not MutantStatus.INVALID}
    killed = sum(decision.status in CAUGHT for decision in counted.values())
    required_ok = all(decisions[mid].status in CAUGHT for mid in required if mid in counted)
    return Score(killed, len(counted), required_ok)
