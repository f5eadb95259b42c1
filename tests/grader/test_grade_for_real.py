"""Suites that try to be graded better than they are, run for real as processes of this machine on a small unit."""

from collections.abc import Iterator

import pytest

from grader.grade import grade
from grader.report import MutantStatus, Report, Verdict
from grader.submission import Submission
from grader.unit import Unit
from sandbox.process import ProcessSandbox
from sandbox.records import File
from tests.grader.simulated import ABOUT, codes, statuses

HONEST = "from tinyllm.demo.double import Double\n\n\ndef test_doubles():\n    assert Double()(3) == 6\n"
HIDES_FAILURES = """\
import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.outcome = "passed"
    return report
"""
LEAVES_ON_FAILURE = "import os\n\n\ndef pytest_runtest_logreport(report):\n    if report.failed:\n        os._exit(0)\n"
EXITS_IN_TEST = HONEST.replace(
    "    assert Double()(3) == 6\n", "    if Double()(3) != 6:\n        pytest.exit('caught')\n"
)
HANGS_ON_MUTANT = HONEST.replace("    assert Double()(3) == 6\n", "    while Double()(3) != 6:\n        pass\n")
STRICT_XFAIL = HONEST.replace("def test", "@pytest.mark.xfail(strict=True)\ndef test").replace("== 6", "!= 6")
SKIPS_ON_MUTANT = HONEST.replace(
    "    assert Double()(3) == 6\n", "    if Double()(3) != 6:\n        pytest.skip('caught')\n"
)
REMEMBERS = """\
import pathlib

from tinyllm.demo.double import Double


def test_is_the_first_run_here():
    assert Double()
    for place in (".", "~"):
        marker = pathlib.Path(place).expanduser() / "autograder-was-here"
        assert not marker.exists()
        marker.write_text("x")
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    yield ProcessSandbox(jobs=2)


def graded(unit: Unit, sandbox: ProcessSandbox, **files: str) -> Report:
    tests = tuple(File(f"{stem}.py", f"import pytest\n{text}".encode()) for stem, text in files.items())
    submission = Submission(unit.id, {file.path: file.reference for file in unit.files}, tests)
    return grade(unit, submission, sandbox=sandbox, seed=3, about=ABOUT)


def test_an_honest_suite_passes(unit: Unit, sandbox: ProcessSandbox) -> None:
    report = graded(unit, sandbox, test_honest=HONEST)
    assert (report.verdict, report.score) == (Verdict.PASS, 1.0)


@pytest.mark.parametrize("names_it", ["conftest", "test_more"])
def test_a_plugin_that_is_not_there_is_said_to_be_none_of_what_is(
    unit: Unit, sandbox: ProcessSandbox, names_it: str
) -> None:
    report = graded(unit, sandbox, test_honest=HONEST, **{names_it: 'pytest_plugins = ["pytest_randomly"]\n'})
    assert "suite_not_loaded" in codes(report)
    for part in (f"{names_it}.py cannot be loaded", "pytest_randomly", "tinyllm, numpy, pytest and hypothesis"):
        assert part in report.next_step, report.next_step


def test_a_conftest_that_hides_failures_is_found_by_the_forced_failure(unit: Unit, sandbox: ProcessSandbox) -> None:
    report = graded(unit, sandbox, test_honest=HONEST, conftest=HIDES_FAILURES)
    assert "no_failure_seen" in codes(report)
    assert report.mutation is not None and (report.mutation.score, report.mutation.passed) == (0.0, False)


@pytest.mark.parametrize(
    "suite", [{"test_honest": HONEST, "conftest": LEAVES_ON_FAILURE}, {"test_exits": EXITS_IN_TEST}]
)
def test_leaving_the_process_on_a_mutant_catches_nothing(
    unit: Unit, sandbox: ProcessSandbox, suite: dict[str, str]
) -> None:
    report = graded(unit, sandbox, **suite)
    assert statuses(report) == {"s01": MutantStatus.VOID}
    assert report.mutation is not None and report.mutation.score == 0.0


def test_a_strict_xfail_turned_round_catches_nothing(unit: Unit, sandbox: ProcessSandbox) -> None:
    report = graded(unit, sandbox, test_honest="def test_nothing():\n    pass\n", test_round=STRICT_XFAIL)
    assert statuses(report) == {"s01": MutantStatus.SURVIVED}


def test_a_skip_on_a_mutant_catches_nothing(unit: Unit, sandbox: ProcessSandbox) -> None:
    assert statuses(graded(unit, sandbox, test_skips=SKIPS_ON_MUTANT)) == {"s01": MutantStatus.SURVIVED}


def test_a_hang_on_a_mutant_is_a_timeout_that_counts(unit: Unit, sandbox: ProcessSandbox) -> None:
    report = graded(unit, sandbox, test_hangs=HANGS_ON_MUTANT, test_honest="def test_other():\n    pass\n")
    assert statuses(report) == {"s01": MutantStatus.TIMEOUT}
    assert report.mutation is not None and report.mutation.killed == 1


def test_nothing_lies_about_from_one_run_to_the_next_where_a_run_may_write(unit: Unit, sandbox: ProcessSandbox) -> None:
    report = graded(unit, sandbox, test_remembers=REMEMBERS)
    assert statuses(report) == {"s01": MutantStatus.SURVIVED}
    assert "flaky_tests" not in codes(report)
