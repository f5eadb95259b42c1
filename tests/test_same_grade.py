"""An honest suite gets the same grade whatever the seed: other renderings, another order, other cases."""

from collections.abc import Iterator

import pytest

from grader.oracle import OracleProcesses
from grader.report import Report
from grader.unit import Unit
from grader.units import load_course
from sandbox.docker_engine import DockerSandbox
from tests.suites import COURSE, graded

SUITES = ("staff", "suite_fixtures", "suite_hypothesis", "suite_outputs_only", "suite_parametrised", "suite_unittest")
SEEDS = range(10)


@pytest.fixture(scope="module")
def unit() -> Unit:
    return load_course(COURSE).units["L5.3"]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    with DockerSandbox(jobs=2) as opened:
        yield opened


@pytest.fixture(scope="module")
def oracle() -> Iterator[OracleProcesses]:
    with OracleProcesses() as processes:
        yield processes


def decided(report: Report) -> object:
    """Everything a grade consists of."""
    assert report.mutation is not None and report.student_tests is not None and report.course_tests is not None
    return (
        report.verdict,
        report.score,
        report.oracle and report.oracle.status,
        [reason.code for reason in report.reasons],
        [(test.id, test.outcome) for test in report.course_tests.tests],
        [(test.id, test.valid, test.own_code) for test in report.student_tests.tests],
        report.mutation.score,
        [(mutant.id, mutant.status) for mutant in report.mutation.mutants],
    )


@pytest.mark.docker
def test_the_staff_suite_passes_with_two_seeds_alike(
    unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses
) -> None:
    reports = [graded("staff", unit, sandbox, oracle, seed) for seed in (101, 102)]
    assert {report.verdict.value for report in reports} == {"pass"}
    assert decided(reports[0]) == decided(reports[1])


@pytest.mark.docker
@pytest.mark.full
@pytest.mark.parametrize("suite", SUITES)
def test_an_honest_suite_gets_one_grade_with_ten_seeds(
    suite: str, unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses
) -> None:
    first = decided(graded(suite, unit, sandbox, oracle, SEEDS[0]))
    for seed in SEEDS[1:]:
        assert decided(graded(suite, unit, sandbox, oracle, seed)) == first, f"seed {seed}"
