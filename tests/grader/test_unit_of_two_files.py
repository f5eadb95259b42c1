"""A unit of two files: both are sent, checked, graded and mutated, and each is missed by its own name."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader import stryker
from grader.candidates import propose
from grader.contract import check
from grader.course_cli import course
from grader.diffs import to_reference
from grader.errors import Rejected
from grader.grade import grade
from grader.intake import take_in
from grader.mutants_cli import mutants
from grader.ol.cli import run
from grader.oracle import OracleProcesses
from grader.report import Report
from grader.submission import Submission, Upload
from grader.unit import Unit
from grader.units import load_course
from sandbox.docker_engine import DockerSandbox
from sandbox.process import ProcessSandbox
from sandbox.records import Sandbox
from tests.grader.pair_course import SCALE, SCALE_PATH, SHIFT, SHIFT_PATH, STAFF, write_pair
from tests.grader.simulated import ABOUT, statuses

TESTS = [Upload("test_pair.py", STAFF.encode())]
PASS, FAIL, DRIFT, NOT_STARTED = 0, 1, 4, 7


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="module")
def pair(tree: Path) -> Unit:
    return load_course(tree).units["P1"]


@pytest.fixture(scope="module")
def oracle() -> Iterator[OracleProcesses]:
    with OracleProcesses() as opened:
        yield opened


@pytest.fixture(scope="module", params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    if request.param == "process":
        yield ProcessSandbox(jobs=2)
        return
    with DockerSandbox(jobs=2) as opened:
        yield opened


def sent(unit: Unit, scale: str = SCALE, shift: str = SHIFT) -> Submission:
    files = {"scale": Upload("scale.py", scale.encode()), "shift": Upload("shift.py", shift.encode())}
    return take_in(unit, files, TESTS)


# -- grading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "failing", "agrees"),
    [
        ({}, set(), "agree"),
        ({"scale": SCALE.replace("*", "+")}, {"test_scale", "test_shift"}, "disagree"),
        ({"shift": SHIFT.replace(" + offset", "")}, {"test_shift"}, "disagree"),
    ],
)
def test_what_is_wrong_in_either_file_is_found_and_faults_planted_in_either_are_caught(
    pair: Unit, sandbox: Sandbox, oracle: OracleProcesses, changes: dict[str, str], failing: set[str], agrees: str
) -> None:
    report = grade(pair, sent(pair, **changes), sandbox=sandbox, oracle=oracle, seed=5, about=ABOUT)
    assert report.course_tests is not None and report.oracle is not None
    assert {test.id for test in report.course_tests.tests if test.outcome.value != "passed"} == failing
    assert report.oracle.status == agrees
    assert report.verdict.value == ("fail" if failing else "pass")
    assert {mid: status.value for mid, status in statuses(report).items()} == {"s01": "killed", "s02": "killed"}
    assert in_files(report, pair) == {SCALE_PATH: ["s01"], SHIFT_PATH: ["s02"]}


def in_files(report: Report, unit: Unit) -> dict[str, list[str]]:
    """The ids of mutants by the file in which the teacher's view shows them."""
    files = json.loads(stryker.render(report, unit))["files"]
    return {path: [mutant["id"] for mutant in file["mutants"]] for path, file in files.items()}


def test_a_file_that_is_missing_is_named(pair: Unit) -> None:
    for missing, kept in (("scale", "shift"), ("shift", "scale")):
        with pytest.raises(Rejected) as refusal:
            take_in(pair, {kept: Upload(f"{kept}.py", SCALE.encode())}, TESTS)
        assert (refusal.value.code, refusal.value.path) == ("missing_file", f"{missing}.py")
        assert f"python/tinyllm/pair/{missing}.py" in refusal.value.message
        assert "-F scale=@scale.py -F shift=@shift.py" in refusal.value.message


def test_each_file_has_a_contract_of_its_own(pair: Unit) -> None:
    assert list(pair.contract) == ["tinyllm.pair.scale", "tinyllm.pair.shift"]
    assert check(pair, sent(pair)) == ()
    for changes, path in (
        ({"scale": "def shift(x, factor, offset):\n    return 1\n"}, SCALE_PATH),
        ({"shift": SCALE}, SHIFT_PATH),
    ):
        assert [(each.code, each.file) for each in check(pair, sent(pair, **changes))] == [("missing_function", path)]


def test_the_way_to_the_reference_is_shown_file_by_file(pair: Unit) -> None:
    shown = to_reference(pair, sent(pair, shift=SHIFT.replace(" + offset", "")).files)
    assert SHIFT_PATH in shown and "+ offset" in shown
    assert SCALE_PATH not in shown


# -- the course's own commands ---------------------------------------------------------------------------------------


@pytest.mark.full
def test_the_tree_is_in_order(tree: Path) -> None:
    result = CliRunner().invoke(course, ["check", "P1", "--course", str(tree), "--sandbox", "process"])
    assert result.exit_code == 0, result.output
    assert "5 variants in order" in result.output  # the reference, two wheats and two mutants


def test_faults_proposed_for_two_files_have_different_names_even_if_the_files_are_alike(pair: Unit) -> None:
    scale, shift = pair.files
    proposed = propose(replace(pair, files=(scale, replace(shift, reference=scale.reference))))
    assert {each.path for each in proposed} == {SCALE_PATH, SHIFT_PATH}
    assert len({each.id for each in proposed}) == len(proposed)


@pytest.mark.full
def test_faults_are_generated_for_both_files(tree: Path, tmp_path: Path) -> None:
    words = ["generate", "P1", "--course", str(tree), "--sandbox", "process", "--seen", str(tmp_path / "seen.jsonl")]
    result = CliRunner().invoke(mutants, [*words, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "out/rejected.tsv").read_text()
    assert "scaled = " in text and "moved = " in text


# -- the student's own command ---------------------------------------------------------------------------------------


def test_a_student_begins_with_two_files_and_is_told_which_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pair(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("OL_SERVER", "OL_TOKEN", "OL_COURSE", "OL_COURSE_ID"):
        monkeypatch.delenv(name, raising=False)
    assert run(["start", "P1", "--json"]) == PASS
    assert json.loads(capsys.readouterr().out)["laid"] == [SCALE_PATH, SHIFT_PATH]
    assert "def shift(x: float, factor: float, offset: float)" in (tmp_path / SHIFT_PATH).read_text()
    assert run(["tests", "P1"]) == FAIL
    (tmp_path / SHIFT_PATH).unlink()
    (tmp_path / SCALE_PATH).write_text(SCALE)
    assert run(["check", "P1"]) == NOT_STARTED
    assert f"There is no {SHIFT_PATH} yet" in capsys.readouterr().err
    assert run(["start", "P1", "--json"]) == PASS
    begun = json.loads(capsys.readouterr().out)
    assert (begun["laid"], begun["kept"]) == ([SHIFT_PATH], [SCALE_PATH])
    (tmp_path / SHIFT_PATH).write_text("def moved(x):\n    return x\n")
    assert run(["check", "P1"]) == DRIFT
    assert SHIFT_PATH in capsys.readouterr().out
    (tmp_path / SHIFT_PATH).write_text(SHIFT)
    (tmp_path / "python/tests/p1-pair/test_pair.py").write_text(STAFF)
    assert run(["check", "P1"]) == PASS
