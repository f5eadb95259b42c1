"""`autograder course check` proves what can be proved, and says what is wrong with a unit."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader.course_cli import course
from tests.grader.small_course import COURSE_TEST, write_course


def checked(root: Path, changes: dict[str, str | bytes | None] | None = None) -> tuple[Result, Path]:
    tree = write_course(root, changes)
    return CliRunner().invoke(course, ["check", "--course", str(tree), "--sandbox", "process"]), tree


def test_a_unit_in_order_gets_its_renderings_digests(tmp_path: Path) -> None:
    result, tree = checked(tmp_path)
    assert result.exit_code == 0, result.output
    lines = (tree / "renderings/Z1.sha256").read_text().splitlines()
    assert len(lines) == 3 * 16  # the reference, a wheat and a mutant
    assert lines[0].split()[1:] == ["reference", "0"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"course/tests/Z1/test_double.py": COURSE_TEST.replace("CATCHES: s01", "CATCHES:")}, ""),
        (
            {"course/tests/Z1/test_double.py": COURSE_TEST.replace("CATCHES:\n", "CATCHES: s01\n")},
            "s01: CATCHES names it at test_twice, test_zero; it fails test_twice.",
        ),
        (
            {"course/tests/Z1/test_double.py": COURSE_TEST.replace('"x", [1, 2]', '"x", [2]')},
            "s01: no course test catches this mutant.",
        ),
        (
            {
                "course/wheats/Z1/w01_other.py": "from tinyllm.demo.base import Base\n\n\nclass Double(Base):\n"
                "    def forward(self, x, times=1):\n        return 3\n"
            },
            "w01_other: correct code, but course tests fail: test_twice, test_zero.",
        ),
        ({"course/modules/Z1.toml": "id = 3\n"}, "modules/Z1.toml:"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, changes: dict[str, str | bytes | None], says: str) -> None:
    result, tree = checked(tmp_path, changes)
    assert (result.exit_code == 1) == bool(says), result.output
    assert says in result.output
    assert (tree / "renderings/Z1.sha256").exists() == (not says)


def test_a_unit_that_is_not_there_is_said(tmp_path: Path) -> None:
    tree = write_course(tmp_path)
    result = CliRunner().invoke(course, ["check", "Z9", "--course", str(tree), "--sandbox", "process"])
    assert result.exit_code == 1
    assert "Z9" in result.output
