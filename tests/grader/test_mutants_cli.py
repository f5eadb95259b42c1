"""`autograder mutants generate` on a small unit: what it writes, and that it writes it again."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader import manifest
from grader.mutant_files import extended
from grader.mutants_cli import mutants
from grader.units import load_course
from tests.grader.small_course import FILES, write_course

STAFF = """\
from tinyllm.demo.double import Double, halve


def test_twice():
    assert Double()(3) == 6


def test_times_and_offset():
    assert Double(3, offset=1).forward(2, times=2) == 22


def test_half():
    assert halve(3) == 1.5


def test_names():
    assert (Double(3).factor, Double().offset) == (3, 0)


def test_nothing():
    assert Double().forward(5, times=0) == 5
"""
COURSE_TEST = (
    FILES["course/tests/Z1/test_double.py"]
    + """

# WHY: more
# KIND: unit
# CATCHES:
# CHAPTER: section 3
def test_times_and_offset():
    assert Double(3, offset=1).forward(2, times=2) == 22
"""
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_course(
        tmp_path,
        {
            "course/ref/learner-tests/Z1/python/tests/z1-double/test_double.py": STAFF,
            "course/tests/Z1/test_double.py": COURSE_TEST,
        },
    )


def generated(tree: Path, *options: str) -> Result:
    words = ["generate", "Z1", "--course", str(tree), "--sandbox", "process", "--seen", str(tree / "seen.jsonl")]
    return CliRunner().invoke(mutants, [*words, *options])


def written(tree: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (tree / "mutants/Z1").iterdir()}


def test_what_is_kept_counts_once_it_is_signed_off(tree: Path) -> None:
    result = generated(tree, "--limit", "3")
    assert result.exit_code == 0, result.output
    before = load_course(tree).units["Z1"]
    assert [mutant.id for mutant in before.mutants] == ["s01"]
    file = tree / "mutants/Z1/manifest.tsv"
    file.write_text(file.read_text().replace("\tno\n", "\tyes\n"))
    unit = load_course(tree).units["Z1"]
    assert [mutant.id for mutant in unit.mutants][:2] == ["s01", "m01"]
    assert len(unit.mutants) <= 4
    assert all(mutant.public and mutant.private and mutant.category for mutant in unit.mutants[1:])


def test_rejected_ones_are_listed_with_the_reason(tree: Path) -> None:
    result = generated(tree, "--limit", "1")
    rows = [line.split("\t") for line in written(tree)["rejected.tsv"].splitlines()]
    assert rows[0] == ["function", "line", "operator", "change", "reason"]
    assert {len(row) for row in rows} == {5}
    assert any(row[0] == "halve" and row[4] == "not killed by the course tests" for row in rows)
    assert f"{len(rows)} proposed, 1 kept, {len(rows) - 1} rejected" in result.output


def test_the_same_course_gives_the_same_mutants_without_running_them_again(tree: Path, tmp_path: Path) -> None:
    assert generated(tree, "--out", str(tmp_path / "one")).exit_code == 0
    kept = (tree / "seen.jsonl").read_text()
    lines = kept.splitlines(keepends=True)
    (tree / "seen.jsonl").write_text("".join(lines[:-1]) + lines[-1][:20])  # as an interruption leaves it
    assert generated(tree, "--out", str(tmp_path / "two")).exit_code == 0
    one, two = ({path.name: path.read_text() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
    assert len(one) > 3, one
    assert len((tree / "seen.jsonl").read_text().splitlines()) == len(lines) + 1


def test_unsigned_mutants_are_replaced_and_refused_ones_do_not_come_back(tree: Path) -> None:
    generated(tree, "--limit", "1")
    one = written(tree)
    generated(tree, "--limit", "1")
    assert written(tree) == one
    (tree / "mutants/Z1/m01.patch").unlink()
    rows = (tree / "mutants/Z1/manifest.tsv").read_text().splitlines()
    mutant = next(each for each in rows if each.startswith("m01")).split("\t")
    refusal = ["Double.forward", mutant[4], mutant[3], mutant[7], "read: too easy"]
    (tree / "mutants/Z1/rejected.tsv").write_text(one["rejected.tsv"] + "\t".join(refusal) + "\n")
    generated(tree, "--limit", "1")
    assert "read: too easy" in written(tree)["rejected.tsv"]
    assert written(tree)["m01.patch"] != one["m01.patch"]


def test_a_unit_without_a_staff_suite_is_refused(tmp_path: Path) -> None:
    result = generated(
        write_course(tmp_path, {"course/ref/learner-tests/Z1/python/tests/z1-double/test_double.py": None})
    )
    assert result.exit_code == 2
    assert "there is no staff suite" in result.output


def test_a_staff_suite_that_rejects_the_reference_is_refused(tree: Path) -> None:
    file = tree / "ref/learner-tests/Z1/python/tests/z1-double/test_double.py"
    file.write_text(file.read_text() + "\n\ndef test_wrong():\n    assert Double()(3) == 7\n")
    before = written(tree)
    result = generated(tree)
    assert result.exit_code == 1
    assert "test_wrong" in result.output
    assert written(tree) == before


def test_a_unit_that_is_not_there_is_said(tree: Path) -> None:
    result = CliRunner().invoke(mutants, ["generate", "Z9", "--course", str(tree)])
    assert result.exit_code == 2
    assert "Z9" in result.output


def test_a_manifest_is_extended_by_columns_and_rows() -> None:
    text = "# said first\n" + "\t".join(manifest.COLUMNS) + "\n\ns01\tZ1\ta\tb\t1\tno\tTest.\tp\n"
    row = dict.fromkeys(manifest.COLUMNS, "x") | {"mid": "m01", "unit": "Z1", "line": "3", "required": "no"}
    longer = extended(text, [{**row, "category": "mask", "signed_off": "yes"}])
    assert longer.startswith("# said first\n")
    rows = manifest.read("manifest.tsv", longer.encode(), "Z1")
    assert [(each.mid, each.category) for each in rows] == [("s01", ""), ("m01", "mask")]
    assert len(manifest.read("m", longer.replace("\tyes", "\tno").encode(), "Z1")) == 1
