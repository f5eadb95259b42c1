"""A unit, a submission and a sandbox arrive; the report leaves. The one place where grading meets the sandbox.

    contract -> runs on the student's unit -> calibration -> correct code and mutants -> confirmations -> report

Planning (`grader.plan`), judging (`grader.verdicts`, `grader.mutation`) and concluding (`grader.conclude`) are pure;
this module makes the runs they ask for. Failures of ours leave as SandboxError; everything else is in the report.
"""

import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random

from grader import agreement, conclude, contract, mutation, plan, reach, verdicts
from grader.agreement import OracleSeen
from grader.errors import OracleMissing
from grader.memory import SuiteMemory, key_of
from grader.mutation import Decision, Judgement, Next
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
        likely = (plan.course_suite(unit).code,)
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
    def time(self, phase: str) -> Iterator[None]:
        start = self.clock()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + self.clock() - start


class Runner:
    """Makes batches of runs in the session, reports progress, and takes interrupted suites up again."""

    def __init__(self, session: Session, seed: int, progress: OnProgress) -> None:
        self.session = session
        self.order = Random(f"{seed}/order")  # apart from the ids: how many of these are drawn depends on the runs
        self.ids = plan.RunIds(Random(f"{seed}/ids"))
        self.salts = plan.Salts(seed)
        self._progress = progress

    def batch(self, phase: str, runs: Sequence[Run]) -> tuple[RunResult, ...]:
        """The results in order."""
        return self.each(phase, runs, len(runs))

    def each(
        self,
        phase: str,
        runs: Iterable[Run],
        total: int | None,
        on_result: Callable[[RunResult], None] = lambda result: None,
    ) -> tuple[RunResult, ...]:
        """The results in order, of runs that may depend on those before. Where their number says something of the
        variants no `total` is given, and nobody is told of progress."""
        done = 0

        def take(result: RunResult) -> None:
            nonlocal done
            done += 1
            on_result(result)
            if total is not None:
                self._progress(Progress(phase, done, total))

        if total == 0:
            return ()
        if total is not None:
            self._progress(Progress(phase, 0, total))
        return self.session.run(runs, take)

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
    and its reverse; those that did not pass run by themselves as well, and all do if either run did not come to its end
    (decision 0162).
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
    course = run_by_themselves(runner, unit, modules, tests, together)
    suite = runner.resumed("course_tests", own, own_run, policy.own_resumes)
    if cases is not None:
        cases = runner.driven(cases.with_run(*driven), drive, policy.oracle_resumes)
    return OwnSeen(course, suite, cases)


