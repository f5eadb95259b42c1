"""Mutants come to the same end whether the tests that reach them are tried first or not, and whether what fails does
so again in the same process or in another."""

from dataclasses import replace

import pytest

from grader.candidates import files_with, propose, screened
from grader.grade import grade
from grader.intake import take_in
from grader.plan import STANDARD, Policy
from grader.submission import Upload
from grader.unit import Mutant, Unit
from grader.units import load_course
from sandbox.process import ProcessSandbox
from tests.grader.simulated import ABOUT, statuses
from tests.suites import COURSE, suite_of

SUITES = (
    *("staff", "correct_plain", "suite_gradients_only", "suite_outputs_only", "suite_shapes_only", "suite_fixtures"),
    *("suite_parametrised", "suite_unittest", "suite_monkeypatch", "suite_hypothesis", "suite_unicode_and_nan"),
)
FIRST = replace(STANDARD, full_matrix_cpu_seconds=0.0)
COMPLETE = replace(STANDARD, full_matrix_cpu_seconds=1e9)
WHOLE = replace(FIRST, few_tests_share=0.0)
"""no run of few tests only, and each confirmation a process of its own"""
GENERATED = 300


@pytest.fixture(scope="module")
def unit() -> Unit:
    return replace(load_course(COURSE).units["L5.3"], oracle=None)  # this is about the mutants


def statuses_of(name: str, unit: Unit, policy: Policy) -> dict[str, object]:
    files = {file.stem: Upload(f"{file.stem}.py", file.reference) for file in unit.files}
    submission = take_in(unit, files, suite_of(name, unit))
    report = grade(unit, submission, sandbox=ProcessSandbox(jobs=2), seed=11, about=ABOUT, policy=policy)
    return dict(statuses(report))


@pytest.mark.full
@pytest.mark.parametrize("name", SUITES)
def test_an_honest_suite_catches_the_same_mutants(name: str, unit: Unit) -> None:
    assert statuses_of(name, unit, FIRST) == statuses_of(name, unit, COMPLETE) == statuses_of(name, unit, WHOLE)


@pytest.mark.full
def test_three_hundred_generated_mutants_come_to_the_same_end(unit: Unit) -> None:
    candidates, _ = screened(unit, propose(unit))
    assert len(candidates) >= GENERATED
    step = len(candidates) / GENERATED
    chosen = [candidates[int(number * step)] for number in range(GENERATED)]
    mutants = tuple(
        Mutant(f"g{number}", "auto", "op", 1, False, "", "", "", files_with(unit, one))
        for number, one in enumerate(chosen)
    )
    many = replace(unit, mutants=mutants, required_mutants=())
    found = statuses_of("correct_plain", many, FIRST)
    assert found == statuses_of("correct_plain", many, WHOLE)
    assert len(set(found.values())) > 1
