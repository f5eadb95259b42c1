"""The results of runs arrive; what each test did leaves.

A suite can take several runs to give all its answers: a test that hangs or exits ends its run, and a further run takes
the suite up behind it. `join` puts such runs together. Nothing here guesses: a test without an outcome is `not_run`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from grader import compared, wording
from grader.report import Cause, CourseTestPart, CourseTestsPart, Outcome, SuiteRunPart
from grader.unit import CourseTest
from sandbox.records import CollectionError, Ending, EndingKind, ItemOutcome, Limits, RunResult, TestItem, function_of

STANDING_LIMITS = Limits()  # those that planning leaves as they are: memory, processes, disk, files
OUT_OF_TIME = (EndingKind.CPU_TIME, EndingKind.NO_PROGRESS)
COSTLY = (*OUT_OF_TIME, EndingKind.MEMORY)  # to come to again: a test that has ended so once cannot pass any more

_OUTCOMES = {
    ItemOutcome.PASSED: Outcome.PASSED,
    ItemOutcome.FAILED: Outcome.FAILED,
    ItemOutcome.ERROR: Outcome.ERROR,
    ItemOutcome.SKIPPED: Outcome.SKIPPED,
    ItemOutcome.XFAILED: Outcome.SKIPPED,
    ItemOutcome.XPASSED: Outcome.SKIPPED,
}
_WORST_FIRST = (
    Outcome.TIMEOUT,
    Outcome.ERROR,
    Outcome.FAILED,
    Outcome.NOT_RUN,
    Outcome.PASSED,
    Outcome.SKIPPED,
)


@dataclass(frozen=True)
class TestSeen:
    """What one test function did, its parameters taken together. `ended_run` says that its run ended with it;
    `counts` is False for tests marked xfail, whose outcomes say nothing."""

    __test__ = False

    outcome: Outcome
    seconds: float = 0.0
    message: str = ""
    where: str = ""
    cause: Cause | None = None
    ended_run: bool = False
    counts: bool = True

    @property
    def failing(self) -> bool:
        return self.outcome.failing


@dataclass(frozen=True)
class SuiteSeen:
    """What a suite did on one version of the unit, over all the runs it took.

    `tests` is by function, in the order collected. `cause` is set when the last run ended otherwise than by itself and
    no test can be blamed for it (at import, or after the last test).
    """

    tests: Mapping[str, TestSeen]
    collected: tuple[str, ...]
    unanswered: tuple[str, ...]
    errors: tuple[CollectionError, ...]
    ending: EndingKind
    too_slow: bool  # the last run was out of time, and the tests before the one it ended in took most of it
    cause: Cause | None
    cpu_seconds: float

    @property
    def answered(self) -> tuple[str, ...]:
        """Items that need no further run."""
        left = set(self.unanswered)
        return tuple(item for item in self.collected if item not in left)

    @property
    def failing(self) -> tuple[str, ...]:
        """Functions that failed by an outcome of their own, and files that could not be collected."""
        functions = tuple(name for name, test in self.tests.items() if test.failing and test.counts)
        return functions + tuple(error.path for error in self.errors)

    @property
    def shows_failure(self) -> bool:
        """Whether pytest itself saw something fail, as it must on a unit in which every call fails."""
        by_outcome = any(test.failing and test.counts and not test.ended_run for test in self.tests.values())
        return by_outcome or bool(self.errors)

    def count(self, *outcomes: Outcome) -> int:
        return sum(test.outcome in outcomes for test in self.tests.values())


_UNSEEN = TestSeen(Outcome.NOT_RUN)


def join(results: Sequence[RunResult], *, tell_limit: bool = True) -> SuiteSeen:
    """Put the runs of one suite on one version together, in the order they were made; there is at least one.

    `tell_limit` is False where the time limit was measured: such a number differs from one grading to the next.
    """
    items: dict[str, TestSeen] = {}
    for result in results:
        for item in result.record.items:
            items[item.id] = _of_item(item)
        if (item_id := ended_in(result)) is not None:
            items[item_id] = of_ending(result.ending, tell_limit=tell_limit)
    last = results[-1]
    collected = last.record.collected
    if len(results) > 1:
        collected = tuple(dict.fromkeys(item for result in results for item in result.record.collected))
    functions = _by_function(
        collected if items.keys() <= set(collected) else tuple(dict.fromkeys((*collected, *items)))
    )
    explained = last.complete or ended_in(last) is not None
    return SuiteSeen(
        tests={
            function: items.get(ids[0], _UNSEEN)
            if len(ids) == 1
            else _together([items.get(item, _UNSEEN) for item in ids])
            for function, ids in functions
        },
        collected=collected,
        unanswered=tuple(item for item in collected if item not in items),
        errors=tuple({error.path: error for result in results for error in result.record.errors}.values()),
        ending=last.ending.kind,
        too_slow=_suite_too_slow(last),
        cause=None if explained else wording.cause(last.ending, tell_limit=tell_limit),
        cpu_seconds=sum(map(_cpu_seconds, results)),
    )


@lru_cache(maxsize=64)  # every run of a suite has the same ids
def _by_function(item_ids: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Functions, in the order of their first items, with their items."""
    found: dict[str, list[str]] = {}
    for item_id in item_ids:
        found.setdefault(function_of(item_id), []).append(item_id)
    return tuple((function, tuple(ids)) for function, ids in found.items())


