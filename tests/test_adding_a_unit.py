"""The page on adding a unit is followed literally: its files are written, its commands run."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.units import load_course

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "adding-a-unit.md"
FILE = re.compile(r"^`(?P<path>[^`\n]+)`:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```console\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)


def steps(page: str) -> Iterator[tuple[str, str]]:
    """What a reader does, in order: ("write", path + newline + text) or ("run", command)."""
    found = [(match.start(), "write", f"{match['path']}\n{match['text']}") for match in FILE.finditer(page)]
    for match in COMMANDS.finditer(page):
        lines = [line for line in match["lines"].splitlines() if line.startswith("$ ")]
        found += [(match.start() + number, "run", line[2:]) for number, line in enumerate(lines)]
    return ((what, told) for _, what, told in sorted(found))


@pytest.mark.docker
def test_whoever_follows_the_page_has_a_unit_that_is_graded(tmp_path: Path) -> None:
    told = []
    for what, step in steps(PAGE.read_text(encoding="utf-8")):
        if what == "write":
            path, _, text = step.partition("\n")
            assert (tmp_path / path).parent.is_dir(), path
            (tmp_path / path).write_text(text, encoding="utf-8")
            continue
        program, *words = shlex.split(step)
        assert program == "autograder"
        done = subprocess.run(
            [sys.executable, "-m", "service.cli", *words],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{step}\n{done.stdout}\n{done.stderr}"
        told.append(done.stdout)
    made, checked, graded = told
    assert "course check D1" in made
    assert "renderings proved" in checked
    assert "PASS" in graded.upper()
    unit = load_course(tmp_path / "demo" / "course").units["D1"]
    assert [mutant.id for mutant in unit.mutants] == ["s01", "s02", "m01"]
