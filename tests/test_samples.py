"""Every sample is graded in the real sandbox and ends as its expected.toml says."""

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from grader import conclude
from grader.errors import Rejected
from grader.grade import About, grade
from grader.intake import take_in
from grader.oracle import OracleProcesses
from grader.plan import smoke_first
from grader.report import CourseTestPart, Outcome, Report, StudentTestPart, Verdict
from grader.submission import Upload
from grader.text import render
from grader.unit import Unit
from grader.units import load_course
from grader.views import for_role
from sandbox.docker_engine import DockerSandbox
from tests.samples.loading import FIRST, Expected, Sample, first_screens, load, names
from tests.samples.loading import units as sample_units

COURSE = Path(__file__).resolve().parent.parent / "course"
ABOUT = About(id="sample", course="default", student=None, received_at=datetime(2026, 1, 1, tzinfo=UTC))
BY_CHANCE = {"flaky_tests", "rejects_correct_code", "own_tests"}  # which of them, a test without a seed decides
LATE = ("cpu_time", "no_progress")
NOT_PASSED = (Outcome.FAILED, Outcome.ERROR, Outcome.TIMEOUT)


UNITS = sample_units()


@pytest.fixture(scope="module")
def units() -> Mapping[str, Unit]:
    return load_course(COURSE).units


@pytest.fixture
def unit(name: str, units: Mapping[str, Unit]) -> Unit:
    """The unit that a sample is of, by the sample's name."""
    folder, inner, _ = name.partition("/")
    return units[folder if inner else FIRST]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    with DockerSandbox(jobs=2) as opened:
        yield opened


@pytest.fixture(scope="module")
def oracle() -> Iterator[OracleProcesses]:
    with OracleProcesses() as opened:
        yield opened


def cases() -> list[Any]:
    return [pytest.param(name, marks=[] if load(name).smoke else [pytest.mark.full]) for name in everything()]


def everything() -> list[str]:
    return [name for unit in UNITS for name in names(unit)]


@pytest.mark.docker
@pytest.mark.parametrize("name", cases())
def test_sample_ends_as_expected(name: str, unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses) -> None:
    sample = load(name)
    report = graded(sample, unit, sandbox, oracle)
    assert_well_formed(report, unit)
    assert seen(report, sample.expected, unit) == wanted(sample.expected, unit), render(report)


@pytest.mark.parametrize("name", everything())
def test_expectation_is_complete_and_names_what_exists(name: str, unit: Unit) -> None:
    sample = load(name)
    expected = sample.expected
    mutants = {mutant.id for mutant in unit.mutants}
    tests = {test.name for test in unit.course_tests}
    assert sample.about and sample.kind and sample.tests
    assert expected.verdict in {verdict.value for verdict in Verdict}
    assert expected.reasons
    assert 0 <= expected.score_min <= expected.score_max <= 1
    assert {*expected.killed, *expected.survived} <= mutants
    assert failing(expected, unit) | set(expected.course_causes) | set(expected.messages) <= tests
    if expected.verdict == "pass":
        assert not (expected.fails or expected.rejects or expected.problems)


@pytest.mark.parametrize("of", UNITS)
def test_every_kind_of_sample_has_one_that_every_change_is_tried_with(of: str) -> None:
    samples = [load(name) for name in names(of)]
    assert samples
    assert {sample.kind for sample in samples} == {sample.kind for sample in samples if sample.smoke}


def test_of_every_sample_that_does_not_pass_it_is_written_down_what_its_first_screen_names() -> None:
    assert set(first_screens()) == {name for name in everything() if load(name).expected.verdict != "pass"}
    assert all(first_screens().values())


@pytest.mark.parametrize("of", UNITS)
def test_every_pitfall_of_the_unit_has_a_sample(of: str, units: Mapping[str, Unit]) -> None:
    shown = {word.partition(":")[2] for name in names(of) for word in load(name).expected.fails}
    assert {mutant.id for mutant in units[of].mutants if mutant.tier == "semantic"} <= shown


# --- what the tests share -------------------------------------------------------------------------------------------


def graded(sample: Sample, unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses) -> Report:
    try:
        file = {unit.stem_of(sample.sent_as): Upload(f"{sample.sent_as}.py", sample.mha)}
        submission = take_in(unit, file, sample.tests)
    except Rejected as refusal:
        return conclude.rejected(unit.id, ABOUT, refusal.code, f"{refusal.path}: {refusal.message}")
    return grade(unit, submission, sandbox=sandbox, oracle=oracle, seed=20260101, about=ABOUT)


def assert_well_formed(report: Report, unit: Unit) -> None:
    """What holds for every report, whatever was sent."""
    text = report.to_json()
    data = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} in the report"))
    jsonschema.validate(data, Report.model_json_schema(by_alias=True, mode="serialization"))
    assert Report.model_validate_json(text) == report
    assert report.next_step
    assert report.reasons and all(reason.code and reason.message for reason in report.reasons)
    printed = render(report)
    assert printed.isprintable() or all(line.isprintable() for line in printed.splitlines())
    if report.verdict is Verdict.REJECTED:
        return
    assert report.course_tests and report.mutation and report.student_tests
    assert [test.id for test in report.course_tests.tests] == [test.name for test in smoke_first(unit)]
    assert [mutant.id for mutant in report.mutation.mutants] == [mutant.id for mutant in unit.mutants]
    assert report.mutation.total == len(unit.mutants)
    answers = [test for test in report.course_tests.tests if test.kind != "rule"]  # rules say how, the oracle what
    right = all(test.outcome is Outcome.PASSED for test in answers)
    assert report.oracle and report.oracle.status in (("agree",) if right else ("disagree", "not_run"))
    for test in report.course_tests.tests:
        assert test.outcome is Outcome.PASSED or test.message, f"{test.id} does not say why"


