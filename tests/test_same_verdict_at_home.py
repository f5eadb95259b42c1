"""What `ol` says on a student's machine is what the service says: contract, every course test, every mutant."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from grader.grade import About, grade
from grader.intake import take_in
from grader.ol import trials
from grader.oracle import OracleProcesses
from grader.report import Report
from grader.submission import Upload
from grader.unit import Unit
from grader.units import load_course
from sandbox.docker_engine import DockerSandbox
from tests.samples.loading import FIRST, load, names
from tests.samples.loading import units as sample_units

COURSE = Path(__file__).resolve().parent.parent / "course"
ABOUT = About(id="sample", course="default", student=None, received_at=datetime(2026, 1, 1, tzinfo=UTC))
HONEST = (
    *("correct_", "pitfall_", "float32_only", "renamed_parameter", "missing_method", "raises_in_init", "import_error"),
    *("suite_outputs_only", "suite_shapes_only", "suite_gradients_only", "suite_parametrised", "suite_hypothesis"),
    *("suite_fixtures", "suite_unittest", "suite_monkeypatch", "suite_over_strict", "suite_other_module"),
)
ON_EVERY_CHANGE = ("pitfall_keys_from_queries",)


@pytest.fixture(scope="module")
def units() -> Mapping[str, Unit]:
    return load_course(COURSE).units


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    with DockerSandbox(jobs=2) as opened:
        yield opened


def cases() -> list[Any]:
    found = [name for unit in sample_units() for name in names(unit) if name.rpartition("/")[2].startswith(HONEST)]
    return [pytest.param(name, marks=[] if name in ON_EVERY_CHANGE else [pytest.mark.full]) for name in found]


def said(report: Report) -> dict[str, object]:
    """What a student reads of a report, by test and by mutant."""
    assert report.contract is not None and report.course_tests is not None and report.mutation is not None
    return {
        "contract": [(problem.code, problem.file, problem.line) for problem in report.contract.problems],
        "course_tests": {test.id: test.outcome for test in report.course_tests.tests},
        "own_tests": report.student_tests and {test.id: test.valid for test in report.student_tests.tests},
        "mutants": {mutant.id: mutant.status for mutant in report.mutation.mutants},
        "score": report.mutation.score,
    }


@pytest.mark.docker
@pytest.mark.parametrize("name", cases())
def test_home_and_service_agree(name: str, units: Mapping[str, Unit], sandbox: DockerSandbox) -> None:
    folder, inner, _ = name.partition("/")
    unit, sample = units[folder if inner else FIRST], load(name)
    submission = take_in(unit, {unit.files[0].stem: Upload(f"{sample.sent_as}.py", sample.mha)}, sample.tests)
    with OracleProcesses() as oracle:
        there = grade(unit, submission, sandbox=sandbox, oracle=oracle, seed=5, about=ABOUT)
    here = trials.whole(unit, submission, lambda done: None)
    assert said(here) == said(there)
    assert here.oracle is not None and here.oracle.status == "not_run"
