"""What the student's suite did on correct code and on mutants arrives; which tests are valid and which mutants are
killed leaves. The rules are those of docs/grading-rules.md; all functions are pure.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from grader import wording
from grader.plan import REFERENCE
from grader.report import Cause, Cell, MutantStatus, Outcome
from grader.verdicts import OUT_OF_TIME, SuiteSeen, TestSeen, join
from sandbox.records import EndingKind, ItemOutcome, RunResult, function_of

MOST_RUNS_OF_A_MUTANT = 6


@dataclass(frozen=True)
class Judgement:
    """One test function, or a file that could not be collected, against correct code: on how many runs it passed, and
    the variants it rejected.

    `flaky` says that it passed and failed on the very same code. `silent` marks what says nothing: skipped, marked
    xfail, or not run to an outcome on some of the runs.
    """

    passed: int
    total: int
    rejected: tuple[str, ...] = ()
    flaky: bool = False
    silent: bool = False

    @property
    def invalid(self) -> bool:
        return bool(self.rejected) or self.flaky

    @property
    def valid(self) -> bool:
        return not self.silent and not self.invalid


Correct = Sequence[tuple[str, SuiteSeen]]
"""What the suite did on each piece of correct code, with the variant's id."""


def judge_tests(calibration: SuiteSeen, correct: Correct) -> dict[str, Judgement]:
    """Hold every test against correct code, by name; files that could not be collected stand under their path.

    The calibration run is not counted, but it was correct code too: a test that failed there only is flaky, and one
    that ended that run is not run again and rejects everything.
    """
    suites = [calibration, *(suite for _, suite in correct)]
    names = dict.fromkeys(name for suite in suites for name in suite.tests)
    judged = {name: _judge(name, calibration, correct) for name in names}
    return judged | {path: _judge_file(path, correct) for path in known_errors(calibration, correct)}


def error_paths(suite: SuiteSeen) -> tuple[str, ...]:
    """Files of the suite that could not be collected."""
    return tuple(error.path for error in suite.errors)


def known_errors(calibration: SuiteSeen, correct: Correct) -> tuple[str, ...]:
    """Files that could not be collected on some correct code."""
    suites = [calibration, *(suite for _, suite in correct)]
    return tuple(dict.fromkeys(path for suite in suites for path in error_paths(suite)))


def _judge(name: str, calibration: SuiteSeen, correct: Correct) -> Judgement:
    first = calibration.tests.get(name, TestSeen(Outcome.NOT_RUN))
    if first.ended_run:
        return Judgement(0, len(correct), rejected=tuple(dict.fromkeys(variant for variant, _ in correct)))
    seen = [(variant, suite.tests.get(name, TestSeen(Outcome.NOT_RUN))) for variant, suite in correct]
    everything = [first, *(test for _, test in seen)]
    on_reference = [first, *(test for variant, test in seen if variant == REFERENCE)]
    marked = not all(test.counts for test in everything)  # xfail: whatever it did says nothing
    failed = any(test.failing for test in on_reference)
    return Judgement(
        passed=sum(test.outcome is Outcome.PASSED for _, test in seen),
        total=len(correct),
        rejected=() if marked else tuple(dict.fromkeys(variant for variant, test in seen if test.failing)),
        flaky=not marked and failed and not all(test.failing for test in on_reference),
        silent=marked or not all(test.outcome is Outcome.PASSED or test.failing for test in everything),
    )


def _judge_file(path: str, correct: Correct) -> Judgement:
    rejected = [variant for variant, suite in correct if path in error_paths(suite)]
    loads_sometimes = 0 < rejected.count(REFERENCE) < sum(variant == REFERENCE for variant, _ in correct)
    unique = tuple(dict.fromkeys(rejected)) or (REFERENCE,)  # on the calibration run alone
    return Judgement(len(correct) - len(rejected), len(correct), unique, flaky=loads_sometimes or not rejected)


class Next(Enum):
    """What a mutant needs next."""

    NOTHING = auto()
    CONFIRM = auto()  # the tests that failed, once more
    CONTINUE = auto()  # the tests not yet answered
    AGAIN = auto()  # the whole suite once more
    ALONE = auto()  # the whole suite once more, with nothing beside it


@dataclass(frozen=True)
class Decision:
    """What is known of a mutant after the runs so far: its status if `next` is NOTHING, otherwise what to run. `cells`
    is then what each test did, and each file that could not be collected."""

    next: Next
    status: MutantStatus = MutantStatus.SURVIVED
    killed_by: tuple[str, ...] = ()
    cause: Cause | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    cells: Mapping[str, Cell] = field(default_factory=dict)


def decide(runs: Sequence[RunResult], valid: frozenset[str], known_errors: frozenset[str]) -> Decision:
    """Decide a mutant from its first run, those that confirm it already, and further ones in order, each made as the
    decision before it asked. `valid` are the tests whose failures count; `known_errors` are files that cannot be
    collected on correct code either.

    Killed needs two complete runs in which the same test fails; every test that failed is then named, since the second
    run stops where the kill is certain. Out of time needs two runs on end, the second alone; any other ending is void
    after two. A failure that does not come again is no kill.
    """
    decision = _decide(runs, valid, known_errors)
    return decision if decision.next is not Next.NOTHING else replace(decision, cells=_cells_of_mutant(runs, decision))


