"""The text of a mutant manifest goes in; its rows for one unit come out, or LoadError with the line at fault."""

import re
from dataclasses import dataclass

from grader.course_file import text_of
from grader.errors import LoadError

COLUMNS = ("mid", "unit", "tier", "operator", "line", "required", "public", "private")
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_ID = re.compile(r"[A-Za-z][A-Za-z0-9]{0,15}")


@dataclass(frozen=True)
class Row:
    """One mutant as the manifest lists it; `at` is its line there, `line` the one changed in the unit's file."""

    at: int
    mid: str
    tier: str
    operator: str
    line: int
    required: bool
    public: str
    private: str
    category: str


def read(file: str, data: bytes, unit: str) -> tuple[Row, ...]:
    """The rows of `unit`, in order. Raises LoadError.

    Passed over: blank lines, lines that begin with #, and generated mutants that nobody has read (signed_off is no).
    White space around cells counts for nothing, nor do tabs at the end of a line; `private` may be left empty so.
    """
    header: list[str] = []
    rows: dict[str, Row] = {}
    for number, line in enumerate(text_of(file, data).split("\n"), start=1):
        cells = [cell.strip() for cell in line.rstrip().split("\t")]
        if not any(cells) or line.lstrip().startswith("#"):
            continue
        if not header:
            header = _header(file, number, cells)
            continue
        if len(cells) > len(header):
            raise LoadError(file, number, f"has {len(cells)} columns; the header names {len(header)}")
        values = {"private": "", **dict(zip(header, cells, strict=False))}
        missing = [name for name in COLUMNS if name not in values]
        if missing:
            raise LoadError(file, number, f"has no {', '.join(missing)}; columns are separated by tabs")
        if values["unit"] != unit or values.get("signed_off", "").lower() == "no":
            continue
        row = _row(file, number, values)
        if row.mid in rows:
            raise LoadError(file, number, f"{row.mid} is listed already in line {rows[row.mid].at}")
        rows[row.mid] = row
    if not header:
        raise LoadError(file, 1, f"has no header line with the columns {', '.join(COLUMNS)}")
    return tuple(rows.values())


def _header(file: str, number: int, cells: list[str]) -> list[str]:
    missing = [name for name in COLUMNS if name not in cells]
    if missing:
        raise LoadError(file, number, f"the header lacks {', '.join(missing)}; columns are separated by tabs")
    if len(set(cells)) < len(cells):
        raise LoadError(file, number, "the header names a column twice")
    return cells


def _row(file: str, number: int, values: dict[str, str]) -> Row:
    mid = values["mid"]
    if not _ID.fullmatch(mid):
        raise LoadError(file, number, f"mid must be a letter and letters or digits, not {mid!r}")
    for name in ("tier", "operator", "public"):
        if not values[name]:
            raise LoadError(file, number, f"{mid} has no {name}")
    if not re.fullmatch(r"[0-9]{1,6}", values["line"]) or int(values["line"]) < 1:
        raise LoadError(file, number, f"line must be a whole number from 1, not {values['line']!r}")
    required = _BOOLEANS.get(values["required"].lower())
    if required is None:
        raise LoadError(file, number, f"required must be true or false, not {values['required']!r}")
    return Row(
        at=number,
        mid=mid,
        tier=values["tier"],
        operator=values["operator"],
        line=int(values["line"]),
        required=required,
        public=values["public"],
        private=values["private"],
        category=values.get("category", ""),
    )