def run_by_themselves(
    runner: Runner,
    unit: Unit,
    modules: tuple[Module, ...],
    tests: Sequence[CourseTest],
    together: Sequence[RunResult],
) -> dict[str, tuple[RunResult, ...]]:
    """The results of each course test, by name: its runs by itself first, if it needs any, and those `together`."""

    def alone(which: Sequence[CourseTest]) -> tuple[RunResult, ...]:
        return runner.batch("course_tests", [plan.course_run(next(runner.ids), unit, modules, test) for test in which])

    if all(result.complete for result in together):
        in_doubt = [test for test in tests if not verdicts.passes_in_all(test, together)]
        said = dict(zip(in_doubt, alone(in_doubt), strict=True))
        return {test.name: (*([said[test]] if test in said else []), *together) for test in tests}
    first = alone(tests)
    course: dict[str, tuple[RunResult, ...]] = {test.name: (result,) for test, result in zip(tests, first, strict=True)}
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
    with phases.time("mutants"):
        correct, first_runs = variants.first_runs()
    judgements = mutation.judge_tests(calibration, correct)
    known_errors = frozenset(mutation.known_errors(calibration, correct))
    with phases.time("confirmation"):
        decisions = variants.decide(first_runs, judgements, known_errors)
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
        ended = [name for name, test in calibration.tests.items() if test.ended_run]
        self._out = plan.items_of(ended, calibration.collected)  # they have ended a run on correct code already
        self._seconds = {name: test.seconds for name, test in calibration.tests.items()}
        self._limits: Limits = plan.mutant_limits(calibration.cpu_seconds, policy)
        self._correct = plan.correct_variants(unit, policy)
        self._mutants = {variant.id: variant for variant in plan.mutants(unit)}
        self._built = [variant for variant in self._mutants.values() if plan.builds(variant.files)]
        count = len(self._correct) + len(self._built)
        self.complete = plan.runs_are_complete(unit, calibration.cpu_seconds, count, policy)
        self._entered = None if self.complete else entered
        self._categories = {mutant.id: mutant.category for mutant in unit.mutants}
        self._priorities = Priorities(self._seconds)
        self._survived: dict[str, Decision] = {}

    def _run(
        self,
        variant: Variant,
        *,
        only: tuple[str, ...] = (),
        first: tuple[str, ...] = (),
        skip: tuple[str, ...] = (),
        first_failure: bool = False,
    ) -> Run:
        return plan.suite_run(
            next(self._runner.ids),
            self._unit,
            self._submission.tests,
            plan.variant_modules(self._unit, variant, self._runner.salts.next_for(variant)),
            self._limits,
            only=only,
            first=first,
            skip=tuple(dict.fromkeys((*self._out, *skip))),
            stop_at_first_failure=first_failure or not self.complete,
            messages=False,
        )

    def first_runs(self) -> tuple[list[tuple[str, SuiteSeen]], dict[str, list[RunResult]]]:
        """Every variant once, but for mutants that have survived already; correct ones are taken to the end of the
        suite whatever it takes."""
        order = plan.shuffled([*self._correct, *self._built], self._runner.order)
        correct: list[tuple[str, SuiteSeen]] = []
        mutants: dict[str, list[RunResult]] = {}
        for variant, results in self._once(order) if self.complete else self._to_first_failure(order):
            if variant.kind == "mutant":
                mutants[variant.id] = results
            else:
                correct.append((variant.id, self._to_the_end(variant, results[0])))
        return sorted(correct, key=lambda pair: pair[0]), mutants

    def _once(self, order: Sequence[Variant], first: tuple[str, ...] = ()) -> list[tuple[Variant, list[RunResult]]]:
        """Each variant once, `first` tests first."""
        results = self._runner.batch("mutants", [self._run(variant, first=first) for variant in order])
        return [(variant, [result]) for variant, result in zip(order, results, strict=True)]

    def _to_first_failure(self, order: Sequence[Variant]) -> list[tuple[Variant, list[RunResult]]]:
        """Each variant once, those tests first that catch most for what they cost."""
        if self._entered is None:
            tried: dict[str, RunResult] = {}
            found = self._in_two_orders(order)
        else:
            tried = self._try_few_tests(self._entered, order)
            found = self._in_many_orders(self._entered, [each for each in order if each.id not in self._survived])
        refused = [variant for variant, [result] in found if variant.kind != "mutant" and verdicts.fails(result)]
        if refused and not all(verdicts.fails(result) for _, [result] in self._once(refused)):
            self._survived.clear()
            return self._once(order)  # some test hangs on those before it: the suite keeps its own order
        for variant, results in found:
            if variant.id in tried and mutation.agree(results[0], tried[variant.id]):
                results.append(tried[variant.id])
        return found

    def _in_two_orders(self, order: Sequence[Variant]) -> list[tuple[Variant, list[RunResult]]]:
        """For tests that may hang on each other: each order is tried on correct code too (decision 0160)."""
        few, rest = plan.pilot(order)
        found = self._once(few, self._priorities.order())
        for variant, [result] in found:
            self._learn(variant, result)
        return found + self._once(rest, self._priorities.order())

    def _in_many_orders(self, entered: Reach, order: Sequence[Variant]) -> list[tuple[Variant, list[RunResult]]]:
        """For tests that share nothing: to each mutant its own, and to correct code that of any mutant (0247)."""
        mutants = [variant for variant in order if variant.kind == "mutant"]

        def first_of(variant: Variant) -> tuple[str, ...]:
            met_as = variant if variant.kind == "mutant" or not mutants else self._runner.order.choice(mutants)
            entering = entered.entering(reach.changed(self._unit, met_as.files))
            return self._priorities.order(self._categories.get(met_as.id), entering)

        results = self._one_by_one(order, lambda variant: self._run(variant, first=first_of(variant)), len(order))
        return [(variant, [result]) for variant, result in zip(order, results, strict=True)]

    def _one_by_one(
        self, order: Sequence[Variant], run_of: Callable[[Variant], Run], told: int | None
    ) -> tuple[RunResult, ...]:
        """A run of each variant, made out when its turn has come, from what was learned until then."""
        under_way: dict[str, Variant] = {}

        def runs() -> Iterator[Run]:
            for variant in order:
                run = run_of(variant)
                under_way[run.id] = variant
                yield run

        def take(result: RunResult) -> None:
            self._learn(under_way.pop(result.run_id), result)

        return self._runner.each("mutants", runs(), told, take)

    def _learn(self, variant: Variant, result: RunResult) -> None:
        if variant.kind == "mutant":
            self._priorities.saw(self._categories[variant.id], result)
        else:
            self._priorities.saw_correct(result)

    def _try_few_tests(self, entered: Reach, order: Sequence[Variant]) -> dict[str, RunResult]:
        """Run on mutants the tests that reach them, where these are few; note those that survived, and return the runs
        of the others (decision 0234)."""
        spared: dict[str, tuple[str, ...]] = {}
        for variant in order:
            changes = reach.changed(self._unit, variant.files) if variant.kind == "mutant" else None
            if (left_out := entered.spared(changes, self._policy.few_tests_share)) is not None:
                spared[variant.id] = left_out
        unreached = [mid for mid, left_out in spared.items() if len(left_out) == len(entered.entered)]
        self._survived = {mid: mutation.survived(None) for mid in unreached}
        variants = [self._mutants[mid] for mid in spared if mid not in self._survived]

        def run_of(variant: Variant) -> Run:
            first = self._priorities.order(self._categories[variant.id])
            return self._run(variant, first=first, skip=spared[variant.id])

        found: dict[str, RunResult] = {}
        for variant, result in zip(variants, self._one_by_one(variants, run_of, None), strict=True):
            if entered.is_quiet(result, spared[variant.id]):
                self._survived[variant.id] = mutation.survived(result)
            else:
                found[variant.id] = result
        return found

    def _to_the_end(self, variant: Variant, first: RunResult) -> SuiteSeen:
        if first.ending.kind in verdicts.OUT_OF_TIME:  # as for a mutant, this is believed only of a run made alone
            [first] = self._runner.batch("mutants", [self._run(variant)])
        return self._runner.resumed(
            "mutants",
            first,
            lambda skip: self._run(variant, skip=skip),
            self._policy.resumes,
            goes_on=lambda seen, last: verdicts.can_resume(seen, last) or self._stopped_early(seen, last),
            tell_limit=False,
        )

    def _stopped_early(self, seen: SuiteSeen, last: RunResult) -> bool:
        """Whether the suite stopped at a failure although more tests were to come."""
        left = set(seen.unanswered) - set(self._out)
        return not self.complete and last.complete and bool(last.record.items) and bool(left)

    def decide(
        self,
        first_runs: Mapping[str, list[RunResult]],
        judgements: Mapping[str, Judgement],
        known_errors: frozenset[str],
    ) -> dict[str, Decision]:
        """Give every mutant the runs it needs until its status is known; ids in the unit's order."""
        valid = frozenset(name for name, judgement in judgements.items() if judgement.valid)
        refused = tuple(name for name, judgement in judgements.items() if not judgement.valid)
        runs = {mid: list(results) for mid, results in first_runs.items()}
        decisions = {mid: mutation.decide(results, valid, known_errors) for mid, results in runs.items()}
        decisions |= self._survived
        while waiting := {mid: each for mid, each in decisions.items() if each.next is not Next.NOTHING}:
            for mid, result in self._next_runs(waiting, refused, first_runs):
                runs[mid].append(result)
                decisions[mid] = mutation.decide(runs[mid], valid, known_errors)
        invalid = Decision(Next.NOTHING, MutantStatus.INVALID)
        return {mid: decisions.get(mid, invalid) for mid in self._mutants}

    def _next_runs(
        self,
        waiting: Mapping[str, Decision],
        refused: tuple[str, ...],
        first_runs: Mapping[str, list[RunResult]],
    ) -> Iterator[tuple[str, RunResult]]:
        together = {mid: each for mid, each in waiting.items() if each.next is not Next.ALONE}
        batch = [self._again(mid, each, refused, first_runs) for mid, each in together.items()]
        yield from zip(together, self._runner.batch("confirmation", batch), strict=True)
        for mid, each in waiting.items():
            if each.next is Next.ALONE:
                [result] = self._runner.batch("confirmation", [self._again(mid, each, refused, first_runs)])
                yield mid, result

    def _again(
        self, mid: str, decision: Decision, refused: tuple[str, ...], first_runs: Mapping[str, list[RunResult]]
    ) -> Run:
        """A further run of a mutant, without the tests whose failures do not count."""
        collected = first_runs[mid][0].record.collected
        skip = (*plan.items_of(refused, collected), *decision.skip)
        confirming = decision.next is Next.CONFIRM and bool(decision.only)
        return self._run(
            self._mutants[mid], only=decision.only, first=decision.only, skip=skip, first_failure=confirming
        )
