from collections.abc import Iterable

import pytest

from grader import mutation
from grader.mutation import MOST_RUNS_OF_A_MUTANT, Decision, Judgement, Next
from grader.report import MutantStatus
from grader.verdicts import SuiteSeen, join
from sandbox.records import CollectionError, Ending, EndingKind, ItemOutcome, Record, RunResult, TestItem

VALID = frozenset({"t.py::a", "t.py::b"})
NAMES = ("a", "b")
BAD = [kind for kind in EndingKind if kind not in (EndingKind.COMPLETE, EndingKind.DEADLINE)]
TIMES = [EndingKind.CPU_TIME, EndingKind.NO_PROGRESS]


def ran(a: str = "passed", b: str = "passed", *, errors: Iterable[str] = ()) -> RunResult:
    """A complete run of tests a and b; "" for one that was not run."""
    outcomes = {name: outcome for name, outcome in zip(NAMES, (a, b), strict=True) if outcome}
    items = tuple(TestItem(f"t.py::{name}", ItemOutcome(outcome), 0.0) for name, outcome in outcomes.items())
    collected = tuple(f"t.py::{name}" for name in NAMES)
    return RunResult(
        "r", Ending(EndingKind.COMPLETE), Record(collected, items, tuple(CollectionError(e, "") for e in errors))
    )


def ended(kind: EndingKind, item: str | None = "t.py::a") -> RunResult:
    return RunResult("r", Ending(kind, item), Record(("t.py::a", "t.py::b")))


def decide(*runs: RunResult, known: Iterable[str] = ()) -> Decision:
    return mutation.decide(runs, VALID, frozenset(known))


def status(*runs: RunResult) -> MutantStatus | Next:
    decision = decide(*runs)
    return decision.status if decision.next is Next.NOTHING else decision.next


def test_a_mutant_on_which_everything_passes_survives() -> None:
    assert status(ran()) is MutantStatus.SURVIVED


@pytest.mark.parametrize("outcome", ["failed", "error"])
def test_a_failure_is_a_kill_once_the_same_test_fails_again(outcome: str) -> None:
    first = decide(ran(a=outcome))
    assert (first.next, first.only) == (Next.CONFIRM, ("t.py::a",))
    second = decide(ran(a=outcome), ran(a=outcome, b=""))
    assert (second.status, second.killed_by) == (MutantStatus.KILLED, ("t.py::a",))


def test_one_run_that_tells_a_failure_twice_has_failed_once() -> None:
    decision = decide(ran(a="failed", errors=["t.py::a"]))
    assert (decision.next, decision.only) == (Next.CONFIRM, ("t.py::a",))


def test_a_failure_that_does_not_come_again_is_no_kill() -> None:
    assert status(ran(a="failed"), ran(a="passed", b="")) is MutantStatus.SURVIVED


def test_the_second_failure_must_be_of_the_same_test() -> None:
    assert status(ran(a="failed"), ran(b="failed")) is MutantStatus.SURVIVED


def test_behind_a_failure_that_does_not_come_again_the_other_tests_are_still_asked() -> None:
    runs = [ran(a="failed", b=""), ran(a="passed", b="")]
    assert decide(*runs).next is Next.CONTINUE
    runs.append(ran(a="", b="failed"))
    assert (decide(*runs).next, decide(*runs).only) == (Next.CONFIRM, ("t.py::b",))
    runs.append(ran(a="", b="failed"))
    assert decide(*runs).status is MutantStatus.KILLED


@pytest.mark.parametrize("outcome", ["skipped", "xfailed", "xpassed"])
def test_skips_and_expected_failures_kill_nothing(outcome: str) -> None:
    assert status(ran(a=outcome)) is MutantStatus.SURVIVED


def test_failures_of_tests_that_do_not_count_kill_nothing() -> None:
    assert mutation.decide([ran(a="failed")], frozenset({"t.py::b"}), frozenset()).status is MutantStatus.SURVIVED


def test_a_file_that_fails_to_load_on_this_mutant_alone_kills_when_it_does_so_again() -> None:
    assert decide(ran(errors=["u.py"])).next is Next.CONFIRM
    assert decide(ran(errors=["u.py"])).only == ()
    assert status(ran(errors=["u.py"]), ran(errors=["u.py"])) is MutantStatus.KILLED
    assert status(ran(errors=["u.py"]), ran()) is MutantStatus.SURVIVED
    assert decide(ran(errors=["u.py"]), known=["u.py"]).status is MutantStatus.SURVIVED


@pytest.mark.parametrize("kind", TIMES)
def test_out_of_time_is_believed_of_a_second_run_made_alone(kind: EndingKind) -> None:
    assert status(ended(kind)) is Next.ALONE
    assert status(ended(kind), ended(kind)) is MutantStatus.TIMEOUT
    assert status(ended(kind), ran()) is MutantStatus.SURVIVED
    assert status(ended(kind), ran(a="failed"), ended(kind)) is Next.ALONE
    assert decide(ended(kind), ended(kind)).killed_by == ("t.py::a",)


