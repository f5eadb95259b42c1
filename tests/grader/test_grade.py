"""The whole way from a submission to its report, with a sandbox that answers from a table."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from grader import wording
from grader.grade import Progress, grade
from grader.plan import STANDARD, Policy
from grader.report import MutantStatus, Outcome, Report, Verdict
from grader.stop import Stop
from grader.unit import Unit
from sandbox.errors import SandboxError
from sandbox.records import EndingKind, FakeSandbox
from tests.grader.simulated import ABOUT, Act, BusySandbox, SimulatedSuite, a_unit, codes, statuses

KILLED, SURVIVED = MutantStatus.KILLED, MutantStatus.SURVIVED
FIRST_KILL = Policy(full_matrix_cpu_seconds=0.0)


@pytest.fixture
def small(unit: Unit) -> Unit:
    return a_unit(unit, ["m1", "m2"], required=["m1"])


def kills_all(unit: Unit) -> dict[str, dict[str, Act]]:
    return {mutant.id: {"test_a": Act.FAIL} for mutant in unit.mutants}


def parts(report: Report) -> dict[str, object]:
    """What must not depend on the seed."""
    assert report.mutation is not None and report.student_tests is not None and report.course_tests is not None
    return {
        "verdict": report.verdict,
        "score": report.score,
        "codes": codes(report),
        "statuses": statuses(report),
        "mutation": (report.mutation.score, report.mutation.killed, report.mutation.required_ok),
        "course": [(test.id, test.outcome) for test in report.course_tests.tests],
        "tests": [(test.id, test.valid, test.own_code, test.kills) for test in report.student_tests.tests],
    }


def test_right_code_with_tests_that_catch_everything_passes_with_full_score(small: Unit) -> None:
    report = SimulatedSuite(small, ("test_a", "test_b"), kills_all(small)).grade()
    assert (report.verdict, report.score, codes(report)) == (Verdict.PASS, 1.0, ["passed"])
    assert report.mutation is not None and report.mutation.passed and report.mutation.matrix == "full"
    assert [mutant.killed_by for mutant in report.mutation.mutants] == [("test_mine.py::test_a",)] * 2


def first_runs(suite: SimulatedSuite) -> list[tuple[str, tuple[str, ...]]]:
    """What was run without messages and not to confirm: the variant, and the tests that came first."""
    wanted = [(name, run.suite) for name, run in suite.log if not run.suite.messages and not run.suite.only]
    return [(name, tuple(each.partition("::")[2] for each in suite.first)) for name, suite in wanted]


def test_tests_that_caught_most_are_run_first_on_the_rest_and_correct_code_is_among_all(unit: Unit) -> None:
    mutants = [f"m{n:02}" for n in range(24)]
    many = a_unit(unit, mutants)
    acts = {mid: {"test_c" if n % 6 else "test_b": Act.FAIL} for n, mid in enumerate(mutants)}
    suite = SimulatedSuite(many, ("test_a", "test_b", "test_c"), acts)
    report = suite.grade(policy=FIRST_KILL)
    assert report.mutation is not None and report.mutation.killed == 24 and report.verdict is Verdict.PASS
    runs = first_runs(suite)
    assert {first for _, first in runs} == {("test_a", "test_b", "test_c"), ("test_c", "test_a", "test_b")}
    pilot, rest = [[name for name, first in runs if first[0] == test] for test in ("test_a", "test_c")]
    for part, mutants_in_it, correct_in_it in ((pilot, 6, 2), (rest, 18, 6)):
        assert sum(name in acts for name in part) == mutants_in_it
        assert sum(name not in acts for name in part) == correct_in_it


def test_a_suite_whose_tests_hang_on_each_other_keeps_its_own_order(unit: Unit) -> None:
    mutants = [f"m{n:02}" for n in range(12)]
    acts = {mid: {"test_b": Act.FAIL} for mid in mutants}
    suite = SimulatedSuite(a_unit(unit, mutants), ("test_a", "test_b"), acts, needs={"test_b": "test_a"})
    report = suite.grade(policy=FIRST_KILL)
    assert report.student_tests is not None and [test.valid for test in report.student_tests.tests] == [True, True]
    assert report.mutation is not None and report.mutation.killed == 12
    runs = first_runs(suite)
    reordered, as_written = [name for name, first in runs if first], [name for name, first in runs if not first]
    assert Counter(as_written[-20:]) == Counter(reordered[:20])
    refused_again = reordered[20:]
    assert refused_again == as_written[:-20] and not set(refused_again) & set(mutants)


def test_for_a_test_that_rejects_correct_code_in_any_order_not_all_is_run_again(unit: Unit) -> None:
    mutants = [f"m{n:02}" for n in range(12)]
    suite = SimulatedSuite(a_unit(unit, mutants), ("test_a", "test_b"), {"w01": {"test_a": Act.FAIL}})
    report = suite.grade(policy=FIRST_KILL)
    assert report.student_tests is not None
    assert [test.valid for test in report.student_tests.tests] == [False, True]
    assert Counter(on for on, run in suite.log if on in mutants) == Counter(mutants)


@pytest.mark.parametrize("enters", [None, {"test_a": 1, "test_b": 1}])
def test_a_failure_by_chance_on_correct_code_stands_in_whatever_order(
    unit: Unit, enters: Mapping[str, int] | None
) -> None:
    """Coins are thrown once: what failed is not forgiven because it passes in the suite's own order."""
    failed = forgiven = 0
    for seed in range(60):
        suite = SimulatedSuite(a_unit(unit, ["m1", "m2"]), ("test_a", "test_b"), {}, enters=enters)
        suite.acts = {"*": {"test_a": Act.COIN}}
        suite.random = Random(seed)
        report = suite.grade(seed, FIRST_KILL)
        assert report.student_tests is not None
        failed += suite.coins_on_correct > 0
        forgiven += suite.coins_on_correct > 0 and all(test.valid for test in report.student_tests.tests)
    assert failed >= 20 and forgiven <= failed * 0.2


