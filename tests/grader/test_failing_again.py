"""Where tests share nothing, what fails on a mutant does so again in its first run; that can confirm, and no more."""

from collections import Counter
from random import Random

import pytest

from grader.plan import STANDARD, Policy, correct_variants
from grader.unit import Unit
from sandbox.records import Module, Run, RunResult
from tests.grader.simulated import Act, SimulatedSuite, a_unit, statuses
from tests.grader.test_reach import ALL, CORRECT, FEW, FIRST_FAILURE, KILLED, SURVIVED, TESTS, runs_on, suite_of, wider

__all__ = ["wider"]
WIDE = {"n": {"test_b": Act.FAIL, "test_c": Act.FAIL}}


def renderings(modules: tuple[Module, ...]) -> tuple[bytes, ...]:
    return tuple(module.source for module in modules)


def test_a_failure_that_comes_again_needs_no_further_run(wider: Unit) -> None:
    suite = suite_of(wider, WIDE, goes_on=True)
    report = suite.grade(policy=FIRST_FAILURE)
    assert statuses(report) == {"m": SURVIVED, "n": KILLED} and runs_on(suite, "n") == [ALL]
    assert report.mutation is not None and len(report.mutation.mutants[1].killed_by) == 1


def test_where_the_process_did_not_go_on_it_is_confirmed_in_another(wider: Unit) -> None:
    suite = suite_of(wider, WIDE)
    assert statuses(suite.grade(policy=FIRST_FAILURE)) == {"m": SURVIVED, "n": KILLED}
    assert runs_on(suite, "n") == [ALL, ALL] and suite.log[-1][1].suite.only


def test_every_first_run_has_another_rendering_and_no_other_run_has(wider: Unit) -> None:
    suite = suite_of(wider, {"m": {"test_a": Act.FAIL}, **WIDE}, goes_on=True)
    suite.grade(policy=FIRST_FAILURE)
    having = [(on, run) for on, run in suite.log if run.other_version]
    correct = Counter(variant.id for variant in correct_variants(wider, FIRST_FAILURE))
    assert Counter(on for on, _ in having) == correct + Counter("mn")
    for _, run in having:
        assert not run.suite.messages and not run.suite.skip and not run.suite.only
        assert renderings(run.other_version) != renderings(run.modules)
        assert [module.name for module in run.other_version] == [module.name for module in run.modules]
    first_of_reference = [renderings(run.modules) for on, run in having if on == "reference"]
    assert len(set(first_of_reference)) == len(first_of_reference) > 1


def test_a_suite_that_may_share_something_has_none(wider: Unit) -> None:
    suite = suite_of(wider, WIDE, goes_on=True, enters=None)
    assert statuses(suite.grade(policy=FIRST_FAILURE)) == {"m": SURVIVED, "n": KILLED}
    assert not any(run.other_version for _, run in suite.log)


def test_where_all_tests_run_every_one_that_failed_may_confirm(wider: Unit) -> None:
    """The first that fails again is enough, and the failure of one that rejects correct code is none."""
    for acts in (WIDE, {"w01": {"test_b": Act.FAIL}, **WIDE}):
        suites = [suite_of(wider, acts, goes_on=goes_on) for goes_on in (True, False)]
        reports = [suite.grade(policy=STANDARD) for suite in suites]
        found = [[mutant.killed_by for mutant in report.mutation.mutants] for report in reports if report.mutation]
        assert found[0] == found[1] and "test_mine.py::test_c" in found[0][1]
        assert (runs_on(suites[0], "n") == [ALL]) is (acts is WIDE)


class PassesAgain(SimulatedSuite):
    """What has failed passes in the second part of that run; on `n` it fails in each process of its own."""

    def _on_other_version(self, run: Run, words: str) -> RunResult:
        acts, self.acts = self.acts, {}
        result = super()._on_other_version(run, words)
        self.acts = acts
        return result


def test_one_that_does_not_come_again_is_confirmed_in_another_process(wider: Unit) -> None:
    suite = PassesAgain(wider, TESTS, WIDE, enters=suite_of(wider).enters, goes_on=True)
    report = suite.grade(policy=FIRST_FAILURE)
    assert statuses(report) == {"m": SURVIVED, "n": KILLED}
    assert runs_on(suite, "n") == [ALL, ALL] and suite.log[-1][1].suite.only


def test_one_that_was_confirmed_by_few_tests_stays_so(wider: Unit) -> None:
    suite = PassesAgain(wider, TESTS, {"m": {"test_a": Act.FAIL}}, enters=suite_of(wider).enters, goes_on=True)
    assert statuses(suite.grade(policy=FIRST_FAILURE)) == {"m": KILLED, "n": SURVIVED}
    assert runs_on(suite, "m") == [FEW, ALL]


def test_a_test_whose_failures_do_not_count_confirms_nothing(wider: Unit) -> None:
    """It rejects a wheat; the one behind it still finds the mutant."""
    acts = {"w01": {"test_b": Act.FAIL}, **WIDE}
    suites = [suite_of(wider, acts, goes_on=goes_on) for goes_on in (True, False)]
    reports = [suite.grade(policy=FIRST_FAILURE) for suite in suites]
    found = [[mutant.killed_by for mutant in report.mutation.mutants] for report in reports if report.mutation]
    assert found[0] == found[1] and "test_mine.py::test_c" in found[0][1]


@pytest.mark.parametrize("policy", [FIRST_FAILURE, STANDARD])
def test_statuses_are_the_same_with_and_without(unit: Unit, policy: Policy) -> None:
    random = Random(11)
    names = [f"m{n}" for n in range(6)]
    unit = a_unit(unit, names)
    kinds = [Act.PASS] * 4 + [Act.FAIL, Act.ERROR, Act.HANG, Act.EXIT, Act.SKIP, Act.XFAIL]
    for seed in range(40):
        acts = {mid: {test: random.choice(kinds) for test in TESTS} for mid in names}
        if seed % 4 == 0:
            acts[random.choice(CORRECT)] = {random.choice(TESTS): random.choice([Act.FAIL, Act.SKIP])}
        suites = [
            SimulatedSuite(unit, TESTS, acts, enters=dict.fromkeys(TESTS, 1), goes_on=goes_on)
            for goes_on in (True, False)
        ]
        one, two = (statuses(suite.grade(seed, policy)) for suite in suites)
        assert one == two
        if seed % 4:
            assert len(suites[0].log) <= len(suites[1].log)