def first_screen(report: Report) -> str:
    """What its student reads without scrolling, in small letters: 20 rows of 100 columns."""
    lines = render(for_role(report, "student")).splitlines()
    rows = [row for line in lines for row in (textwrap.wrap(line, 100, break_on_hyphens=False) or [""])]
    return " ".join(row.strip() for row in rows[:20]).lower()


def failing(expected: Expected, unit: Unit) -> set[str]:
    """The course tests that must not pass, with "all" and "catches:..." looked up in the unit."""
    found: set[str] = set()
    for word in expected.fails:
        if word == "all":
            found |= {test.name for test in unit.course_tests}
        elif word.startswith("catches:"):
            found |= {test.name for test in unit.course_tests if word.partition(":")[2] in test.catches}
        else:
            found.add(word)
    return found


def causes(tests: Iterable[StudentTestPart | CourseTestPart], expected: Mapping[str, str]) -> dict[str, str]:
    """Codes of causes by test. Which of the two clocks an endless loop meets first depends on the machine's load."""
    found = {test.id: test.cause.code for test in tests if test.cause is not None}
    late = {name for name, code in found.items() if code in LATE and expected.get(name) == "late"}
    return {name: "late" if name in late else code for name, code in found.items()}


def wanted(expected: Expected, unit: Unit) -> dict[str, object]:
    """What is compared, as it has to be."""
    values: dict[str, object] = {"verdict": expected.verdict, "reasons": sorted(expected.reasons)}
    values |= {f"intake says {text!r}": True for text in expected.intake}
    values |= {f"next step says {text!r}": True for text in expected.next_step}
    values |= {f"first screen says {text!r}": True for text in expected.first_screen}
    if expected.verdict == "rejected":
        return values
    values |= {
        "course tests that fail": sorted(failing(expected, unit)),
        "problems": sorted(expected.problems),
        "rejects": sorted((*expected.rejects, *expected.unsteady)),
        "score in bounds": True,
        "killed": sorted(expected.killed),
        "survived": sorted(expected.survived),
        "causes": dict(expected.causes),
        "course causes": dict(expected.course_causes),
    }
    values |= {f"advice on {test} says {text!r}": True for test, texts in expected.advice.items() for text in texts}
    values |= {f"{test} says {text!r}": True for test, texts in expected.messages.items() for text in texts}
    if expected.mutants is not None:
        values["mutants"] = [expected.mutants]
    if expected.own_fails is not None:
        values["fail on own code"] = sorted(expected.own_fails)
    if expected.tests_total is not None:
        values["tests"] = expected.tests_total
    if expected.oracle is not None:
        values["oracle"] = expected.oracle
    return values


def seen(report: Report, expected: Expected, unit: Unit) -> dict[str, object]:
    """The same, as it is."""
    notes = [f"{note.action} {note.path} {note.message}" for note in report.intake]
    values: dict[str, object] = {
        "verdict": report.verdict.value,
        "reasons": sorted(reason.code for reason in report.reasons),
    }
    if expected.unsteady:
        values["reasons"] = sorted({reason.code for reason in report.reasons} - BY_CHANCE)
    values |= {f"intake says {text!r}": any(text in note for note in notes) for text in expected.intake}
    values |= {f"next step says {text!r}": text in report.next_step for text in expected.next_step}
    screen = first_screen(report)
    values |= {f"first screen says {text!r}": text.lower() in screen for text in expected.first_screen}
    if report.course_tests is None or report.student_tests is None or report.mutation is None:
        return values
    course, tests, mutation = report.course_tests.tests, report.student_tests.tests, report.mutation
    statuses = {mutant.id: mutant.status.value for mutant in mutation.mutants}
    values |= {
        "course tests that fail": sorted(test.id for test in course if test.outcome is not Outcome.PASSED),
        "problems": sorted(f"{p.code}:{p.file}:{p.line}" for p in report.contract.problems) if report.contract else [],
        "rejects": sorted(test.id for test in tests if test.valid is False),
        "score in bounds": expected.score_min <= mutation.score <= expected.score_max
        and mutation.score_if_valid >= expected.score_if_valid_min,
        "killed": sorted(mid for mid in expected.killed if statuses[mid] == "killed"),
        "survived": sorted(mid for mid in expected.survived if statuses[mid] == "survived"),
        "causes": causes(tests, expected.causes),
        "course causes": causes(course, expected.course_causes),
    }
    advice = {test.id: test.advice for test in tests}
    messages = {test.id: test.message for test in course}
    for name, texts in expected.advice.items():
        values |= {f"advice on {name} says {text!r}": text in advice.get(name, "") for text in texts}
    for name, texts in expected.messages.items():
        values |= {f"{name} says {text!r}": text in messages[name] for text in texts}
    if expected.mutants is not None:
        values["mutants"] = sorted(set(statuses.values()))
    if expected.own_fails is not None:
        values["fail on own code"] = sorted(test.id for test in tests if test.own_code in NOT_PASSED)
    if expected.tests_total is not None:
        values["tests"] = report.student_tests.total
    if expected.oracle is not None:
        values["oracle"] = report.oracle.status if report.oracle else None
    return values
