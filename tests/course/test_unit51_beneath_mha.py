"""Multi-head attention is handed in with the student's own scaled dot-product attention beneath it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from grader import deps
from grader.errors import Rejected
from grader.grade import grade
from grader.intake import take_in
from grader.oracle import OracleProcesses
from grader.report import Outcome, Report, Verdict
from grader.submission import Submission, Upload
from grader.unit import Unit
from grader.units import load_course
from sandbox.docker_engine import DockerSandbox
from tests.course.whole import SDPA
from tests.grader.simulated import ABOUT
from tests.samples.loading import load


@pytest.fixture(scope="module")
def unit() -> Unit:
    return load_course(SDPA.course).units["L5.3"]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    with DockerSandbox(jobs=2) as opened:
        yield opened


def sent(unit: Unit, sdpa: str | None) -> Submission:
    """A correct mha.py and its tests, with the sdpa.py of a sample of L5.1."""
    mha = load("correct_plain")
    files = {"mha": Upload("mha.py", mha.mha)}
    if sdpa is not None:
        files["sdpa"] = Upload("sdpa.py", load(f"L5.1/{sdpa}").mha)
    return take_in(unit, files, mha.tests)


def graded(unit: Unit, sandbox: DockerSandbox, sdpa: str) -> Report:
    with OracleProcesses() as oracle:
        return grade(unit, sent(unit, sdpa), sandbox=sandbox, oracle=oracle, seed=51, about=ABOUT)


def test_without_reference_deps_attention_is_to_be_built_or_sent_along(unit: Unit) -> None:
    none = deps.ref_deps("none")
    with pytest.raises(Rejected) as refused:
        deps.check(unit, sent(unit, None), none)
    assert "needs L5.1, Scaled dot-product attention" in refused.value.message
    assert "-F sdpa=@sdpa.py" in refused.value.message
    deps.check(unit, sent(unit, "correct_plain"), none)
    deps.check(unit, sent(unit, None), none, passed=["L5.1"])
    deps.check(unit, sent(unit, None), deps.ref_deps("all"))


@pytest.mark.docker
@pytest.mark.full
def test_correct_code_of_both_units_passes(unit: Unit, sandbox: DockerSandbox) -> None:
    report = graded(unit, sandbox, "correct_one_key_at_a_time")
    assert report.verdict is Verdict.PASS
    assert ("L5.1", "submitted") in [(dep.id, dep.used) for dep in report.deps]


@pytest.mark.docker
def test_a_fault_beneath_fails_the_unit_above_and_not_the_grade_of_its_tests(
    unit: Unit, sandbox: DockerSandbox
) -> None:
    fewer = replace(unit, mutants=unit.mutants[:4], wheats=unit.wheats[:2], determinism_runs=1)
    report = graded(fewer, sandbox, "pitfall_scale_missing")
    assert report.course_tests is not None and report.oracle is not None and report.mutation is not None
    outcomes = {test.id: test.outcome for test in report.course_tests.tests}
    assert report.verdict is Verdict.FAIL
    assert outcomes["test_golden_torch"] is Outcome.FAILED
    assert outcomes["test_split_and_merge_layout"] is Outcome.PASSED
    assert report.oracle.status == "disagree"
    assert report.mutation.score == 1.0
