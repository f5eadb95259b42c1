"""A student's suite that is a table: (variant, test) -> what the test does there. It answers runs as a sandbox would.

Everything it says beside code that is not the student's own carries SECRET, so that a leak can be seen.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, auto
from random import Random

from grader.grade import grade
from grader.plan import STANDARD, Policy
from grader.report import MutantStatus, Report
from grader.seen import About
from grader.submission import Submission
from grader.unit import Freedom, Mutant, Unit, Wheat
from sandbox.records import (
    CollectionError,
    Ending,
    EndingKind,
    FakeSandbox,
    FakeSession,
    File,
    ItemOutcome,
    Record,
    Run,
    RunResult,
    Stream,
    TestItem,
    Usage,
)

SECRET = "SECRET"
OWN_WORDS = "said on own code"
ABOUT = About(id="one", course="default", student="ada", received_at=datetime(2026, 1, 1, tzinfo=UTC))


class Act(Enum):
    """What a test does on a variant."""

    PASS = auto()
    FAIL = auto()
    ERROR = auto()
    SKIP = auto()
    XFAIL = auto()
    HANG = auto()
    SLEEP = auto()
    EXHAUST = auto()  # the container's memory
    EXIT = auto()
    CRASH = auto()
    FLAKY = auto()
    COIN = auto()  # a failure in one of ten runs
    ABSENT = auto()  # not collected


ENDS_RUN = {
    Act.HANG: EndingKind.CPU_TIME,
    Act.SLEEP: EndingKind.NO_PROGRESS,
    Act.EXHAUST: EndingKind.MEMORY,
    Act.EXIT: EndingKind.EARLY_EXIT,
    Act.CRASH: EndingKind.SIGNAL,
}
OUTCOMES = {
    Act.PASS: ItemOutcome.PASSED,
    Act.FAIL: ItemOutcome.FAILED,
    Act.ERROR: ItemOutcome.ERROR,
    Act.SKIP: ItemOutcome.SKIPPED,
    Act.XFAIL: ItemOutcome.XFAILED,
}
FAILING = (ItemOutcome.FAILED, ItemOutcome.ERROR)


def a_unit(base: Unit, mutants: Iterable[str] = (), wheats: int = 5, required: Iterable[str] = ()) -> Unit:
    """`base` with the mutants named and so many wheats, whose code differs from the reference by one constant."""
    [file] = base.files
    required = tuple(required)

    def variant(name: str) -> Mapping[str, bytes]:
        return {file.path: file.reference + f"\nVARIANT = '{name}'\n".encode()}

    return replace(
        base,
        mutants=tuple(
            Mutant(
                *(mid, "semantic", "op", 1, mid in required, f"hint {mid}", f"fault {mid}", "scale", variant(mid)),
                ordered=(f"hint {mid}", f"second hint {mid}"),
            )
            for mid in mutants
        ),
        required_mutants=required,
        wheats=tuple(Wheat(f"w{n:02}", variant(f"w{n:02}")) for n in range(1, wheats + 1)),
        freedoms=(Freedom("order", "The order of factors is free.", ("w01",)),),
    )


@dataclass
class SimulatedSuite:
    """`acts` is by variant ("own", "reference", "broken", a wheat's or mutant's id), then by test ("test_a" or
    "test_a[x]"). What is not in it passes, and fails on the broken unit. `file_errors` names variants on which the
    file cannot be collected, `class_errors` those on which a class of a name made while running cannot,
    `ends_at_import` how the whole run ends on a variant. `made_beside` are tests made while running, on all code but
    the student's; `backwards_beside` turns the order of tests round there, `seconds_beside` is what a test takes.
    `needs` names for a test another that must have run before it, or it fails. `enters` are the blocks of the
    reference, as bits, that tests report where marks are asked for; None where they report none. `goes_on` says that
    what fails is run on the other version of a run that has one."""

    unit: Unit
    tests: tuple[str, ...]
    acts: Mapping[str, Mapping[str, Act]] = field(default_factory=dict)
    file_errors: frozenset[str] = frozenset()
    class_errors: frozenset[str] = frozenset()
    made_beside: tuple[str, ...] = ()
    backwards_beside: bool = False
    seconds_beside: float = 0.001
    ends_at_import: Mapping[str, EndingKind] = field(default_factory=dict)
    test_seconds: float = 0.001
    needs: Mapping[str, str] = field(default_factory=dict)
    enters: Mapping[str, int] | None = None
    goes_on: bool = False
    coins_on_correct: int = 0
    random: Random = field(default_factory=lambda: Random(7))
    file: str = "test_mine.py"
    runs_left: int = 10**9
    """runs after which the submission's time is over"""
    log: list[tuple[str, Run]] = field(default_factory=list)

    def submission(self) -> Submission:
        [unit_file] = self.unit.files
        functions = dict.fromkeys(test.partition("[")[0] for test in self.tests)
        source = "from tinyllm.demo.double import Double\n" + "".join(f"\n\ndef {name}(): ...\n" for name in functions)
        own = unit_file.reference + b"\nVARIANT = 'own'\n"
        return Submission(self.unit.id, {unit_file.path: own}, (File(self.file, source.encode()),))

    def grade(
        self,
        seed: int = 1,
        policy: Policy = STANDARD,
        submission: Submission | None = None,
        sandbox: FakeSandbox | None = None,
    ) -> Report:
        sent = submission or self.submission()
        sandbox = sandbox or FakeSandbox(self.answer)
        return grade(self.unit, sent, sandbox=sandbox, seed=seed, about=ABOUT, policy=policy, clock=lambda: 0.0)

    def answer(self, run: Run) -> RunResult:
        variant = self.variant_of(run)
        self.log.append((variant, run))
        if len(self.log) > self.runs_left:
            return RunResult(run.id, Ending(EndingKind.DEADLINE))
        if run.suite.only and run.modules[0].source_visible:
            return self._course(run)
        words = OWN_WORDS if variant == "own" else f"{SECRET} {variant}"
        stream = Stream(words, len(words))
        if variant in self.ends_at_import:
            return RunResult(run.id, Ending(self.ends_at_import[variant], seen=7, detail=words), stdout=stream)
        if variant in self.file_errors:
            error = CollectionError(self.file, f"ImportError: {words}", f"{words}:1")
            return RunResult(run.id, Ending(EndingKind.COMPLETE), Record(errors=(error,)), stream, stream)
        return self._suite(run, variant, words)

    def variant_of(self, run: Run) -> str:
        module = run.modules[0]
        if b"fails at every call" in module.source:
            return "broken"
        named = re.search(rb"VARIANT = '(.+)'", module.source)
        return named[1].decode() if named else "reference"

    def _act(self, variant: str, test: str) -> Act:
        table = self.acts.get(variant, {})
        default = Act.FAIL if variant == "broken" else self.acts.get("*", {}).get(test, Act.PASS)
        act = table.get(test, default)
        if act is Act.COIN:
            act = Act.FAIL if self.random.random() < 0.1 else Act.PASS
            self.coins_on_correct += act is Act.FAIL and variant[0] in "rw"
        return self.random.choice((Act.PASS, Act.FAIL)) if act is Act.FLAKY else act

    def _suite(self, run: Run, variant: str, words: str) -> RunResult:
        beside = variant != "own"
        tests = (*self.tests, *self.made_beside) if beside else self.tests
        tests = tests[::-1] if beside and self.backwards_beside else tests
        seconds = self.seconds_beside if beside else self.test_seconds
        acts = {f"{self.file}::{test}": self._act(variant, test) for test in tests}
        acts = {item: act for item, act in acts.items() if act is not Act.ABSENT}
        items: list[TestItem] = []
        ending = Ending(EndingKind.COMPLETE)
        places = {function: place for place, function in enumerate(run.suite.first)}
        ran: set[str] = set()
        for item, act in sorted(acts.items(), key=lambda pair: places.get(pair[0].partition("[")[0], len(places))):
            if item in run.suite.skip or (run.suite.only and item.partition("[")[0] not in run.suite.only):
                continue
            name = item.partition("::")[2]
            if self.needs.get(name, name) not in {*ran, name}:
                act = Act.FAIL
            ran.add(name)
            if act in ENDS_RUN:
                limit = run.limits.cpu_seconds if act is Act.HANG else run.limits.wall_seconds
                timed = act in (Act.HANG, Act.SLEEP)
                ending = Ending(ENDS_RUN[act], item, limit if timed else None, 9.0, words)
                break
            told = "" if act is Act.PASS else f"AssertionError: {words}"
            where = f"{words}:3" if told else ""
            marked = self.enters.get(name, 0) if run.suite.marks and self.enters is not None else None
            items.append(TestItem(item, OUTCOMES[act], seconds, told, where, marked=marked))
            if run.suite.stop_at_first_failure and act in (Act.FAIL, Act.ERROR):
                break
        used = sum(item.seconds for item in items)
        stream = Stream(words, len(words))
        errors = (CollectionError(f"{self.file}::{SECRET}Class", words, words),) if variant in self.class_errors else ()
        record = Record(tuple(acts), tuple(items), errors)
        result = RunResult(run.id, ending, record, stream, stream, Usage(used, used, 1))
        failed = tuple(dict.fromkeys(item.function for item in items if item.outcome in FAILING))
        if self.goes_on and run.other_version and result.complete and failed:
            suite = replace(run.suite, only=failed, first=failed, stop_at_first_failure=True)
            run = replace(run, task=suite, modules=run.other_version, other_version=())
            result = replace(result, on_other_version=self._on_other_version(run, words))
        return result

    def _on_other_version(self, run: Run, words: str) -> RunResult:
        return self._suite(run, self.variant_of(run), words)

    def _course(self, run: Run) -> RunResult:
        items: list[TestItem] = []
        for function in run.suite.only:
            act = self.acts.get("course", {}).get(function.partition("::")[2], Act.PASS)
            if len(run.suite.only) > 1:
                act = self.acts.get("course together", {}).get(function.partition("::")[2], act)
            if act in ENDS_RUN:
                ending = Ending(ENDS_RUN[act], function, run.limits.cpu_seconds, 9.0)
                return RunResult(run.id, ending, Record(run.suite.only, tuple(items)))
            items.append(TestItem(function, OUTCOMES[act], 0.001, "" if act is Act.PASS else OWN_WORDS))
        return RunResult(run.id, Ending(EndingKind.COMPLETE), Record(run.suite.only, tuple(items)))


