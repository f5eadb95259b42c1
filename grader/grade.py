"""A unit, a submission and a sandbox arrive; the report leaves. The one place where grading meets the sandbox.

    contract -> runs on the student's unit -> calibration -> correct code and mutants, confirmations -> report

Planning (`grader.plan`), judging (`grader.verdicts`, `grader.mutation`) and concluding (`grader.conclude`) are pure;
this module makes the runs they ask for. Failures of ours leave as SandboxError; everything else is in the report.
"""

import secrets
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random

from grader import agreement, conclude, contract, mutation, plan, reach, verdicts
from grader.agreement import OracleSeen
from grader.errors import OracleMissing
from grader.memory import SuiteMemory, key_of
from grader.mutant_runs import Asked, Counts, MutantRuns
from grader.mutation import Decision, Next
from grader.mutation_part import why_not_run
from grader.oracle import Oracle
from grader.plan import STANDARD, Policy, Variant
from grader.priorities import Priorities
from grader.reach import Reach
from grader.report import MutantStatus, Report
from grader.seen import About, MutationSeen, OwnSeen, Seen
from grader.stop import Stop
from grader.submission import Submission
from grader.unit import CourseTest, Unit
from grader.verdicts import SuiteSeen
from sandbox.records import Limits, Module, Run, RunResult, Sandbox, Session

__all__ = ["About", "Progress", "fresh_seed", "grade"]


@dataclass(frozen=True)
class Progress:
    """How far grading is: `done` of `total` runs of this phase."""

    phase: str  # "course_tests" | "calibration" | "mutants" | "confirmation"
    done: int
    total: int


OnProgress = Callable[[Progress], None]


def fresh_seed() -> int:
    """An unpredictable seed that every JSON reader keeps exactly: 53 bits."""
    return secrets.randbits(53)


