"""The text of freedoms.md goes in; what the contract leaves open, each with its wheats, comes out, or LoadError.

## private-names
wheats: w01, w03
says: How private attributes are called is yours to choose.
signs: _[a-z]*
everywhere: no
"""

import re
from collections.abc import Sequence

from grader.course_file import text_of
from grader.errors import LoadError
from grader.unit import Freedom

_LABEL = re.compile(r"(wheats|says|signs|everywhere):\s*(.*)", re.IGNORECASE)


def read(file: str, data: bytes, wheats: Sequence[str]) -> tuple[Freedom, ...]:
    """Freedoms in order. `wheats:` names a wheat by its id or by the id's part before the first '_'. `signs:`, which
    may be missing, are words or patterns of words in a test that is likely to deny it (`tests_ast.words`). `everywhere:
    yes` marks one that a test denies by failing on all code alike, its writer's too."""
    sections: list[tuple[int, str, dict[str, str]]] = []
    wheat_lines: dict[int, int] = {}  # of each section
    label = ""
    for number, line in enumerate(text_of(file, data).split("\n"), start=1):
        if line.startswith("## "):
            sections.append((number, line[3:].strip(), {}))
            label = ""
        elif not sections or line.startswith("#"):
            label = ""
        elif match := _LABEL.match(line.strip().lstrip("-* ")):
            label = match[1].lower()
            if label in sections[-1][2]:
                raise LoadError(file, number, f"{sections[-1][1]} has two {label} lines")
            sections[-1][2][label] = match[2].strip()
            if label == "wheats":
                wheat_lines[sections[-1][0]] = number
        elif not line.strip():
            label = ""
        elif label:
            sections[-1][2][label] += f" {line.strip()}"
    found: dict[str, Freedom] = {}
    for number, name, said in sections:
        if name in found or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
            raise LoadError(file, number, f"'{name}' is no freedom's name, or stands there twice")
        if not said.get("says"):
            raise LoadError(file, number, f"{name} has no 'says:' line")
        if "wheats" not in said:
            raise LoadError(file, number, f"{name} has no 'wheats:' line")
        at = wheat_lines[number]
        used = tuple(_wheat(file, at, entry, wheats) for entry in _words(said["wheats"]))
        everywhere = said.get("everywhere", "no")
        if everywhere not in ("yes", "no"):
            raise LoadError(file, number, f"{name}: everywhere is yes or no, not {everywhere!r}")
        found[name] = Freedom(name, said["says"], used, tuple(_words(said.get("signs", ""))), everywhere == "yes")
    return tuple(found.values())


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+", text) if word]


def _wheat(file: str, line: int, entry: str, wheats: Sequence[str]) -> str:
    if entry in wheats:
        return entry
    matching = [wheat for wheat in wheats if wheat.partition("_")[0] == entry]
    if len(matching) != 1:
        problem = "there is no such wheat" if not matching else f"it could be any of {', '.join(matching)}"
        raise LoadError(file, line, f"wheats: {entry}: {problem}")
    return matching[0]
