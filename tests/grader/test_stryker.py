"""Stryker's report: valid by its published schema, with our number, and with nothing a reader may not see."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader import stryker
from grader.report import MutantStatus, Report
from grader.unit import Unit
from grader.units import DEFAULT_COURSE, load_course
from grader.views import for_role
from sandbox.records import File
from tests.grader.form_reports import (
    EVIL,
    ROLES,
    all_kinds,
    as_seen,
    failed,
    failing,
    hostile,
    rejected,
    the_unit,
    void,
)
from tests.grader.simulated import Act, SimulatedSuite, a_unit

SCHEMA = Path(__file__).parents[1] / "stryker" / "schema" / "mutation-testing-report-schema.json"


def strict(schema: Any) -> Any:
    """The schema, with no field allowed that it does not name: a misspelt one is not in it."""
    if isinstance(schema, dict):
        made = {key: strict(value) for key, value in schema.items()}
        if "properties" in made and isinstance(made["properties"], dict) and made.get("type") == "object":
            made.setdefault("additionalProperties", False)
        return made
    return [strict(each) for each in schema] if isinstance(schema, list) else schema


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(strict(json.loads(SCHEMA.read_text())))


def read(report: Report, unit: Unit | None = None, tests: tuple[File, ...] = ()) -> dict[str, Any]:
    return dict(json.loads(stryker.render(report, unit, tests)))


def mutants(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {mutant["id"]: mutant for file in document["files"].values() for mutant in file["mutants"]}


def stryker_score(document: Mapping[str, Any]) -> float | None:
    """As mutation-testing-metrics counts, in percent."""
    statuses = [mutant["status"] for mutant in mutants(document).values()]
    detected = sum(status in ("Killed", "Timeout") for status in statuses)
    valid = detected + sum(status in ("Survived", "NoCoverage") for status in statuses)
    return 100 * detected / valid if valid else None


def test_every_report_for_every_role_is_valid_by_the_published_schema(
    unit: Unit, validator: jsonschema.Draft7Validator
) -> None:
    tests = SimulatedSuite(the_unit(unit), ("test_a",)).submission().tests
    for report in as_seen(unit):
        for material in (None, the_unit(unit)):
            validator.validate(read(report, material, tests))


def test_the_number_is_our_score_in_every_report(unit: Unit) -> None:
    seen = 0
    for report in as_seen(unit):
        if report.mutation is not None:
            seen += 1
            for material in (None, the_unit(unit)):
                assert stryker_score(read(report, material)) == pytest.approx(100 * report.mutation.score, abs=1e-4)
    assert seen > 20


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    acts=st.lists(st.sampled_from([Act.PASS, Act.FAIL, Act.HANG, Act.CRASH, Act.SKIP]), min_size=7, max_size=7),
    wrong=st.booleans(),
)
def test_the_number_is_our_score_whatever_becomes_of_the_mutants(unit: Unit, acts: list[Act], wrong: bool) -> None:
    table = {f"m{number}": {"test_a": act} for number, act in enumerate(acts)}
    if wrong:
        table["w01"] = {"test_b": Act.FAIL}
    small = a_unit(unit, [f"m{number}" for number in range(7)], wheats=5)
    report = SimulatedSuite(small, ("test_a", "test_b"), table).grade()
    assert report.mutation is not None
    for role in ROLES:
        document = read(for_role(report, role), small)
        assert stryker_score(document) == pytest.approx(100 * report.mutation.score, abs=1e-4)
        if not wrong:
            assert report.mutation.score == report.mutation.score_if_valid


def test_statuses_are_told_in_strykers_words_with_why(unit: Unit) -> None:
    report = failing(unit)
    assert report.mutation is not None
    assert {mutant.status for mutant in report.mutation.mutants} == set(MutantStatus)
    told = mutants(read(report))
    assert {mid: mutant["status"] for mid, mutant in told.items()} == {
        "m1": "Killed",
        "m2": "Timeout",
        "m3": "Survived",
        "m4": "Survived",
        "m5": "CompileError",
    }
    assert all(told[mid]["statusReason"] for mid in ("m2", "m3", "m5"))
    assert told["m1"]["killedBy"] == ["test_mine.py::test_a"]
    assert told["m1"]["coveredBy"] == [f"test_mine.py::test_{each}" for each in "abcd"]


def test_what_was_caught_in_vain_survived_and_says_why(unit: Unit) -> None:
    told = mutants(read(void(unit)))
    assert told["m1"]["status"] == told["m2"]["status"] == "Survived"
    assert "void" in told["m1"]["statusReason"] and told["m1"]["killedBy"]


def test_every_test_named_by_a_mutant_is_in_the_test_files(unit: Unit) -> None:
    for report in as_seen(unit):
        document = read(report)
        known = {test["id"] for file in document.get("testFiles", {}).values() for test in file["tests"]}
        for mutant in mutants(document).values():
            assert {*mutant.get("killedBy", ()), *mutant.get("coveredBy", ())} <= known


def test_no_line_of_the_reference_is_in_what_a_student_gets(unit: Unit) -> None:
    lines = {line.strip() for file in unit.files for line in file.reference.decode().splitlines() if line.strip()}
    for report in all_kinds(unit):
        for role in ("student", "lms"):
            text = stryker.render(for_role(report, role))
            assert not [line for line in lines if len(line) > 12 and json.dumps(line)[1:-1] in text]
            assert "fault m" not in text and "replacement" not in text
    assert any("def forward" in file["source"] for file in read(failing(unit), the_unit(unit))["files"].values())


def test_a_student_reads_the_hints_that_their_report_shows(unit: Unit) -> None:
    view = for_role(failing(unit), "student")
    assert view.mutation is not None
    told = mutants(read(view))
    assert {mid: mutant.get("description", "") for mid, mutant in told.items()} == {
        mutant.id: mutant.hint for mutant in view.mutation.mutants
    }


def test_sources_of_another_version_of_the_unit_are_not_shown(unit: Unit) -> None:
    report, made = failing(unit), the_unit(unit)
    for other in (replace(made, digest="0" * 64), replace(made, mutants=made.mutants[1:])):
        document = read(report, other)
        assert "class Double" not in json.dumps(document)
        assert len(mutants(document)) == len(made.mutants)


def test_without_mutants_the_reasons_stand_in_place_of_a_source() -> None:
    for report in (rejected(), failed()):
        [file] = read(report)["files"].values()
        assert file["mutants"] == [] and report.reasons[0].message.splitlines()[0] in file["source"]


def test_tests_are_shown_where_they_stand(unit: Unit) -> None:
    suite = SimulatedSuite(the_unit(unit), ("test_a", "test_b"))
    [file] = suite.submission().tests
    [(path, told)] = read(suite.grade(), None, (file,))["testFiles"].items()
    assert (path, told["source"]) == (file.path, file.data.decode())
    lines = told["source"].splitlines()
    for test in told["tests"]:
        assert lines[test["location"]["start"]["line"] - 1].startswith(f"def {test['name']}")


def test_the_column_of_a_method_is_that_of_its_def(unit: Unit) -> None:
    suite = SimulatedSuite(the_unit(unit), ("TestMine::test_a",))
    file = File("test_mine.py", 'TEXT = "a\u2028b"\n\n\nclass TestMine:\n    def test_a(self): ...\n'.encode())
    report = suite.grade(submission=replace(suite.submission(), tests=(file,)))
    [test] = read(report, None, (file,))["testFiles"]["test_mine.py"]["tests"]
    # JavaScript, which the viewers are written in, ends a line at U+2028 too
    assert test["location"] == {"start": {"line": 6, "column": 5}}


# -- where a mutant is, and what stands there ------------------------------------------------------------------------


def applied(source: str, mutant: Mapping[str, Any]) -> str:
    """What a viewer makes of a source and a mutant: in UTF-16 code units, as JavaScript counts."""
    units = source.encode("utf-16-le")
    starts = [0] + [i + 2 for i in range(0, len(units), 2) if units[i : i + 2] == "\n".encode("utf-16-le")]

    def offset(position: Mapping[str, int]) -> int:
        return starts[position["line"] - 1] + 2 * (position["column"] - 1)

    start, end = (offset(mutant["location"][side]) for side in ("start", "end"))
    assert start < end or not source
    return (units[:start] + mutant["replacement"].encode("utf-16-le") + units[end:]).decode("utf-16-le")


@pytest.fixture(scope="module")
def real() -> Iterator[Unit]:
    yield load_course(DEFAULT_COURSE).units["L5.3"]


def test_the_replacement_at_its_place_makes_every_mutant_of_the_course(unit: Unit, real: Unit) -> None:
    report = SimulatedSuite(a_unit(unit, [mutant.id for mutant in real.mutants], wheats=5), ("test_a",)).grade()
    assert report.integrity is not None
    digests = {**report.integrity.digests, "unit": real.digest}
    report = report.model_copy(update={"integrity": report.integrity.model_copy(update={"digests": digests})})
    [file] = real.files
    document = read(report, real)
    assert document["files"][file.path]["source"] == file.reference.decode()
    told = mutants(document)
    for mutant in real.mutants:
        assert applied(file.reference.decode(), told[mutant.id]) == mutant.files[file.path].decode(), mutant.id
        assert len(told[mutant.id]["replacement"]) < len(file.reference) / 2


TEXTS = st.text("ab_ .\n(é\U0001f600", max_size=12)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(before=TEXTS, after=TEXTS, around=TEXTS)
def test_a_change_at_its_place_makes_the_other_text(before: str, after: str, around: str) -> None:
    before, after = around + before + around, around + after + around
    change = stryker.change_of(before, after)
    assert before[: change.start] + change.replacement + before[change.end :] == after
    assert change.start < change.end or not before


@pytest.mark.parametrize(
    ("before", "after", "taken", "put"),
    [
        ("y = scale * x", "y = scores * x", "scale", "scores"),
        ("y = a * b", "y = a + b", "*", "+"),
        ("y = self.k(x)", "y = self.q(x)", "k", "q"),
        ("y = x", "y = x.T", "x", "x.T"),
        ("f(é, a)\n", "f(é, b)\n", "a", "b"),
    ],
)
def test_a_change_is_of_whole_words(before: str, after: str, taken: str, put: str) -> None:
    change = stryker.change_of(before, after)
    assert (before[change.start : change.end], change.replacement) == (taken, put)


def test_what_comes_from_outside_ends_no_script_element_and_breaks_no_json(
    unit: Unit, validator: jsonschema.Draft7Validator
) -> None:
    tests = (File("test_mine.py", f"# {EVIL}".encode(errors="surrogatepass")),)
    for report in as_seen(unit):
        text = stryker.render(hostile(report), the_unit(unit), tests)
        assert "<" not in text and text.isascii()
        validator.validate(json.loads(text))