@pytest.mark.parametrize("kind", [kind for kind in BAD if kind not in TIMES])
def test_any_other_ending_is_retried_once_and_then_void(kind: EndingKind) -> None:
    assert status(ended(kind)) is Next.AGAIN
    assert status(ended(kind), ended(kind)) is MutantStatus.VOID
    assert status(ended(kind), ran()) is MutantStatus.SURVIVED
    assert status(ran(a="failed"), ended(kind), ran(a="failed")) is MutantStatus.KILLED


def test_a_run_that_reports_failures_and_then_leaves_early_kills_nothing() -> None:
    failing = ran(a="failed", b="failed").record
    early = RunResult("r", Ending(EndingKind.EARLY_EXIT), failing)
    assert status(early, early) is MutantStatus.VOID


def test_time_over_leaves_a_mutant_void_with_that_cause() -> None:
    decision = decide(ran(a="failed"), ended(EndingKind.DEADLINE, None))
    assert (decision.status, decision.cause and decision.cause.code) == (MutantStatus.VOID, "deadline")


def test_no_sequence_of_endings_asks_for_runs_without_end() -> None:
    endings = [*(ended(kind) for kind in BAD), ran(), ran(a="failed"), ran(b="failed"), ran(a="failed", b="")]
    undecided = [[run] for run in endings]
    for _ in range(MOST_RUNS_OF_A_MUTANT - 1):
        undecided = [[*runs, last] for runs in undecided if decide(*runs).next is not Next.NOTHING for last in endings][
            :4000
        ]
    assert all(decide(*runs).next is Next.NOTHING for runs in undecided if len(runs) == MOST_RUNS_OF_A_MUTANT)


def test_no_measured_limit_stands_in_the_cause_of_a_timeout() -> None:
    runs = [RunResult("r", Ending(EndingKind.CPU_TIME, "t.py::a", limit=3.217, seen=3.3))] * 2
    cause = decide(*runs).cause
    assert cause is not None and cause.limit is None and "3.2" not in cause.message


# -- tests against correct code --------------------------------------------------------------------------------------


def judged(calibration: RunResult, *correct: tuple[str, RunResult]) -> dict[str, Judgement]:
    suites: list[tuple[str, SuiteSeen]] = [(variant, join([run])) for variant, run in correct]
    return mutation.judge_tests(join([calibration]), suites)


def test_a_test_is_valid_when_it_passes_every_correct_run() -> None:
    judgement = judged(ran(), ("reference", ran()), ("w1", ran()))["t.py::a"]
    assert judgement == Judgement(2, 2)
    assert judgement.valid and not judgement.invalid


def test_a_test_that_fails_on_a_wheat_is_invalid_and_the_wheat_is_named() -> None:
    judgement = judged(ran(), ("reference", ran()), ("w1", ran(a="failed")))["t.py::a"]
    assert (judgement.rejected, judgement.flaky, judgement.invalid) == (("w1",), False, True)


def test_failing_on_the_calibration_run_alone_is_flaky() -> None:
    judgement = judged(ran(a="failed"), ("reference", ran()), ("w1", ran()))["t.py::a"]
    assert judgement.flaky and judgement.invalid


def test_failing_on_every_reference_run_is_not_flaky() -> None:
    judgement = judged(ran(a="failed"), ("reference", ran(a="failed")), ("reference", ran(a="error")))["t.py::a"]
    assert (judgement.flaky, judgement.rejected) == (False, ("reference",))


def test_a_test_that_ended_the_calibration_run_rejects_everything() -> None:
    judgement = judged(ended(EndingKind.EARLY_EXIT), ("reference", ran(a="")), ("w1", ran(a="")))["t.py::a"]
    assert judgement.rejected == ("reference", "w1")


@pytest.mark.parametrize("outcome", ["skipped", "xfailed", ""])
def test_a_test_without_a_pass_or_failure_on_some_correct_run_is_silent(outcome: str) -> None:
    judgement = judged(ran(), ("reference", ran()), ("w1", ran(a=outcome)))["t.py::a"]
    assert (judgement.silent, judgement.valid, judgement.invalid) == (True, False, False)


def test_a_file_that_loads_on_some_reference_runs_is_flaky() -> None:
    judgement = judged(ran(), ("reference", ran()), ("reference", ran(errors=["u.py"])))["u.py"]
    assert judgement.flaky and judgement.invalid and judgement.passed == 1


# -- the score -------------------------------------------------------------------------------------------------------


def decision(status: MutantStatus) -> Decision:
    return Decision(Next.NOTHING, status)


def test_timeouts_count_invalid_mutants_leave_the_total_and_void_ones_stay() -> None:
    decisions = {status.value: decision(status) for status in MutantStatus}
    score = mutation.score(decisions, ["killed", "timeout"])
    assert (score.killed, score.total, score.share, score.required_ok) == (2, 4, 0.5, True)


@pytest.mark.parametrize(
    ("required", "ok"), [("killed", True), ("timeout", True), ("survived", False), ("void", False)]
)
def test_every_required_mutant_must_be_caught(required: str, ok: bool) -> None:
    decisions = {status.value: decision(status) for status in MutantStatus}
    assert mutation.score(decisions, [required]).required_ok is ok


def test_a_required_mutant_that_could_not_be_built_asks_nothing() -> None:
    assert mutation.score({"m": decision(MutantStatus.INVALID)}, ["m"]).required_ok


def test_no_mutants_make_no_score() -> None:
    assert mutation.score({}, []).share == 0.0
