"""Suites are ranked as a person would rank them, and each report tells its author the next test to write."""

import pytest

from grader.oracle import OracleProcesses
from grader.report import MutantStatus, Report, Verdict
from grader.unit import Unit
from grader.units import load_course
from sandbox.docker_engine import DockerSandbox
from tests.suites import COURSE, graded

pytestmark = [pytest.mark.docker, pytest.mark.full]

WORST_FIRST = ("suite_shapes_only", "suite_gradients_only", "suite_outputs_only", "staff")
NEXT_TEST = {  # what a person would ask for next
    "suite_shapes_only": "Test merge_heads on numbers whose place you know",
    "suite_gradients_only": "Test merge_heads on numbers whose place you know",
    "suite_outputs_only": "Test a [B, Tq, Tk] mask that differs between sequences",
}


@pytest.fixture(scope="module")
def unit() -> Unit:
    return load_course(COURSE).units["L5.3"]


@pytest.fixture(scope="module")
def reports(unit: Unit) -> dict[str, Report]:
    with DockerSandbox(jobs=2) as sandbox, OracleProcesses() as oracle:
        return {suite: graded(suite, unit, sandbox, oracle, seed=7) for suite in WORST_FIRST}


def test_suites_are_ranked_as_a_person_would_rank_them(reports: dict[str, Report]) -> None:
    scores = [reports[suite].mutation.score for suite in WORST_FIRST]  # type: ignore[union-attr]
    assert scores == sorted(scores) and len(set(scores)) == len(scores)
    assert reports["staff"].verdict is Verdict.PASS and scores[-1] == 1.0 and scores[0] < 0.2


def test_each_report_names_the_next_test_to_write(reports: dict[str, Report]) -> None:
    for suite, test in NEXT_TEST.items():
        assert test in reports[suite].next_step, reports[suite].next_step


def test_the_best_category_of_each_is_what_its_tests_are_about(reports: dict[str, Report]) -> None:
    best = {}
    for suite in ("suite_gradients_only", "suite_outputs_only"):
        part = reports[suite].mutation
        assert part is not None
        best[suite] = {each.category for each in part.categories if each.killed * 2 > each.total}
    assert "gradient" in best["suite_gradients_only"] and "layout" not in best["suite_gradients_only"]
    assert {"layout", "scale", "projection"} <= best["suite_outputs_only"]
    assert not {"gradient", "loading"} & best["suite_outputs_only"]


def test_survivors_have_hints_that_do_not_all_say_the_same(reports: dict[str, Report]) -> None:
    for suite in WORST_FIRST[:-1]:
        part = reports[suite].mutation
        assert part is not None
        hints = {mutant.hint for mutant in part.mutants if mutant.status is MutantStatus.SURVIVED}
        assert len(hints) >= 8 and all(hints)
