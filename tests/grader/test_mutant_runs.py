"""Runs of a mutant that were asked for before all correct code was run."""

from dataclasses import replace

import pytest

from grader.mutant_runs import Asked, Counts, MutantRuns
from grader.mutation import Next
from grader.report import Cell, MutantStatus
from sandbox.records import Ending, EndingKind, ItemOutcome, Record, RunResult, TestItem

A, B, C = "t.py::a", "t.py::b", "t.py::c"
ALL = Counts(frozenset({A, B, C}), frozenset(), frozenset())
WITHOUT_A = Counts(frozenset({B, C}), frozenset({A}), frozenset())
WITHOUT_C = Counts(frozenset({A, B}), frozenset({C}), frozenset())


def ran(**outcomes: str) -> RunResult:
    """A complete run of some of the tests a, b and c."""
    items = tuple(TestItem(f"t.py::{name}", ItemOutcome(outcome), 0.0) for name, outcome in outcomes.items())
    return RunResult("r", Ending(EndingKind.COMPLETE), Record((A, B, C), items))


def asked(runs: MutantRuns, counts: Counts) -> Asked:
    found = runs.asked(counts)
    assert found is not None
    return found


def test_a_run_that_was_asked_for_as_it_is_in_the_end_counts() -> None:
    runs = MutantRuns(ran(a="failed"))
    assert asked(runs, ALL) == Asked(Next.CONFIRM, (A,), ())
    runs.add(asked(runs, ALL), ran(a="failed"))
    for counts in (ALL, replace(ALL)):
        assert runs.asked(counts) is None
        assert (runs.decision(counts).status, runs.decision(counts).killed_by) == (MutantStatus.KILLED, (A,))


def test_what_confirms_a_test_that_does_not_count_in_the_end_is_dropped() -> None:
    runs = MutantRuns(ran(a="failed"))
    runs.add(asked(runs, ALL), ran(a="failed"))
    assert asked(runs, WITHOUT_A) == Asked(Next.CONTINUE, (), (A,))
    runs.add(asked(runs, WITHOUT_A), ran(b="passed", c="passed"))
    assert runs.decision(WITHOUT_A).status is MutantStatus.SURVIVED


def test_what_was_run_with_a_test_that_is_left_out_in_the_end_is_dropped() -> None:
    runs = MutantRuns(ran(a="failed"))
    runs.add(asked(runs, ALL), ran(a="passed"))
    runs.add(asked(runs, ALL), ran(b="passed", c="failed"))
    assert asked(runs, ALL).only == (C,)
    assert asked(runs, WITHOUT_C) == Asked(Next.CONFIRM, (A,), (C,))
    runs.add(asked(runs, WITHOUT_C), ran(a="passed"))
    runs.add(asked(runs, WITHOUT_C), ran(b="passed"))
    decision = runs.decision(WITHOUT_C)
    assert (decision.next, decision.status) == (Next.NOTHING, MutantStatus.SURVIVED)
    assert decision.cells == {A: Cell.FAIL, B: Cell.PASS, C: Cell.NOT_RUN}


@pytest.mark.parametrize(
    ("ending", "alone"), [(EndingKind.CPU_TIME, True), (EndingKind.NO_PROGRESS, True), (EndingKind.SIGNAL, False)]
)
def test_only_a_run_that_was_out_of_time_is_made_again_alone(ending: EndingKind, alone: bool) -> None:
    first = RunResult("r", Ending(ending, A), Record((A, B, C)))
    assert asked(MutantRuns(first), ALL).is_alone is alone


def test_a_confirmation_stops_at_the_first_failure_unless_a_whole_file_is_to_fail_again() -> None:
    assert Asked(Next.CONFIRM, (A,), ()).stops_at_first_failure
    assert not Asked(Next.CONFIRM, (), ()).stops_at_first_failure
    assert not Asked(Next.CONTINUE, (), (A,)).stops_at_first_failure