def survived(run: RunResult | None) -> Decision:
    """Of a mutant that the tests which reach it, if there are any, did not notice (decision 0234)."""
    return Decision(Next.NOTHING, MutantStatus.SURVIVED, cells={} if run is None else cells(join([run])))


def agree(one: RunResult, other: RunResult, valid: frozenset[str], known_errors: frozenset[str]) -> bool:
    """Whether something that counts failed in both runs."""
    if not (one.complete and other.complete):
        return False
    first, second = (_failing(run, valid, known_errors) for run in (one, other))
    return not set(first).isdisjoint(second)


def _decide(runs: Sequence[RunResult], valid: frozenset[str], known_errors: frozenset[str]) -> Decision:
    last = runs[-1]
    if last.ending.kind is EndingKind.DEADLINE:
        return Decision(Next.NOTHING, MutantStatus.VOID, cause=wording.cause(last.ending))
    if not last.complete:
        return _after_bad_ending(runs)
    complete = [run for run in runs if run.complete]
    failures = [_failing(run, valid, known_errors) for run in complete]
    count = Counter(name for names in failures for name in names)
    if any(times > 1 for times in count.values()):
        return Decision(Next.NOTHING, MutantStatus.KILLED, killed_by=tuple(count))
    if len(runs) >= MOST_RUNS_OF_A_MUTANT:
        return Decision(Next.NOTHING, MutantStatus.SURVIVED)
    if fresh := tuple(name for name in failures[-1] if name not in _answered(complete[:-1])):
        by_file = any(name not in valid for name in fresh)
        return Decision(Next.CONFIRM, only=() if by_file else _quickest_first(fresh, last))
    seen = join(complete)
    left = {item for item in seen.unanswered if function_of(item) in valid}
    if left and last.record.items:
        return Decision(Next.CONTINUE, skip=tuple(item for item in seen.collected if item not in left))
    return Decision(Next.NOTHING, MutantStatus.SURVIVED)


def _quickest_first(names: Iterable[str], run: RunResult) -> tuple[str, ...]:
    """The next run stops at the first of them that fails again."""
    seconds: dict[str, float] = defaultdict(float)
    for item in run.record.items:
        seconds[item.function] += item.seconds
    return tuple(sorted(names, key=seconds.__getitem__))


def _after_bad_ending(runs: Sequence[RunResult]) -> Decision:
    last = runs[-1]
    cause = wording.cause(last.ending, tell_limit=False)
    if _timed_out(last) and len(runs) > 1 and _timed_out(runs[-2]):  # after the first, this one was alone
        by = () if last.ending.item is None else (function_of(last.ending.item),)
        return Decision(Next.NOTHING, MutantStatus.TIMEOUT, killed_by=by, cause=cause)
    bad = sum(not run.complete and not _timed_out(run) for run in runs)
    if bad > 1 or len(runs) >= MOST_RUNS_OF_A_MUTANT:
        return Decision(Next.NOTHING, MutantStatus.VOID, cause=cause)
    return Decision(Next.ALONE if _timed_out(last) else Next.AGAIN)


def _timed_out(run: RunResult) -> bool:
    return run.ending.kind in OUT_OF_TIME


def _failing(run: RunResult, valid: frozenset[str], known_errors: frozenset[str]) -> tuple[str, ...]:
    """Valid tests that failed in a run, and files that only this variant keeps from being collected."""
    seen = join([run])
    tests = tuple(name for name, test in seen.tests.items() if name in valid and test.failing and test.counts)
    return tuple(dict.fromkeys((*tests, *(path for path in error_paths(seen) if path not in known_errors))))


def _answered(runs: Sequence[RunResult]) -> set[str]:
    """Tests with an outcome, and files that could not be collected: a further failure in these is nothing new."""
    if not runs:
        return set()
    seen = join(runs)
    return {name for name, test in seen.tests.items() if test.outcome is not Outcome.NOT_RUN} | set(error_paths(seen))


_CELLS = {
    Outcome.PASSED: Cell.PASS,
    Outcome.FAILED: Cell.FAIL,
    Outcome.ERROR: Cell.ERROR,
    Outcome.TIMEOUT: Cell.TIMEOUT,
    Outcome.SKIPPED: Cell.SKIPPED,
    Outcome.NOT_RUN: Cell.NOT_RUN,
}
_FAILED_ITEMS = {ItemOutcome.FAILED: Cell.FAIL, ItemOutcome.ERROR: Cell.ERROR}


def cells(suite: SuiteSeen) -> dict[str, Cell]:
    """What each test did on a version of the unit, by name; files that could not be collected are errors."""
    tests = {name: _CELLS[test.outcome] if test.counts else Cell.SKIPPED for name, test in suite.tests.items()}
    return tests | dict.fromkeys(error_paths(suite), Cell.ERROR)


def _cells_of_mutant(runs: Sequence[RunResult], decision: Decision) -> dict[str, Cell]:
    """Over all runs: a failure is not undone by a later pass, time over in a run that was not alone is."""
    last = cells(join(runs))
    failed_once = {
        name: _FAILED_ITEMS[item.outcome]
        for run in runs
        for item in run.record.items
        if item.outcome in _FAILED_ITEMS and last.get(name := function_of(item.id)) is not Cell.SKIPPED
    }
    caught = Cell.TIMEOUT if decision.status is MutantStatus.TIMEOUT else Cell.KILL
    return last | failed_once | dict.fromkeys(decision.killed_by, caught)


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
