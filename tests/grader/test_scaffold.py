"""A scaffolded unit loads, is in order, and never takes the place of anything."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader.course_cli import course
from grader.scaffold import slug
from grader.units import load_course


def made(tree: Path, unit: str = "X1", title: str = 'A "first" unit', file: str = "python/demo/scale.py") -> Result:
    return CliRunner().invoke(course, ["new", unit, "--title", title, "--file", file, "--course", str(tree)])


def test_it_loads_with_every_part_and_passes_its_check(tmp_path: Path) -> None:
    assert made(tmp_path).exit_code == 0
    found = load_course(tmp_path)
    assert not found.problems, found.problems
    unit = found.units["X1"]
    assert unit.title == 'A "first" unit'
    assert (len(unit.mutants), len(unit.wheats), len(unit.course_tests), len(unit.freedoms)) == (2, 1, 2, 1)
    result = CliRunner().invoke(course, ["check", "--course", str(tmp_path), "--sandbox", "process"])
    assert result.exit_code == 0, result.output


def test_a_second_unit_of_the_same_file_is_not_written_over_the_first(tmp_path: Path) -> None:
    made(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = made(tmp_path, unit="X2")
    assert result.exit_code == 2
    assert "Nothing was written" in result.output and "ref/python/demo/scale.py" in result.output
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_an_id_is_enough(tmp_path: Path) -> None:
    result = CliRunner().invoke(course, ["new", "2.7-b", "--course", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (unit,) = load_course(tmp_path).units.values()
    assert (unit.id, unit.title, unit.files[0].path) == ("2.7-b", "Unit 2.7-b", "python/tinyllm/unit_2_7_b.py")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"unit": "../X1"}, "id"),
        ({"file": "demo/scale.py"}, "python/"),
        ({"file": "python/../scale.py"}, ".."),
        ({"file": "python/demo/scale.rs"}, "python/"),
        ({"title": " "}, "title"),
        ({"title": "two\nlines"}, "title"),
    ],
)
def test_names_that_no_unit_can_have_are_refused_before_anything_is_written(
    options: dict[str, str], says: str, tmp_path: Path
) -> None:
    result = made(tmp_path / "tree", **options)
    assert result.exit_code == 2
    assert says in result.output
    assert not (tmp_path / "tree").exists()


def test_where_students_keep_their_tests_follows_from_id_and_title() -> None:
    assert slug("L5.3", "Attention: heads") == "l5-3-attention-heads"
