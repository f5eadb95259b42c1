"""A course tree that knows nothing of this repository is loaded, checked, and worked at with the student's command."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.course_cli import course
from grader.ol.cli import run
from grader.units import load_course
from tests.grader import foreign_tree


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return foreign_tree.write(tmp_path_factory.mktemp("elsewhere"))


def test_it_loads_whole_and_lists_what_cannot_be_graded_here(tree: Path) -> None:
    found = load_course(tree)
    assert found.problems == ()
    assert list(found.units) == ["F1", "F2"]
    assert [each.id for each in found.listed] == ["F3", "F4", "F5"]
    reasons = {each.id: each.reason for each in found.listed}
    assert "Rust" in reasons["F3"] and ".lean" in reasons["F4"] and "not offered" in reasons["F5"]
    first, second = found.units.values()
    assert (first.rung, second.rung) == ("R3", "R2")
    assert [(dep.id, dep.offered) for dep in second.deps] == [("F1", True), ("M9.9", False)]
    assert [mutant.id for mutant in first.mutants if mutant.required] == ["s01", "s02"]
    assert [(mutant.private, mutant.public[-1]) for mutant in first.mutants][-1] == ("", ".")


def test_references_and_mutants_are_without_marks_of_solutions(tree: Path) -> None:
    for unit in load_course(tree).units.values():
        texts = [unit.files[0].reference, *(each.files[unit.files[0].path] for each in unit.mutants)]
        assert not any(b"SOLUTION" in text or b"\r" in text for text in texts)
        assert len(set(texts)) == len(texts)


def test_packages_of_its_library_are_there_for_who_imports_from_them(tree: Path) -> None:
    first, second = load_course(tree).units.values()
    assert list(first.companions) == ["tinyllm", "tinyllm.num.stable", "tinyllm.num"]
    assert set(second.companions) == {*first.companions, "tinyllm.nn.act", "tinyllm.nn"}


@pytest.mark.full
def test_it_passes_its_check(tree: Path) -> None:
    result = CliRunner().invoke(course, ["check", "--course", str(tree), "--sandbox", "process"])
    assert result.exit_code == 0, result.output
    assert "test_by_hand, test_golden, test_rows_add_up" in result.output  # who catches s01 of F1
    assert (tree / "renderings/F2.sha256").is_file()


def test_a_student_works_through_it(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OL_COURSE", str(tree))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert run(["start", "F2"]) == 0
    (tmp_path / "python/tinyllm/nn/loss.py").write_text(foreign_tree.right(foreign_tree.LOSS))
    (tmp_path / "python/tests/f2-loss/test_loss.py").write_text(foreign_tree.LOSS_SUITE)
    assert run(["tests", "F2"]) == 3
    assert "needs F1" in capsys.readouterr().err
    assert run(["start", "F1"]) == 0
    assert run(["tests", "F1", "-k", "golden"]) == 1
    (tmp_path / "python/tinyllm/nn/act.py").write_text(foreign_tree.right(foreign_tree.ACT))
    assert run(["tests", "F1"]) == 0
    capsys.readouterr()
    assert run(["check", "F2", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["verdict"], report["deps"][0]["used"]) == ("pass", "submitted")