def grade(
    unit: Unit,
    submission: Submission,
    *,
    sandbox: Sandbox,
    seed: int,
    about: About,
    oracle: Oracle | None = None,
    progress: OnProgress = lambda progress: None,
    stop: Stop | None = None,
    policy: Policy = STANDARD,
    memory: SuiteMemory | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Report:
    """Grade a submission. Everything random derives from `seed`. A unit that has an oracle is not graded without one.
    What `memory` knows of the student's tests is not tried again.

    Raises SandboxError or OracleError when we fail; then nothing is known about the submission. SandboxError also when
    `stop` is told: that ends the sandbox.
    """
    phases = Phases(clock)
    with ExitStack() as stack:
        beside = stack.enter_context(ThreadPoolExecutor(1, "beside"))
        checked = beside.submit(contract.check, unit, submission)
        sessions = stack.enter_context(ExitStack())
        open_session = partial(_session, sessions, sandbox, unit, submission, stop, policy, phases)
        hanging = plan.unsettled(unit, submission)
        runner = Runner(open_session(hanging), seed, progress)
        problems = checked.result()  # found while the session opened
        readable = not any(problem.code in UNREADABLE for problem in problems)
        drawn = beside.submit(draw_cases, unit, oracle, seed) if readable else None
        beside.submit(reach.can_be_asked, unit, submission.tests)  # which remembers it until it is needed
        own = None
        if drawn is not None:
            with phases.time("course_tests"):
                own = run_own_unit(runner, unit, submission, drawn.result, policy)
            beside.submit(agreement.judge, own.oracle)  # the report asks for it
        if hanging:  # the student's tests meet variants in the reference library, whatever else was sent
            sessions.close()  # one sandbox at a time: that is what memory was set aside for
            runner = Runner(open_session(), seed, progress)
        session = runner.session
        memory = memory or SuiteMemory(most=0)
        mutants = memory.seen(
            key_of(unit, submission, session.environment, policy),
            lambda: run_mutation(runner, unit, submission, policy, phases),
        )
        seen = Seen(problems, own, mutants, session.environment)
    return conclude.report(unit, submission, seen, about, seed=seed, phases=phases.seconds, policy=policy)


def _session(
    stack: ExitStack,
    sandbox: Sandbox,
    unit: Unit,
    submission: Submission,
    stop: Stop | None,
    policy: Policy,
    phases: "Phases",
    without: Collection[str] = (),
) -> Session:
    """A session with the suites made ready, and the reference of every other module but those in `without`."""
    with phases.time("sandbox"):
        modules = plan.preload(unit, without)
        likely = (plan.course_suite(unit).folder,)
        session = stack.enter_context(sandbox.session(modules, policy.total_seconds, unit.runtime, likely))
    if stop is not None:
        stop.when_told(session.cancel)
    session.prepare(plan.suites(unit, submission))
    return session


@dataclass
class Phases:
    """Seconds per phase, by an injected clock."""

    clock: Callable[[], float]
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def time(self, phase: str) -> Iterator[Callable[[str], None]]:
        """What this yields turns to another phase."""
        start = self.clock()

        def turn_to(another: str) -> None:
            nonlocal phase, start
            now = self.clock()
            self.seconds[phase] = self.seconds.get(phase, 0.0) + now - start
            phase, start = another, now

        try:
            yield turn_to
        finally:
            turn_to("")


@dataclass(frozen=True)
class Step:
    """A run, and who takes its result."""

    run: Run
    take: Callable[[RunResult], None]


class Runner:
    """Makes batches of runs in the session, reports progress, and takes interrupted suites up again."""

    def __init__(self, session: Session, seed: int, progress: OnProgress) -> None:
        self.session = session
        self.order = Random(f"{seed}/order")  # apart from the ids: how many of these are drawn depends on the runs
        self.ids = plan.RunIds(Random(f"{seed}/ids"))
        self.salts = plan.Salts(seed)
        self._progress = progress

    def tell(self, phase: str, done: int, total: int) -> None:
        self._progress(Progress(phase, done, total))

    def batch(self, phase: str, runs: Sequence[Run]) -> tuple[RunResult, ...]:
        """The results in order."""
        return self.each(phase, runs, len(runs))

    def each(self, phase: str, runs: Iterable[Run], total: int) -> tuple[RunResult, ...]:
        """The results in order, of runs that may depend on those before."""
        done = 0

        def take(result: RunResult) -> None:
            nonlocal done
            done += 1
            self.tell(phase, done, total)

        if total == 0:
            return ()
        self.tell(phase, 0, total)
        return self.session.run(runs, take)

    def stream(self, steps: Iterator[Step | None]) -> None:
        """Make runs one after the other as they are asked for. None says that nothing can be before the next result; it
        is over when there is none to come."""
        under_way: dict[str, Callable[[RunResult], None]] = {}

        def runs() -> Iterator[Run | None]:
            for step in steps:
                if step is not None:
                    under_way[step.run.id] = step.take
                    yield step.run
                elif under_way:
                    yield None
                else:
                    return

        self.session.run(runs(), lambda result: under_way.pop(result.run_id)(result))

    def resumed(
        self,
        phase: str,
        first: RunResult,
        again: Callable[[tuple[str, ...]], Run],
        most: int,
        *,
        goes_on: Callable[[SuiteSeen, RunResult], bool] = verdicts.can_resume,
        tell_limit: bool = True,
    ) -> SuiteSeen:
        """The suite of `first`, taken up while the last run `goes_on`, `most` times: behind tests that ended it, if
        nothing else is said. `again` makes a run that skips items."""
        results = [first]
        seen = verdicts.join(results, tell_limit=tell_limit)
        while len(results) <= most and goes_on(seen, results[-1]):
            results += self.batch(phase, [again(seen.answered)])
            seen = verdicts.join(results, tell_limit=tell_limit)
        return seen

    def driven(self, seen: OracleSeen, again: Callable[[OracleSeen], Run], most: int) -> OracleSeen:
        """The oracle's cases, taken up behind those that ended their run, `most` times."""
        for _ in range(most):
            if seen.next_case == len(seen.trials):
                break
            seen = seen.with_run(*self.batch("course_tests", [again(seen)]))
        return seen


UNREADABLE = ("syntax_error", "too_complex")


def draw_cases(unit: Unit, oracle: Oracle | None, seed: int) -> OracleSeen | None:
    """The oracle's cases for this grading, of which none is answered yet; None for a unit without an oracle."""
    if unit.oracle is None:
        return None
    if oracle is None:
        raise OracleMissing(f"unit {unit.id} has an oracle, and none was given to grade with")
    own_seed = plan.oracle_seed(seed)
    return OracleSeen(own_seed, oracle.trials(unit.oracle, own_seed))


def run_own_unit(
    runner: Runner,
    unit: Unit,
    submission: Submission,
    drawn: Callable[[], OracleSeen | None],
    policy: Policy,
) -> OwnSeen:
    """The course tests, the student's own tests and the oracle's cases on the student's unit.

    `drawn` waits for the cases, which are drawn while the first runs are made. Course tests run together, in one order
    and its reverse; if any does not pass they run by themselves as well, and only those runs count if either of the
    two did not come to its end (decision 0162).
    """
    modules = plan.own_modules(unit, submission)
    limits = plan.budget_limits(unit, policy)
    tests = plan.smoke_first(unit)
    cases = None

    def own_run(skip: tuple[str, ...] = ()) -> Run:
        return plan.suite_run(next(runner.ids), unit, submission.tests, modules, limits, skip=skip)

    def drive(seen: OracleSeen) -> Run:
        left = seen.trials[seen.next_case :]
        return plan.drive_run(next(runner.ids), unit, modules, [trial.case for trial in left])

    def runs() -> Iterator[Run]:
        nonlocal cases
        for number in range(unit.determinism_runs):
            yield plan.course_run(next(runner.ids), unit, modules, *tests[:: -1 if number % 2 else 1])
        yield own_run()
        if (cases := drawn()) is not None:
            yield drive(cases)

    count = unit.determinism_runs + 1 + (unit.oracle is not None)
    results = runner.each("course_tests", runs(), count)
    together, (own, *driven) = results[: unit.determinism_runs], results[unit.determinism_runs :]
    course = course_results(runner, unit, modules, tests, together)
    suite = runner.resumed("course_tests", own, own_run, policy.own_resumes)
    if cases is not None:
        cases = runner.driven(cases.with_run(*driven), drive, policy.oracle_resumes)
    return OwnSeen(course, suite, cases)


def course_results(
    runner: Runner,
    unit: Unit,
    modules: tuple[Module, ...],
    tests: Sequence[CourseTest],
    together: Sequence[RunResult],
) -> dict[str, tuple[RunResult, ...]]:
    """The results of each course test, by name: of the runs `together`, behind one by itself if any test did not pass
    in each; of runs by itself only, if one of those together did not come to its end (decision 0162)."""

    def alone(which: Sequence[CourseTest]) -> tuple[RunResult, ...]:
        return runner.batch("course_tests", [plan.course_run(next(runner.ids), unit, modules, test) for test in which])

    complete = all(result.complete for result in together)
    if complete and verdicts.all_pass(tests, together):
        return {test.name: tuple(together) for test in tests}
    first = alone(tests)
    course: dict[str, tuple[RunResult, ...]] = {test.name: (result,) for test, result in zip(tests, first, strict=True)}
    if complete:
        return {name: (*results, *together) for name, results in course.items()}
    again = [test for test, result in zip(tests, first, strict=True) if result.ending.kind not in verdicts.COSTLY]
    for _ in range(unit.determinism_runs - 1):
        for test, result in zip(again, alone(again), strict=True):
            course[test.name] += (result,)
    return course


def run_mutation(runner: Runner, unit: Unit, submission: Submission, policy: Policy, phases: Phases) -> MutationSeen:
    """The student's tests on correct code and on mutants."""
    with phases.time("calibration"):
        calibration, broken, entered = calibrate(runner, unit, submission, policy)
    stopped = why_not_run(unit, submission, calibration, policy)
    if stopped is not None:
        return MutationSeen(calibration, broken, stopped=stopped)
    variants = VariantRuns(runner, unit, submission, calibration, entered, policy)
    with phases.time("mutants") as turn_to:
        variants.stream(lambda: turn_to("confirmation"))
        turn_to("mutants")
        correct = variants.correct()
        turn_to("confirmation")
        judgements = mutation.judge_tests(calibration, correct)
        decisions = variants.decide(Counts.by(calibration, correct, judgements))
    return MutationSeen(calibration, broken, correct, judgements, decisions, variants.complete)


def calibrate(
    runner: Runner, unit: Unit, submission: Submission, policy: Policy
) -> tuple[SuiteSeen, SuiteSeen, Reach | None]:
    """The suite, uncounted, on the reference, and the forced failure: on a unit in which every call fails.

    Also what each test reaches, if tests can be left out by that: then the reference has marks in it (decision 0235).
    """
    limits = plan.budget_limits(unit, policy)
    reference, broken = plan.reference(unit), plan.broken(unit)
    marked = None
    if policy.few_tests_share and reach.can_be_asked(unit, submission.tests):
        marked = reach.marked(tuple(reference.files.items()))

    def run(variant: Variant, marks: tuple[Module, ...] = (), skip: tuple[str, ...] = ()) -> Run:
        modules = plan.variant_modules(unit, variant, runner.salts.next_for(variant)) + marks
        names = "".join(module.name for module in marks)
        return plan.suite_run(next(runner.ids), unit, submission.tests, modules, limits, skip=skip, marks=names)

    calibrating = run if marked is None else partial(run, marks=(marked.marks,))
    correct = reference if marked is None else marked.variant
    first, failing = runner.batch("calibration", [calibrating(correct), run(broken)])
    return (
        runner.resumed("calibration", first, lambda skip: calibrating(correct, skip=skip), policy.resumes),
        runner.resumed("calibration", failing, lambda skip: run(broken, skip=skip), policy.resumes),
        None if marked is None else reach.of_run(first),
    )


class VariantRuns:
    """The correct versions and the mutants of a unit, and the student's suite against them.

    All first runs are alike but for the code under test (same limits, same settings), in one random order, so that
    nothing tells a test which of them it faces. Where only a few tests reach what a mutant changes, these are tried
    before: if they notice nothing it has survived, and whatever else happens, the mutant gets its first run.

    What mutants need after it is asked for behind the first runs, without waiting for the last of them (decision 0250).
    """

    def __init__(
        self,
        runner: Runner,
        unit: Unit,
        submission: Submission,
        calibration: SuiteSeen,
        entered: Reach | None,
        policy: Policy,
    ) -> None:
        self._runner, self._unit, self._submission, self._policy = runner, unit, submission, policy
        self._calibration, self._calibration_fails = calibration, bool(calibration.failing)
        ended = [name for name, test in calibration.tests.items() if test.ended_run]
        self._out = plan.items_of(ended, calibration.collected)  # they have ended a run on correct code already
        self._seconds = {name: test.seconds for name, test in calibration.tests.items()}
        self._limits: Limits = plan.mutant_limits(calibration.cpu_seconds, policy)
        correct = plan.correct_variants(unit, policy)
        self._mutants = {variant.id: variant for variant in plan.mutants(unit)}
        built = [variant for variant in self._mutants.values() if plan.builds(variant.files)]
        self._order = plan.shuffled([*correct, *built], runner.order)
        self.complete = plan.runs_are_complete(unit, calibration.cpu_seconds, len(self._order), policy)
        self._entered = None if self.complete else entered
        self._with_other = entered is not None  # only then is it known that tests share nothing
        self._categories = {mutant.id: mutant.category for mutant in unit.mutants}
        self._priorities = Priorities(self._seconds)
        self._learns = not self.complete
        self._few_under_way: set[str] = set()
        self._few_noticed: dict[str, RunResult] = {}
        self._survived: dict[str, Decision] = {}
        self._on_correct: dict[int, tuple[Variant, RunResult]] = {}  # by place in the order, as what follows
        self._orders: dict[int, tuple[str, ...]] = {}  # of tests, in which it met correct code
        self._accepted: dict[int, tuple[str, SuiteSeen]] = {}
        self._on_mutants: dict[str, MutantRuns] = {}
        self._unsettled: deque[str] = deque()
        self._counts: Counts | None = None  # to be found out again
        self._first_made = self._first_done = self._further_made = self._further_done = 0

    def _run(
        self,
        variant: Variant,
        *,
        only: tuple[str, ...] = (),
        first: tuple[str, ...] = (),
        skip: tuple[str, ...] = (),
        first_failure: bool = False,
        with_other: bool = False,
    ) -> Run:
        return plan.suite_run(
            next(self._runner.ids),
            self._unit,
            self._submission.tests,
            self._next_rendering(variant),
            self._limits,
            only=only,
            first=first,
            skip=tuple(dict.fromkeys((*self._out, *skip))),
            stop_at_first_failure=first_failure or not self.complete,
            messages=False,
            other_version=self._next_rendering(variant) if with_other else (),
        )

    def _next_rendering(self, variant: Variant) -> tuple[Module, ...]:
        return plan.variant_modules(self._unit, variant, self._runner.salts.next_for(variant))

    def stream(self, confirming: Callable[[], None]) -> None:
        """Run every variant once, but for mutants that have survived already, and as much of what mutants need further
        as can be told while correct code passes. `confirming` is called when all first runs have ended."""
        self._runner.tell("mutants", 0, len(self._order))
        self._runner.stream(self._steps(confirming))

    def _steps(self, confirming: Callable[[], None]) -> Iterator[Step | None]:
        """First runs; behind them, and where they have to wait, further ones."""
        for step in self._first_runs():
            yield step or self._next_further()
        while self._first_done < len(self._order):
            yield self._next_further()
        confirming()
        self._unsettled = deque(filter(self._asked_ahead, self._unsettled))
        self._tell_of_further()
        while True:
            yield self._next_further()

    def _first_runs(self) -> Iterator[Step | None]:
        if self.complete:
            return map(self._first_run, self._order)
        return self._in_two_orders() if self._entered is None else self._in_many_orders(self._entered)

    def _in_two_orders(self) -> Iterator[Step | None]:
        """For tests that may hang on each other: each order is tried on correct code too (decision 0160)."""
        few, rest = plan.pilot(self._order)
        first = self._priorities.order()
        for variant in few:
            yield self._first_run(variant, first)
        while self._first_done < len(few):
            yield None
        self._learns = False
        first = self._priorities.order()
        for variant in rest:
            yield self._first_run(variant, first)

    def _in_many_orders(self, entered: Reach) -> Iterator[Step | None]:
        """For tests that share nothing: to each mutant its own, and to correct code that of any mutant (0247)."""
        yield from self._few_tests(entered)
        for variant in self._order:
            while variant.id in self._few_under_way:
                yield None
            if variant.id in self._survived:
                self._first_ended()
            else:
                yield self._first_run(variant, self._order_for(entered, variant))

    def _order_for(self, entered: Reach, variant: Variant) -> tuple[str, ...]:
        mutants = [each for each in self._order if each.kind == "mutant" and each.id not in self._survived]
        met_as = variant if variant.kind == "mutant" or not mutants else self._runner.order.choice(mutants)
        entering = entered.entering(reach.changed(self._unit, met_as.files))
        return self._priorities.order(self._categories.get(met_as.id), entering)

    def _few_tests(self, entered: Reach) -> Iterator[Step]:
        """Run on mutants the tests that reach them, where these are few (decision 0234)."""
        for variant in self._order:
            changes = reach.changed(self._unit, variant.files) if variant.kind == "mutant" else None
            left_out = entered.spared(changes, self._policy.few_tests_share)
            if left_out is None:
                continue
            if len(left_out) == len(entered.entered):
                self._survived[variant.id] = mutation.survived(None)
                continue
            self._few_under_way.add(variant.id)
            first = self._priorities.order(self._categories[variant.id])
            yield Step(
                self._run(variant, first=first, skip=left_out), partial(self._few_ended, entered, left_out, variant)
            )

    def _few_ended(self, entered: Reach, left_out: tuple[str, ...], variant: Variant, result: RunResult) -> None:
        self._few_under_way.remove(variant.id)
        self._learn(variant, result)
        if entered.is_quiet(result, left_out):
            self._survived[variant.id] = mutation.survived(result)
        else:
            self._few_noticed[variant.id] = result

    def _first_run(self, variant: Variant, first: tuple[str, ...] = ()) -> Step:
        """`first` tests first. Of tests that share nothing the one that fails may do so again at once: correct code
        has another rendering for that too, or whether there is one would tell it from mutants."""
        self._first_made += 1
        ended = self._mutant_ended if variant.kind == "mutant" else partial(self._correct_ended, self._first_made)
        self._orders[self._first_made] = first
        return Step(self._run(variant, first=first, with_other=self._with_other), partial(ended, variant))

    def _mutant_ended(self, variant: Variant, result: RunResult) -> None:
        self._learn(variant, result)
        others = (self._few_noticed.get(variant.id), result.on_other_version)
        self._on_mutants[variant.id] = MutantRuns(result, [other for other in others if other is not None])
        self._unsettled.append(variant.id)
        self._first_ended()

    def _correct_ended(self, place: int, variant: Variant, result: RunResult) -> None:
        self._on_correct[place] = (variant, result)
        seen = verdicts.join([result])
        if result.complete and not seen.failing and not self._goes_on(seen, result):
            self._accepted[place] = (variant.id, seen)
        else:
            self._priorities.saw_correct(result)
        self._counts = None
        self._first_ended()

    def _first_ended(self) -> None:
        self._first_done += 1
        self._runner.tell("mutants", self._first_done, len(self._order))

    def _learn(self, variant: Variant, result: RunResult) -> None:
        if self._learns:
            self._priorities.saw(self._categories[variant.id], result)

    def _asked_ahead(self, mid: str) -> Asked | None:
        """The further run that a mutant needs by what is known now. None is asked for ahead where the suite did not run
        through on some correct code, nor one that must be alone."""
        if self._calibration_fails or len(self._accepted) < len(self._on_correct):
            return None
        if self._counts is None:
            accepted = tuple(self._accepted.values())
            judgements = mutation.judge_tests(self._calibration, accepted)
            self._counts = Counts.by(self._calibration, accepted, judgements)
        asked = self._on_mutants[mid].asked(self._counts)
        return None if asked is None or asked.is_alone else asked

    def _next_further(self) -> Step | None:
        while self._unsettled:
            mid = self._unsettled.popleft()
            if (asked := self._asked_ahead(mid)) is not None:
                self._further_made += 1
                return Step(self._further_run(mid, asked), partial(self._further_ended, mid, asked))
        return None

    def _further_ended(self, mid: str, asked: Asked, result: RunResult) -> None:
        self._on_mutants[mid].add(asked, result)
        self._further_done += 1
        if self._asked_ahead(mid) is not None:
            self._unsettled.append(mid)
        if self._first_done == len(self._order):
            self._tell_of_further()

    def _tell_of_further(self) -> None:
        if total := self._further_made + len(self._unsettled):
            self._runner.tell("confirmation", self._further_done, total)

    def _further_run(self, mid: str, asked: Asked) -> Run:
        return self._run(
            self._mutants[mid],
            only=asked.only,
            first=asked.only,
            skip=asked.skip,
            first_failure=asked.stops_at_first_failure,
        )

    def correct(self) -> list[tuple[str, SuiteSeen]]:
        """What the suite does on each piece of correct code, taken to its end whatever it takes."""
        refused = [place for place, (_, result) in sorted(self._on_correct.items()) if verdicts.fails(result)]
        if refused and not self.complete and self._hangs_on_order(refused):
            self._keep_own_order()
        seen = [
            self._accepted.get(place) or (variant.id, self._to_the_end(variant, result))
            for place, (variant, result) in sorted(self._on_correct.items())
        ]
        return sorted(seen, key=lambda pair: pair[0])

    def _once(self, variants: Sequence[Variant], orders: Sequence[tuple[str, ...]] = ()) -> tuple[RunResult, ...]:
        """Like first runs; in the suite's own order where no other is given."""
        pairs = zip(variants, orders or [()] * len(variants), strict=True)
        batch = [self._run(variant, first=first, with_other=self._with_other) for variant, first in pairs]
        return self._runner.batch("mutants", batch)

    def _hangs_on_order(self, refused: Sequence[int]) -> bool:
        """Whether some correct code is refused again in the order in which it was, and not in the suite's own. Where a
        test has failed by chance, that stands."""
        variants = [self._on_correct[place][0] for place in refused]
        as_before = self._once(variants, [self._orders[place] for place in refused])
        pairs = zip(as_before, self._once(variants), strict=True)
        return any(verdicts.fails(before) and not verdicts.fails(own) for before, own in pairs)

    def _keep_own_order(self) -> None:
        """Some test hangs on those before it: what other orders showed is dropped."""
        found = tuple(zip(self._order, self._once(self._order), strict=True))
        self._survived, self._accepted = {}, {}
        self._on_correct = {place: each for place, each in enumerate(found) if each[0].kind != "mutant"}
        self._on_mutants = {variant.id: MutantRuns(result) for variant, result in found if variant.kind == "mutant"}

    def _to_the_end(self, variant: Variant, first: RunResult) -> SuiteSeen:
        if first.ending.kind in verdicts.OUT_OF_TIME:  # as for a mutant, this is believed only of a run made alone
            [first] = self._once([variant])
        return self._runner.resumed(
            "mutants",
            first,
            lambda skip: self._run(variant, skip=skip),
            self._policy.resumes,
            goes_on=self._goes_on,
            tell_limit=False,
        )

    def _goes_on(self, seen: SuiteSeen, last: RunResult) -> bool:
        """Whether the suite can be taken up where it stopped, be it at a failure although more tests were to come."""
        left = set(seen.unanswered) - set(self._out)
        stopped_early = not self.complete and last.complete and bool(last.record.items) and bool(left)
        return stopped_early or verdicts.can_resume(seen, last)

    def decide(self, counts: Counts) -> dict[str, Decision]:
        """Give every mutant the runs that it still needs until its status is known; ids in the unit's order."""
        while waiting := {mid: asked for mid, runs in self._on_mutants.items() if (asked := runs.asked(counts))}:
            together = {mid: asked for mid, asked in waiting.items() if not asked.is_alone}
            for some in (together, *({mid: asked} for mid, asked in waiting.items() if asked.is_alone)):
                batch = [self._further_run(mid, asked) for mid, asked in some.items()]
                results = self._runner.batch("confirmation", batch)
                for (mid, asked), result in zip(some.items(), results, strict=True):
                    self._on_mutants[mid].add(asked, result)
        decisions = {mid: runs.decision(counts) for mid, runs in self._on_mutants.items()} | self._survived
        invalid = Decision(Next.NOTHING, MutantStatus.INVALID)
        return {mid: decisions.get(mid, invalid) for mid in self._mutants}