def ended_in(result: RunResult) -> str | None:
    """The item to blame for the end of its run. The submission's own deadline is no test's fault."""
    if result.complete or result.ending.kind is EndingKind.DEADLINE:
        return None
    return result.ending.item


def _cpu_seconds(result: RunResult) -> float:
    """CPU seconds that count as the suite's own: a test that ran out of time says nothing of what the others need."""
    if result.ending.kind in OUT_OF_TIME:
        return min(result.usage.cpu_seconds, _answered_seconds(result))
    return result.usage.cpu_seconds


def fails(result: RunResult) -> bool:
    """Whether a run ended otherwise than by itself with nothing failed."""
    return not result.complete or bool(join([result]).failing)


def _answered_seconds(result: RunResult) -> float:
    return sum(item.seconds for item in result.record.items)


def can_resume(seen: SuiteSeen, last: RunResult) -> bool:
    """Whether a further run could answer what this one left open.

    Not when all the tests together used the time up: then it is the suite that is too slow, not the test it ended in.
    """
    return ended_in(last) is not None and bool(seen.unanswered) and not seen.too_slow


def _suite_too_slow(result: RunResult) -> bool:
    if result.ending.kind not in OUT_OF_TIME or result.ending.limit is None:
        return False
    return _answered_seconds(result) >= result.ending.limit / 2


def of_ending(ending: Ending, *, tell_limit: bool = True) -> TestSeen:
    """The outcome of the test whose run ended before it did."""
    cause = wording.cause(ending, tell_limit=tell_limit)
    if ending.kind is EndingKind.DEADLINE:
        return TestSeen(Outcome.NOT_RUN, message=cause.message, cause=cause)
    outcome = Outcome.TIMEOUT if ending.kind in OUT_OF_TIME else Outcome.ERROR
    return TestSeen(outcome, message=cause.message, cause=cause, ended_run=True)


def _of_item(item: TestItem) -> TestSeen:
    cause = wording.resource_cause(item.resource, STANDING_LIMITS) if item.resource is not None else None
    return TestSeen(
        outcome=_OUTCOMES[item.outcome],
        seconds=item.seconds,
        message=item.message,
        where=item.where,
        cause=cause,
        counts=item.outcome not in (ItemOutcome.XFAILED, ItemOutcome.XPASSED),
    )