class BusySandbox(FakeSandbox):
    """Asks for runs before it has answered those before: `ahead` are under way, of which any of the first two ends
    next."""

    def __init__(self, answer: Callable[[Run], RunResult], random: Random, ahead: int = 4) -> None:
        super().__init__(answer)
        self.random, self.ahead = random, ahead

    @contextmanager
    def session(self, *args: object, **options: object) -> Iterator["BusySession"]:
        yield BusySession(self)


class BusySession(FakeSession):
    _sandbox: BusySandbox

    def run(
        self,
        runs: Iterable[Run | None],
        on_result: Callable[[RunResult], None] = lambda result: None,
    ) -> tuple[RunResult, ...]:
        batch: list[Run] = []
        self._sandbox.batches.append(batch)
        results: dict[str, RunResult] = {}
        coming, under_way = iter(runs), list[Run]()
        while True:
            while len(under_way) < self._sandbox.ahead and (run := next(coming, None)) is not None:
                batch.append(run)
                under_way.append(run)
            if not under_way:
                return tuple(results[run.id] for run in batch)
            run = under_way.pop(self._sandbox.random.randrange(min(2, len(under_way))))
            results[run.id] = self._sandbox.answer(run)
            on_result(results[run.id])


def statuses(report: Report) -> dict[str, MutantStatus]:
    assert report.mutation is not None
    return {mutant.id: mutant.status for mutant in report.mutation.mutants}


def codes(report: Report) -> list[str]:
    return [reason.code for reason in report.reasons]
