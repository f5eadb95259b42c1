"""A student's files and a unit go in; a unified diff from theirs to the reference comes out. For those who passed."""

import difflib
from collections.abc import Mapping

from grader.unit import Unit


def to_reference(unit: Unit, files: Mapping[str, bytes]) -> str:
    """What to change in the student's files (by path) to arrive at the reference; "" where they are the same."""
    lines: list[str] = []
    for file in unit.files:
        yours, reference = (data.decode(errors="replace").splitlines() for data in (files[file.path], file.reference))
        names = (f"yours/{file.path}", f"reference/{file.path}")
        lines += difflib.unified_diff(yours, reference, *names, lineterm="")
    return "".join(f"{line}\n" for line in lines)