def _together(seen: Sequence[TestSeen]) -> TestSeen:
    """A function's parameters as one: the worst outcome, with its message, and the time of all."""
    if all(test is _UNSEEN for test in seen):
        return _UNSEEN
    worst = min(seen, key=lambda test: _WORST_FIRST.index(test.outcome))
    return TestSeen(
        outcome=worst.outcome,
        seconds=sum(test.seconds for test in seen),
        message=worst.message,
        where=worst.where,
        cause=worst.cause,
        ended_run=any(test.ended_run for test in seen),
        counts=all(test.counts for test in seen),
    )


def course_tests(
    expected: Sequence[CourseTest], results: Mapping[str, Sequence[RunResult]], *, not_run: str = ""
) -> CourseTestsPart:
    """Judge the course tests: `results` holds, by test name, the runs that it was in. `not_run` says why there are
    none at all. A test passes only if every one of its runs says so."""
    tests = tuple(_course_test(test, results.get(test.name, ()), not_run) for test in expected)
    passed = sum(test.outcome is Outcome.PASSED for test in tests)
    return CourseTestsPart(passed=passed, total=len(tests), tests=tests)


def all_pass(tests: Sequence[CourseTest], results: Sequence[RunResult]) -> bool:
    """Whether each of the course tests has passed in each of these runs, which came to their end."""
    suites = [join([result]) for result in results]
    return all(_said_of(test, suite).outcome is Outcome.PASSED for test in tests for suite in suites)


def _course_test(test: CourseTest, results: Sequence[RunResult], not_run: str) -> CourseTestPart:
    seen = [_seen_in(result, test) for result in results]
    judged = _agreed(seen) if seen else TestSeen(Outcome.NOT_RUN, message=not_run)
    message, arrays = compared.taken_from(judged.message)
    return CourseTestPart(
        id=test.name,
        kind=test.kind,
        outcome=judged.outcome,
        seconds=judged.seconds,
        message=message,
        where=judged.where,
        why=test.why,
        chapter=test.chapter,
        cause=judged.cause,
        compared=arrays,
    )


def _seen_in(result: RunResult, of: CourseTest) -> TestSeen:
    """What a run of course tests says of one."""
    if not result.complete:  # then a reported outcome is not to be believed either
        return of_ending(result.ending)
    return _said_of(of, join([result]))


def _said_of(of: CourseTest, seen: SuiteSeen) -> TestSeen:
    test = seen.tests.get(f"{of.path}::{of.name}")
    if test is not None and test.outcome not in (Outcome.SKIPPED, Outcome.NOT_RUN):
        return test
    if seen.errors:
        error = seen.errors[0]
        return TestSeen(Outcome.ERROR, message=wording.cannot_import(error.message), where=error.where)
    return TestSeen(Outcome.NOT_RUN, message=wording.NOT_RUN)


def _agreed(seen: Sequence[TestSeen]) -> TestSeen:
    """Several runs of one test on one unit must agree: there is nothing random that they do not share. Those that do
    not pass may end in different ways: what is short, such as memory, can run out earlier or later."""
    passed = sum(test.outcome is Outcome.PASSED for test in seen)
    if passed in (0, len(seen)):
        return seen[0]
    first_bad = next(test for test in seen if test.outcome is not Outcome.PASSED)
    message = wording.not_deterministic(passed, len(seen), first_bad.message)
    return TestSeen(Outcome.FAILED, first_bad.seconds, message, first_bad.where, first_bad.cause)


def suite_run_part(variant: str, seen: SuiteSeen) -> SuiteRunPart:
    return SuiteRunPart(
        variant=variant,
        ending=seen.ending.value,
        passed=seen.count(Outcome.PASSED),
        failed=seen.count(Outcome.FAILED, Outcome.ERROR, Outcome.TIMEOUT) + len(seen.errors),
        skipped=seen.count(Outcome.SKIPPED),
        cause=seen.cause,
    )
