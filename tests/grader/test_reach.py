"""A mutant that few tests reach is tried on these alone; they can say that it survived, and nothing else."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from grader import reach
from grader.grade import Progress, grade
from grader.plan import STANDARD, correct_variants
from grader.report import MutantStatus, Report
from grader.unit import Unit
from sandbox.records import (
    CollectionError,
    Ending,
    EndingKind,
    FakeSandbox,
    File,
    ItemOutcome,
    Record,
    Run,
    RunResult,
    TestItem,
)
from tests.grader.simulated import ABOUT, Act, BusySandbox, SimulatedSuite, a_unit, statuses

FIRST_FAILURE = replace(STANDARD, full_matrix_cpu_seconds=0.0)
WHOLE = replace(FIRST_FAILURE, few_tests_share=0.0)
TESTS = ("test_a", "test_b", "test_c", "test_d", "test_e")
ELSEWHERE = 1
CORRECT = ("reference", "w01", "w02", "w03", "w04", "w05")
SURVIVED, KILLED, TIMEOUT = MutantStatus.SURVIVED, MutantStatus.KILLED, MutantStatus.TIMEOUT


@pytest.fixture
def wider(unit: Unit) -> Unit:
    """With a mutant m in the body of `halve`, and one, n, at the end of the file."""
    unit = a_unit(unit, ["m", "n"])
    m, n = unit.mutants
    source = unit.files[0].reference.replace(b"return x / 2", b"return x / 2 + len(\"VARIANT = 'm'\")")
    return replace(unit, mutants=(replace(m, files={unit.files[0].path: source}), n))


def inside(unit: Unit, count: int) -> Unit:
    """With mutants in the body of `halve`."""
    unit = a_unit(unit, [f"m{n}" for n in range(count)])
    [file] = unit.files
    sources = {m.id: f"return x / 2 + len(\"VARIANT = '{m.id}'\")".encode() for m in unit.mutants}
    changed = {mid: file.reference.replace(b"return x / 2", source) for mid, source in sources.items()}
    return replace(unit, mutants=tuple(replace(m, files={file.path: changed[m.id]}) for m in unit.mutants))


def halving(unit: Unit) -> int:
    """The block that m changes."""
    bits = reach.changed(unit, unit.mutants[0].files)
    assert bits is not None and bits.bit_count() == 1
    return bits


def suite_of(unit: Unit, acts: Mapping[str, Mapping[str, Act]] | None = None, **options: Any) -> SimulatedSuite:
    """Of its tests only `test_a` enters `halve`."""
    enters = dict.fromkeys(TESTS, ELSEWHERE) | {"test_a": ELSEWHERE | halving(unit)}
    return SimulatedSuite(unit, TESTS, acts or {}, **{"enters": enters, **options})


def runs_on(suite: SimulatedSuite, variant: str) -> list[tuple[str, ...]]:
    """What each run was spared."""
    return [tuple(item.partition("::")[2] for item in run.suite.skip) for on, run in suite.log if on == variant]


FEW = ("test_b", "test_c", "test_d", "test_e")
ALL = ()


# -- in a grading ------------------------------------------------------------------------------------------------------


def graded(suite: SimulatedSuite) -> Report:
    return suite.grade(policy=FIRST_FAILURE)


def test_a_mutant_that_the_tests_which_reach_it_do_not_notice_has_survived(wider: Unit) -> None:
    suite = suite_of(wider)
    assert statuses(graded(suite)) == {"m": SURVIVED, "n": SURVIVED}
    assert runs_on(suite, "m") == [FEW]
    assert runs_on(suite, "n") == [ALL]


def test_a_mutant_that_no_test_reaches_has_survived_without_a_run(wider: Unit) -> None:
    suite = suite_of(wider, enters=dict.fromkeys(TESTS, ELSEWHERE))
    assert statuses(graded(suite)) == {"m": SURVIVED, "n": SURVIVED}
    assert runs_on(suite, "m") == []


def test_one_that_they_notice_gets_its_first_run_which_that_confirms(wider: Unit) -> None:
    suite = suite_of(wider, {"m": {"test_a": Act.FAIL}, "n": {"test_a": Act.FAIL}})
    report = graded(suite)
    assert statuses(report) == {"m": KILLED, "n": KILLED}
    assert runs_on(suite, "m") == [FEW, ALL]
    assert report.mutation is not None
    assert {mutant.killed_by for mutant in report.mutation.mutants} == {("test_mine.py::test_a",)}


def test_progress_does_not_tell_how_many_mutants_few_tests_reach(wider: Unit) -> None:
    suite = suite_of(wider, {"m": {"test_a": Act.FAIL}})
    told: list[Progress] = []
    grade(
        suite.unit,
        suite.submission(),
        sandbox=FakeSandbox(suite.answer),
        seed=1,
        about=ABOUT,
        policy=FIRST_FAILURE,
        progress=told.append,
    )
    assert runs_on(suite, "m") == [FEW, ALL]
    ended = [each.total for each in told if each.phase == "mutants" and each.done == each.total]
    assert sum(ended) == len(correct_variants(suite.unit, FIRST_FAILURE)) + 2


def test_a_mutant_s_few_tests_have_ended_when_its_first_run_is_made(unit: Unit) -> None:
    unit = inside(unit, 6)
    suite = suite_of(unit, {"m1": {"test_a": Act.FAIL}, "m2": {"test_a": Act.FAIL}})
    for seed in range(20):
        suite.log.clear()
        sandbox = BusySandbox(suite.answer, Random(seed))
        report = suite.grade(seed, FIRST_FAILURE, sandbox=sandbox)
        for mid, status in statuses(report).items():
            assert status is (KILLED if mid in suite.acts else SURVIVED)
            assert runs_on(suite, mid) == ([FEW, ALL] if mid in suite.acts else [FEW])


def test_first_runs_of_mutants_look_like_those_of_correct_code(wider: Unit) -> None:
    suite = suite_of(wider, {"m": {"test_a": Act.FAIL}})
    graded(suite)
    correct = [run.suite for on, run in suite.log if on in CORRECT and run.suite.first]
    of_mutants = [run.suite for on, run in suite.log if on in ("m", "n") and not (run.suite.only or run.suite.skip)]
    assert len(of_mutants) == 2 and len(correct) == 8
    assert {replace(each, first=()) for each in of_mutants} == {replace(each, first=()) for each in correct}
    assert all(sorted(each.first) == sorted(correct[0].first) for each in of_mutants)


def test_tests_that_enter_a_mutant_come_first_and_correct_code_meets_all_their_orders(unit: Unit) -> None:
    unit = a_unit(unit, [f"m{n}" for n in range(40)])
    [file] = unit.files
    places = (b"return x / 2", b"self.factor + self.offset")
    mutants = []
    for n, mutant in enumerate(unit.mutants):
        changed = places[n % 2] + f" + len(\"VARIANT = '{mutant.id}'\")".encode()
        mutants.append(replace(mutant, files={file.path: file.reference.replace(places[n % 2], changed)}))
    halving, doubling = (reach.changed(unit, mutant.files) or 0 for mutant in mutants[:2])
    enters = {"test_a": halving, "test_b": doubling, "test_c": halving | doubling}
    acts = {mutant.id: {"test_c": Act.FAIL} for mutant in mutants}
    suite = SimulatedSuite(replace(unit, mutants=tuple(mutants)), tuple(enters), acts, enters=enters)
    report = suite.grade(policy=replace(FIRST_FAILURE, few_tests_share=0.1))
    assert set(statuses(report).values()) == {KILLED}

    runs = [(on, run.suite) for on, run in suite.log if not run.suite.only and run.suite.first]
    last = {on: each.first[-1].partition("::")[2] for on, each in runs if on not in CORRECT}
    assert [last[mutant.id] for mutant in mutants] == ["test_b", "test_a"] * 20
    assert {each.first for on, each in runs if on in CORRECT} <= {each.first for on, each in runs if on not in CORRECT}
    assert {each.first[-1].partition("::")[2] for on, each in runs if on in CORRECT} == {"test_a", "test_b"}


class Noticing(SimulatedSuite):
    """Its tests do something else where fewer of them are run than there are."""

    beside_fewer = Act.FAIL
    few = False

    def answer(self, run: Run) -> RunResult:
        self.few = bool(run.suite.skip or run.suite.only)
        return super().answer(run)

    def _act(self, variant: str, test: str) -> Act:
        act = super()._act(variant, test)
        return self.beside_fewer if self.few and act is Act.PASS else act


@pytest.mark.parametrize("act", [Act.FAIL, Act.ERROR, Act.HANG, Act.SLEEP, Act.EXIT, Act.CRASH])
def test_a_test_that_notices_that_others_are_left_out_wins_nothing(wider: Unit, act: Act) -> None:
    suite = Noticing(wider, TESTS, enters=suite_of(wider).enters)
    suite.beside_fewer = act
    assert statuses(graded(suite)) == {"m": SURVIVED, "n": SURVIVED}
    assert runs_on(suite, "m") == [FEW, ALL]


def test_a_failure_among_few_does_not_confirm_another_one(wider: Unit) -> None:
    enters = {**(suite_of(wider).enters or {}), "test_b": ELSEWHERE | halving(wider)}
    suite = Noticing(wider, TESTS, {"m": {"test_b": Act.FAIL}}, enters=enters)
    report = graded(suite)
    assert runs_on(suite, "m") == [("test_c", "test_d", "test_e"), ALL, ALL]
    assert suite.log[-1][1].suite.only == ("test_mine.py::test_b",)
    assert report.mutation is not None
    assert report.mutation.mutants[0].killed_by == ("test_mine.py::test_b",)


def test_a_mutant_that_hangs_is_tried_whole_and_then_alone(wider: Unit) -> None:
    suite = suite_of(wider, {"m": {"test_a": Act.HANG}})
    assert statuses(graded(suite))["m"] is TIMEOUT
    assert runs_on(suite, "m") == [FEW, ALL, ALL]


def test_where_a_test_needs_another_one_all_is_run_again_in_the_suites_own_order(wider: Unit) -> None:
    """Mutants that had survived too: what other orders showed is dropped."""
    suite = suite_of(wider, {"n": {"test_b": Act.FAIL}}, needs={"test_b": "test_a"})
    assert statuses(graded(suite)) == {"m": SURVIVED, "n": KILLED}
    assert runs_on(suite, "m") == [FEW, ALL]


@pytest.mark.parametrize(
    "options",
    [
        {"enters": None},  # a sandbox that says nothing of marks
        {"enters": dict.fromkeys(TESTS, 0b11111)},  # every test reaches everything
        {"acts": {"reference": {"test_e": Act.FAIL}}},
        {"acts": {"reference": {"test_e": Act.EXIT}}},
        {"acts": {"reference": {"test_e": Act.XFAIL}}},
    ],
)
def test_a_suite_of_which_not_all_is_known_is_run_whole(wider: Unit, options: dict[str, Any]) -> None:
    suite = suite_of(wider, **options)
    graded(suite)
    assert FEW not in runs_on(suite, "m") and runs_on(suite, "m")


def test_a_suite_that_runs_to_its_end_is_run_whole(wider: Unit) -> None:
    suite = suite_of(wider)
    suite.grade()
    assert runs_on(suite, "m") == [ALL]


def test_a_suite_whose_tests_share_something_is_run_whole(wider: Unit) -> None:
    suite = suite_of(wider)
    submission = suite.submission()
    [file] = submission.tests
    sharing = replace(file, data=file.data + b"\nSEEN = []\n\n\ndef seen():\n    SEEN.append(1)\n")
    suite.grade(policy=FIRST_FAILURE, submission=replace(submission, tests=(sharing,)))
    assert runs_on(suite, "m") == [ALL]
    assert not any(run.suite.marks for _, run in suite.log)


# -- pure --------------------------------------------------------------------------------------------------------------


def item(
    name: str, marked: int | None = 1, outcome: ItemOutcome = ItemOutcome.PASSED, seconds: float = 1.0
) -> TestItem:
    return TestItem(name, outcome, seconds, marked=marked)


def run_of(*items: TestItem, collected: tuple[str, ...] = (), errors: tuple[CollectionError, ...] = ()) -> RunResult:
    record = Record(collected or tuple(each.id for each in items), items, errors)
    return RunResult("r", Ending(EndingKind.COMPLETE), record)


def test_what_each_test_entered_is_known_from_an_uneventful_run() -> None:
    found = reach.of_run(run_of(item("a", 0b01), item("b", 0b10, ItemOutcome.SKIPPED, 3.0)))
    assert found == reach.Reach({"a": 0b01, "b": 0b10}, {"a": 1.0, "b": 3.0})


@pytest.mark.parametrize(
    "result",
    [
        run_of(item("a", None)),
        run_of(item("a"), item("b", None)),
        run_of(item("a"), collected=("a", "b")),
        run_of(item("a", outcome=ItemOutcome.FAILED)),
        run_of(item("a", outcome=ItemOutcome.ERROR)),
        run_of(item("a", outcome=ItemOutcome.XFAILED)),
        run_of(item("a"), errors=(CollectionError("t.py", "no"),)),
        replace(run_of(item("a")), ending=Ending(EndingKind.EARLY_EXIT)),
    ],
)
def test_of_any_other_run_nothing_is_known(result: RunResult) -> None:
    assert reach.of_run(result) is None


ENTERED = reach.Reach({"a": 0b001, "b": 0b011, "c": 0b100}, {"a": 1.0, "b": 1.0, "c": 2.0})


@pytest.mark.parametrize(
    ("changed", "spared"),
    [
        (None, None),
        (0b010, ("a", "c")),
        (0b001, ("c",)),  # half of the time is left
        (0b111, None),
        (0b101, None),
        (0b1000, ("a", "b", "c")),
    ],
)
def test_a_variant_is_spared_the_tests_that_do_not_reach_it_where_they_are_many(
    changed: int | None, spared: tuple[str, ...] | None
) -> None:
    assert ENTERED.spared(changed, 0.5) == spared


def test_a_run_is_quiet_if_it_is_of_the_tests_that_were_left_and_nothing_happened() -> None:
    spared, collected = ("a", "c"), ("a", "b", "c")
    assert ENTERED.is_quiet(run_of(item("b"), collected=collected), spared)
    assert not ENTERED.is_quiet(run_of(item("b")), spared)
    assert not ENTERED.is_quiet(run_of(item("a"), item("b"), collected=collected), spared)
    assert not ENTERED.is_quiet(run_of(collected=collected), spared)
    assert not ENTERED.is_quiet(run_of(item("b", outcome=ItemOutcome.FAILED), collected=collected), spared)
    assert not ENTERED.is_quiet(run_of(item("b", outcome=ItemOutcome.XPASSED), collected=collected), spared)


def test_a_reference_of_several_files_has_its_marks_in_one_row() -> None:
    found = reach.marked((("a.py", b"def f():\n    pass\n"), ("b.py", b"def g():\n    pass\n")))
    assert found is not None
    assert b"_reached[0]" in found.variant.files["a.py"] and b"_reached[1]" in found.variant.files["b.py"]
    assert found.marks.source == b"_reached = bytearray(2)\n"
    assert reach.marked((("a.py", b"def f(:"),)) is None
    assert reach.marked((("a.py", b"def f():\n    pass\n" * (reach.MOST_BLOCKS + 1)),)) is None


def test_of_a_unit_that_keeps_something_between_calls_nothing_can_be_said(wider: Unit) -> None:
    path = wider.files[0].path
    kept = wider.mutants[0].files[path] + b"\n\nSEEN = []\n"
    assert reach.changed(wider, wider.mutants[0].files) is not None
    assert reach.changed(wider, {path: kept}) is None


def test_a_suite_can_import_the_library_and_its_own_files(wider: Unit) -> None:
    def can(source: str) -> bool:
        return reach.can_be_asked(wider, [File("test_mine.py", source.encode()), File("notes.txt", b"import os\n")])

    assert can("from tinyllm.demo.double import Double\nimport test_mine\n")
    assert not can("import os\n")
    assert not can("from _lib import close\n")  # the course's, of which nothing is known
