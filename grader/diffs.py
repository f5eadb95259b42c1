"""A student's files and a unit go in; a unified diff from theirs to the reference comes out. For those who passed."""

import difflib
from collections.abc import Mapping

from grader import wording
from grader.unit import Unit

MOST_LINES = 2_000  # of a student's file: what comparing takes grows with blank lines times blank lines


def to_reference(unit: Unit, files: Mapping[str, bytes]) -> str:
    """What to change in the student's files (by path) to arrive at the reference; "" where they are the same.

    Of a very long file only the first lines are compared, which is said."""
    lines: list[str] = []
    for file in unit.files:
        yours, reference = (
            data.decode(errors="replace").splitlines() for data in (files.get(file.path, b""), file.reference)
        )
        names = (f"yours/{file.path}", f"reference/{file.path}")
        lines += difflib.unified_diff(yours[:MOST_LINES], reference, *names, lineterm="")
        if len(yours) > MOST_LINES:
            lines.append(wording.diff_cut(file.path, len(yours) - MOST_LINES))
    return "".join(f"{line}\n" for line in lines)