def test_a_confirmation_runs_the_quickest_test_that_failed_first(small: Unit) -> None:
    acts = {"m1": {"test_slow": Act.FAIL, "test_quick": Act.FAIL}}
    suite = SimulatedSuite(small, ("test_slow[1]", "test_slow[2]", "test_quick"), acts)
    suite.acts = {"m1": {"test_slow[1]": Act.FAIL, "test_slow[2]": Act.FAIL, "test_quick": Act.FAIL}}
    suite.grade()
    [confirmation] = [run for name, run in suite.log if name == "m1" and run.suite.only]
    assert [each.partition("::")[2] for each in confirmation.suite.first] == ["test_quick", "test_slow"]


def test_score_is_the_weighted_sum_of_course_tests_and_mutation_score(small: Unit) -> None:
    weighted = replace(small, weight_course_tests=1.0, weight_mutation=3.0)
    acts = {"m1": {"test_a": Act.FAIL}, "course": {"test_zero": Act.FAIL}}
    report = SimulatedSuite(weighted, ("test_a",), acts).grade()
    assert report.score == pytest.approx((1.0 * 0.5 + 3.0 * 0.5) / 4.0)
    assert codes(report) == ["course_tests", "below_threshold"]


@pytest.mark.parametrize("policy", [STANDARD, FIRST_KILL])
def test_same_seed_gives_an_equal_report(small: Unit, policy: Policy) -> None:
    acts = {"m1": {"test_a": Act.FAIL, "test_b": Act.HANG}, "m2": {"test_b": Act.EXIT}, "w01": {"test_b": Act.FAIL}}
    first, second = (SimulatedSuite(small, ("test_a", "test_b"), acts).grade(seed=5, policy=policy) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("policy", [STANDARD, FIRST_KILL])
def test_another_seed_changes_the_order_of_runs_and_nothing_that_counts(unit: Unit, policy: Policy) -> None:
    unit = a_unit(unit, [f"m{number}" for number in range(6)])
    acts = {
        "m1": {"test_a": Act.FAIL},
        "m2": {"test_b": Act.HANG},
        "m3": {"test_c": Act.EXIT},
        "m4": {"test_a": Act.SKIP},
    }
    suites = [SimulatedSuite(unit, ("test_a", "test_b", "test_c"), acts) for _ in range(2)]
    one, two = suites[0].grade(seed=1, policy=policy), suites[1].grade(seed=2, policy=policy)
    assert parts(one) == parts(two)
    orders = [[variant for variant, _ in suite.log] for suite in suites]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_correct_code_and_mutants_run_alike_but_for_the_code(small: Unit) -> None:
    suite = SimulatedSuite(small, ("test_a",), kills_all(small))
    suite.grade()
    batch = [(variant, run) for variant, run in suite.log if not run.suite.messages]
    first_runs = batch[: 3 + len(small.wheats) + len(small.mutants)]
    assert {variant for variant, _ in first_runs} == {"reference", "w01", "w02", "w03", "w04", "w05", "m1", "m2"}
    assert len({(run.suite, run.limits, run.modules[0].filename) for _, run in first_runs}) == 1


def test_a_test_that_rejects_one_wheat_voids_the_grade_and_names_the_freedom(small: Unit) -> None:
    report = SimulatedSuite(small, ("test_a", "test_b"), kills_all(small) | {"w01": {"test_b": Act.FAIL}}).grade()
    assert report.mutation is not None and report.student_tests is not None
    assert (report.mutation.score, report.mutation.score_if_valid, report.mutation.passed) == (0.0, 1.0, False)
    assert codes(report) == ["rejects_correct_code"]
    strict = report.student_tests.tests[1]
    assert (strict.id, strict.valid, strict.denies) == ("test_mine.py::test_b", False, "The order of factors is free.")
    assert strict.correct_runs is not None and (strict.correct_runs.passed, strict.correct_runs.total) == (7, 8)
    assert report.score == 0.5


def test_a_test_that_passes_and_fails_on_the_reference_is_flaky(small: Unit) -> None:
    acts = kills_all(small) | {variant: {"test_b": Act.FLAKY} for variant in ("reference", "w01", "w02")}
    report = SimulatedSuite(small, ("test_a", "test_b"), acts, random=Random(3)).grade()
    assert codes(report) == ["flaky_tests"]


@pytest.mark.parametrize("act", [Act.SKIP, Act.XFAIL])
def test_a_test_that_is_skipped_or_marked_xfail_neither_counts_nor_voids(small: Unit, act: Act) -> None:
    report = SimulatedSuite(small, ("test_a", "test_b"), kills_all(small) | {"*": {"test_b": act}}).grade()
    assert report.verdict is Verdict.PASS and report.student_tests is not None
    assert [test.valid for test in report.student_tests.tests] == [True, None]


def test_a_test_marked_xfail_on_correct_code_kills_nothing_when_it_fails_on_a_mutant(small: Unit) -> None:
    correct = {name: {"test_b": Act.XFAIL} for name in ("reference", "w01", "w02", "w03", "w04", "w05", "own")}
    report = SimulatedSuite(small, ("test_a", "test_b"), correct | {"m1": {"test_b": Act.FAIL}}).grade()
    assert statuses(report) == {"m1": SURVIVED, "m2": SURVIVED}


def test_a_test_skipped_on_one_wheat_alone_kills_nothing_and_voids_nothing(small: Unit) -> None:
    acts = {"w02": {"test_b": Act.SKIP}, "m1": {"test_b": Act.FAIL}, "m2": {"test_a": Act.FAIL}}
    report = SimulatedSuite(small, ("test_a", "test_b"), acts).grade()
    assert statuses(report) == {"m1": SURVIVED, "m2": KILLED}
    assert "rejects_correct_code" not in codes(report)


def test_a_skip_on_a_mutant_is_no_kill(small: Unit) -> None:
    report = SimulatedSuite(small, ("test_a",), {"m1": {"test_a": Act.SKIP}, "m2": {"test_a": Act.FAIL}}).grade()
    assert statuses(report) == {"m1": SURVIVED, "m2": KILLED}


@pytest.mark.parametrize("act", [Act.HANG, Act.SLEEP])
def test_a_hang_on_a_mutant_is_confirmed_in_a_run_of_its_own_and_counts(small: Unit, act: Act) -> None:
    suite = SimulatedSuite(small, ("test_a",), {"m1": {"test_a": act}, "m2": {"test_a": Act.FAIL}})
    sandbox = FakeSandbox(suite.answer)
    report = grade(small, suite.submission(), sandbox=sandbox, seed=1, about=ABOUT)
    assert statuses(report) == {"m1": MutantStatus.TIMEOUT, "m2": KILLED}
    assert report.mutation is not None and (report.mutation.killed, report.mutation.passed) == (2, True)
    alone = [batch for batch in sandbox.batches if [suite.variant_of(run) for run in batch] == ["m1"]]
    assert len(alone) == 1


@pytest.mark.parametrize("act", [Act.EXIT, Act.CRASH])
def test_a_run_that_left_early_is_retried_once_then_void_and_stays_in_the_total(small: Unit, act: Act) -> None:
    suite = SimulatedSuite(
        small, ("test_a", "test_b"), {"m1": {"test_a": Act.FAIL, "test_b": act}, "m2": {"test_a": Act.FAIL}}
    )
    report = suite.grade()
    assert statuses(report) == {"m1": MutantStatus.VOID, "m2": KILLED}
    assert report.mutation is not None and (report.mutation.killed, report.mutation.total) == (1, 2)
    assert report.mutation.mutants[0].cause is not None
    assert [variant for variant, _ in suite.log].count("m1") == 2


def test_a_file_that_only_a_mutant_keeps_from_loading_is_a_kill(small: Unit) -> None:
    report = SimulatedSuite(small, ("test_a",), file_errors=frozenset({"m1"})).grade()
    assert statuses(report) == {"m1": KILLED, "m2": SURVIVED}
    assert report.mutation is not None and report.mutation.mutants[0].killed_by == ("test_mine.py",)


def test_a_file_that_loads_nowhere_is_said_to_once(small: Unit) -> None:
    everywhere = frozenset({"own", "reference", "broken", "w01", "w02", "w03", "w04", "w05", "m1", "m2"})
    report = SimulatedSuite(small, ("test_a",), file_errors=everywhere).grade()
    assert codes(report) == ["suite_not_loaded"]
    assert "test_mine.py cannot be loaded" in report.next_step and "said on own code" in report.next_step
    assert set(statuses(report).values()) == {MutantStatus.VOID}


def test_a_file_that_a_wheat_keeps_from_loading_voids_the_grade(small: Unit) -> None:
    report = SimulatedSuite(small, ("test_a",), kills_all(small), file_errors=frozenset({"w03"})).grade()
    assert "suite_not_loaded" in codes(report)
    assert report.mutation is not None and report.mutation.score == 0.0


def test_a_mutant_that_is_no_python_is_invalid_and_leaves_the_total(small: Unit) -> None:
    [file] = small.files
    broken = replace(small.mutants[0], files={file.path: b"def ("})
    unit = replace(small, mutants=(broken, small.mutants[1]))
    report = SimulatedSuite(unit, ("test_a",), kills_all(unit)).grade()
    assert statuses(report) == {"m1": MutantStatus.INVALID, "m2": KILLED}
    assert report.mutation is not None and (report.mutation.total, report.mutation.passed) == (1, True)
    nothing = SimulatedSuite(unit, ()).grade()
    assert nothing.mutation is not None and nothing.mutation.total == 1


def test_one_failing_parameter_kills_under_the_functions_name(small: Unit) -> None:
    acts = {"m1": {"test_a[2]": Act.FAIL}, "m2": {"test_a[1]": Act.FAIL}}
    report = SimulatedSuite(small, ("test_a[1]", "test_a[2]"), acts).grade()
    assert report.mutation is not None and report.student_tests is not None
    assert [mutant.killed_by for mutant in report.mutation.mutants] == [("test_mine.py::test_a",)] * 2
    assert [test.id for test in report.student_tests.tests] == ["test_mine.py::test_a"]


def test_runs_that_stop_at_the_first_kill_go_on_behind_a_failure_that_does_not_count(small: Unit) -> None:
    acts = {"w01": {"test_a": Act.FAIL}, "m1": {"test_a": Act.FAIL, "test_b": Act.FAIL}, "m2": {"test_a": Act.FAIL}}
    report = SimulatedSuite(small, ("test_a", "test_b"), acts).grade(policy=FIRST_KILL)
    assert report.mutation is not None and report.mutation.matrix == "first_kill"
    assert statuses(report) == {"m1": KILLED, "m2": SURVIVED}
    assert (report.mutation.score, report.mutation.score_if_valid) == (0.0, 0.5)


def test_correct_runs_that_stop_at_a_failure_still_find_every_test_that_rejects(small: Unit) -> None:
    acts = {"w01": {"test_a": Act.FAIL, "test_c": Act.FAIL}}
    report = SimulatedSuite(small, ("test_a", "test_b", "test_c"), acts).grade(policy=FIRST_KILL)
    assert report.student_tests is not None
    assert [test.valid for test in report.student_tests.tests] == [False, True, False]


def test_full_and_first_kill_runs_agree_on_every_status(unit: Unit) -> None:
    random = Random(11)
    for _ in range(30):
        suite = random_suite(a_unit(unit, [f"m{n}" for n in range(5)]), random, (Act.PASS, Act.FAIL, Act.SKIP))
        full, first = suite.grade(), suite.grade(policy=FIRST_KILL)
        assert statuses(full) == statuses(first)


def test_a_hang_on_correct_code_rejects_it_and_the_other_tests_are_still_judged(small: Unit) -> None:
    acts = kills_all(small) | {"reference": {"test_b": Act.HANG}, "own": {"test_b": Act.HANG}}
    report = SimulatedSuite(small, ("test_a", "test_b", "test_c"), acts).grade()
    assert report.student_tests is not None and report.mutation is not None
    assert [test.valid for test in report.student_tests.tests] == [True, False, True]
    assert [test.own_code for test in report.student_tests.tests] == [Outcome.PASSED, Outcome.TIMEOUT, Outcome.PASSED]
    assert "endless loop" in report.student_tests.tests[1].advice
    assert report.mutation.score_if_valid == 1.0


def test_a_suite_over_its_budget_blames_no_single_test(small: Unit) -> None:
    tests = tuple(f"test_{n}" for n in range(4))
    acts = {"reference": {"test_3": Act.HANG}}
    report = SimulatedSuite(small, tests, acts, seconds_beside=small.budget_cpu_seconds / 4).grade()
    assert "over_time_budget" in codes(report) and "rejects_correct_code" not in codes(report)
    assert report.mutation is not None and report.mutation.score == 0.0


def test_a_suite_near_its_budget_is_given_time_enough_on_mutants(unit: Unit) -> None:
    slow = replace(a_unit(unit, ["m1"]), budget_cpu_seconds=30.0)
    suite = SimulatedSuite(slow, ("test_a",), kills_all(slow), seconds_beside=25.0)
    suite.grade()
    limits = {run.limits.cpu_seconds for variant, run in suite.log if variant == "m1"}
    assert limits == {50.0}


@pytest.mark.parametrize(
    ("tests", "acts", "code", "status"),
    [
        ((), {}, "no_tests", SURVIVED),
        (("test_a",), {"*": {"test_a": Act.SKIP}}, "all_skipped", SURVIVED),
        (("test_a",), {"*": {"test_a": Act.XFAIL}}, "all_skipped", SURVIVED),
        (tuple(f"test_{n}" for n in range(201)), {}, "too_many_tests", MutantStatus.VOID),
    ],
)
def test_suites_that_test_nothing_or_too_much_score_nothing_with_the_reason(
    small: Unit, tests: tuple[str, ...], acts: dict[str, dict[str, Act]], code: str, status: MutantStatus
) -> None:
    report = SimulatedSuite(small, tests, acts).grade()
    assert code in codes(report) and report.verdict is Verdict.FAIL
    assert set(statuses(report).values()) == {status}
    assert report.mutation is not None and (report.mutation.score, report.mutation.matrix) == (0.0, "none")
    assert report.next_step == next(reason.message for reason in report.reasons if reason.code == code)


def test_a_suite_that_shows_no_failure_where_every_call_fails_is_not_believed(small: Unit) -> None:
    report = SimulatedSuite(small, ("test_a",), kills_all(small) | {"broken": {"test_a": Act.PASS}}).grade()
    assert codes(report) == ["no_failure_seen"]
    assert report.mutation is not None and (report.mutation.score, report.mutation.passed) == (0.0, False)


def test_an_early_exit_on_the_broken_unit_shows_no_failure(small: Unit) -> None:
    report = SimulatedSuite(small, ("test_a",), kills_all(small) | {"broken": {"test_a": Act.EXIT}}).grade()
    assert codes(report) == ["no_failure_seen"]


@pytest.mark.parametrize("variant", ["reference", "w02"])
def test_a_suite_that_ends_its_run_at_import_of_correct_code_scores_nothing(small: Unit, variant: str) -> None:
    ends = {variant: EndingKind.EARLY_EXIT}
    report = SimulatedSuite(small, ("test_a",), kills_all(small), ends_at_import=ends).grade()
    assert "suite_ended" in codes(report)
    assert report.mutation is not None and report.mutation.score == 0.0


def test_own_tests_failing_on_own_code_fail_the_submission_and_leave_the_mutation_score(small: Unit) -> None:
    report = SimulatedSuite(small, ("test_a",), kills_all(small) | {"own": {"test_a": Act.FAIL}}).grade()
    assert (report.verdict, codes(report), report.score) == (Verdict.FAIL, ["own_tests"], 1.0)


def test_a_test_that_rejects_correct_code_has_found_nothing_in_own_code(small: Unit) -> None:
    strict = {variant: {"test_a": Act.FAIL} for variant in ("own", "reference", "w01", "w02", "w03", "w04", "w05")}
    report = SimulatedSuite(small, ("test_a", "test_b"), strict | {"m1": {"test_b": Act.FAIL}}).grade()
    assert "rejects_correct_code" in codes(report) and "own_tests" not in codes(report)
    assert report.student_tests is not None and not report.student_tests.own_code_ok
    both = SimulatedSuite(small, ("test_a", "test_b"), strict | {"own": {"test_b": Act.FAIL}}).grade()
    assert [reason.message for reason in both.reasons if reason.code == "own_tests"] == [
        wording.own_tests_fail(["test_mine.py::test_b"])
    ]


def test_a_syntax_error_in_the_unit_is_a_contract_problem_and_the_tests_are_graded_all_the_same(small: Unit) -> None:
    suite = SimulatedSuite(small, ("test_a",), kills_all(small))
    [path] = suite.submission().files
    report = suite.grade(submission=replace(suite.submission(), files={path: b"class Double(:\n"}))
    assert report.contract is not None and report.course_tests is not None and report.mutation is not None
    assert [problem.code for problem in report.contract.problems] == ["syntax_error"]
    assert {test.outcome for test in report.course_tests.tests} == {Outcome.NOT_RUN}
    assert (report.mutation.score, report.mutation.passed, report.verdict) == (1.0, True, Verdict.FAIL)
    assert codes(report) == ["contract", "course_tests", "own_tests"]
    assert "1 contract problem: python/tinyllm/demo/double.py line 1: " in report.reasons[0].message
    assert "own" not in [variant for variant, _ in suite.log]


ZERO, TWICE = "test_double.py::test_zero", "test_double.py::test_twice"


def course_runs(suite: SimulatedSuite) -> list[tuple[str, ...]]:
    """The course tests of each run of course tests, in the order they were to run in."""
    return [run.suite.only for variant, run in suite.log if variant == "own" and run.suite.only]


def outcomes(report: Report) -> dict[str, Outcome]:
    assert report.course_tests is not None
    return {test.id: test.outcome for test in report.course_tests.tests}


def test_smoke_tests_run_first_and_stand_first(small: Unit) -> None:
    suite = SimulatedSuite(replace(small, smoke=("test_zero",)), ("test_a",))
    assert list(outcomes(suite.grade())) == ["test_zero", "test_twice"]
    assert course_runs(suite)[0] == (ZERO, TWICE)


def test_course_tests_that_pass_run_together_in_one_order_and_its_reverse(small: Unit) -> None:
    suite = SimulatedSuite(small, ("test_a",))
    assert set(outcomes(suite.grade()).values()) == {Outcome.PASSED}
    assert course_runs(suite) == [(TWICE, ZERO), (ZERO, TWICE)]
    assert all(run.suite.first == run.suite.only for _, run in suite.log if run.suite.only)


def test_where_a_course_test_fails_all_run_by_themselves_as_well(small: Unit) -> None:
    """Each says what it says there; and what one test sets off might have made another pass."""
    suite = SimulatedSuite(small, ("test_a",), {"course": {"test_zero": Act.FAIL}})
    assert outcomes(suite.grade()) == {"test_twice": Outcome.PASSED, "test_zero": Outcome.FAILED}
    assert course_runs(suite) == [(TWICE, ZERO), (ZERO, TWICE), (TWICE,), (ZERO,)]


def test_a_course_test_that_fails_by_itself_alone_is_found_where_another_fails(small: Unit) -> None:
    acts = {"course": dict.fromkeys(("test_twice", "test_zero"), Act.FAIL), "course together": {"test_zero": Act.PASS}}
    report = SimulatedSuite(small, ("test_a",), acts).grade()
    assert set(outcomes(report).values()) == {Outcome.FAILED}


@pytest.mark.parametrize("act, outcome", [(Act.HANG, Outcome.TIMEOUT), (Act.EXHAUST, Outcome.ERROR)])
def test_a_course_test_that_hangs_or_takes_all_memory_does_not_cost_that_again(
    small: Unit, act: Act, outcome: Outcome
) -> None:
    suite = SimulatedSuite(small, ("test_a",), {"course": {"test_zero": act}})
    assert outcomes(suite.grade()) == {"test_twice": Outcome.PASSED, "test_zero": outcome}
    assert course_runs(suite)[2:] == [(TWICE,), (ZERO,), (TWICE,)]


def test_what_a_course_test_finds_only_beside_others_is_a_disagreement(small: Unit) -> None:
    report = SimulatedSuite(small, ("test_a",), {"course together": {"test_zero": Act.FAIL}}).grade()
    assert report.course_tests is not None and report.course_tests.passed == 1
    [zero] = [test for test in report.course_tests.tests if test.id == "test_zero"]
    assert zero.outcome is Outcome.FAILED and "passed 1 of 3" in zero.message


def test_course_tests_that_end_the_process_they_share_run_again_by_themselves(small: Unit) -> None:
    suite = SimulatedSuite(small, ("test_a",), {"course together": {"test_zero": Act.EXIT}})
    assert set(outcomes(suite.grade()).values()) == {Outcome.PASSED}
    assert course_runs(suite)[2:] == [(TWICE,), (ZERO,)] * 2


def test_time_over_while_mutants_run_is_no_fault_of_any_test(small: Unit) -> None:
    whole = SimulatedSuite(small, ("test_a",), kills_all(small))
    whole.grade()
    for runs in range(7, len(whole.log)):
        report = SimulatedSuite(small, ("test_a",), kills_all(small), runs_left=runs).grade()
        assert "out_of_time" in codes(report)
        assert not {"rejects_correct_code", "flaky_tests", "no_failure_seen"} & set(codes(report))
        assert report.mutation is not None and not report.mutation.passed


def test_progress_counts_every_phase_to_its_total(small: Unit) -> None:
    told: list[Progress] = []
    suite = SimulatedSuite(small, ("test_a",), kills_all(small))
    sandbox = FakeSandbox(suite.answer)
    grade(small, suite.submission(), sandbox=sandbox, seed=1, about=ABOUT, progress=told.append)
    assert list(dict.fromkeys(step.phase for step in told)) == [
        "course_tests",
        "calibration",
        "mutants",
        "confirmation",
    ]
    assert all(step.done <= step.total for step in told) and told[-1].done == told[-1].total


def random_suite(unit: Unit, random: Random, acts: tuple[Act, ...]) -> SimulatedSuite:
    """A suite that is right on correct code and does anything of `acts` on mutants."""
    tests = tuple(f"test_{n}" for n in range(random.randint(1, 5)))
    table = {mutant.id: {test: random.choice(acts) for test in tests} for mutant in unit.mutants}
    return SimulatedSuite(unit, tests, table)


@pytest.mark.parametrize("policy", [STANDARD, FIRST_KILL])
def test_the_score_never_rises_when_a_valid_test_is_removed(unit: Unit, policy: Policy) -> None:
    unit = a_unit(unit, [f"m{n}" for n in range(5)])
    random = Random(23)
    for _ in range(40):
        suite = random_suite(unit, random, (Act.PASS, Act.PASS, Act.FAIL, Act.ERROR, Act.SKIP, Act.HANG))
        fewer = replace(suite, tests=suite.tests[1:], log=[])
        whole, part = suite.grade(policy=policy).mutation, fewer.grade(policy=policy).mutation
        assert whole is not None and part is not None
        assert part.score <= whole.score


def test_any_test_that_rejects_any_correct_code_voids_every_suite(unit: Unit) -> None:
    unit = a_unit(unit, [f"m{n}" for n in range(3)])
    random = Random(29)
    variants = ["reference", *(wheat.id for wheat in unit.wheats)]
    for _ in range(40):
        suite = random_suite(unit, random, (Act.PASS, Act.FAIL))
        bad = {random.choice(variants): {random.choice(suite.tests): random.choice((Act.FAIL, Act.ERROR, Act.HANG))}}
        mutation = replace(suite, acts={**suite.acts, **bad}).grade().mutation
        assert mutation is not None and (mutation.score, mutation.passed) == (0.0, False)


@pytest.mark.parametrize("policy", [STANDARD, FIRST_KILL])
def test_whichever_of_the_runs_under_way_ends_first_mutants_come_to_the_same_end(unit: Unit, policy: Policy) -> None:
    """Also where a test is found on one wheat, run among the last, to say nothing."""
    unit = a_unit(unit, [f"m{n}" for n in range(6)])
    random = Random(31)
    for seed in range(30):
        suite = random_suite(unit, random, (Act.PASS, Act.FAIL, Act.ERROR, Act.SKIP))
        if seed % 3 == 0:
            suite = replace(suite, acts={**suite.acts, "w02": {random.choice(suite.tests): Act.SKIP}})
        busy = suite.grade(seed, policy, sandbox=BusySandbox(suite.answer, random))
        calm = suite.grade(seed, policy)
        assert parts(busy) == parts(calm)
        if policy is STANDARD:
            assert busy == calm


def test_mutants_are_confirmed_without_waiting_for_the_last_of_the_variants(unit: Unit) -> None:
    unit = a_unit(unit, [f"m{n}" for n in range(12)])
    suite = SimulatedSuite(unit, ("test_a", "test_b"), kills_all(unit))
    sandbox = BusySandbox(suite.answer, Random(3))
    assert set(statuses(suite.grade(sandbox=sandbox)).values()) == {KILLED}
    last = sandbox.batches[-1]
    assert [bool(run.suite.only) for run in last] == [False] * 20 + [True] * 12


def test_where_correct_code_has_failed_no_mutant_is_confirmed_before_all_of_it_was_run(unit: Unit) -> None:
    unit = a_unit(unit, [f"m{n}" for n in range(12)])
    suite = SimulatedSuite(unit, ("test_a", "test_b"), kills_all(unit) | {"w01": {"test_b": Act.FAIL}})
    sandbox = BusySandbox(suite.answer, Random(3))
    assert set(statuses(suite.grade(sandbox=sandbox)).values()) == {KILLED}
    assert [any(run.suite.only for run in batch) for batch in sandbox.batches[-2:]] == [False, True]


def test_the_time_of_confirmations_begins_when_all_variants_have_been_run(small: Unit) -> None:
    suite = SimulatedSuite(small, ("test_a",), kills_all(small))
    sandbox = FakeSandbox(suite.answer)
    clock = lambda: float(len(suite.log))  # noqa: E731
    report = grade(small, suite.submission(), sandbox=sandbox, seed=1, about=ABOUT, clock=clock)
    assert (report.timing.phases["mutants"], report.timing.phases["confirmation"]) == (10.0, 2.0)


def test_a_grading_that_is_told_to_stop_ends_its_sandbox_and_leaves_as_a_failure_of_ours(small: Unit) -> None:
    suite, stop = SimulatedSuite(small, ("test_a",), kills_all(small)), Stop()
    phases: list[str] = []

    def tell_at_the_mutants(progress: Progress) -> None:
        phases.append(progress.phase)
        if progress.phase == "mutants":
            stop.tell()

    with pytest.raises(SandboxError, match="cancelled"):
        grade(
            small,
            suite.submission(),
            sandbox=FakeSandbox(suite.answer),
            seed=1,
            about=ABOUT,
            progress=tell_at_the_mutants,
            stop=stop,
        )
    assert phases[-1] == "mutants"
