"""The text of a unit's hints.toml goes in, with the manifest's rows; each mutant's hints come out in the order in which
they are unlocked, or LoadError with the line at fault.

[sizes]                       what hints call the sizes that a test chooses
Tq = "the query length (Tq)"

[categories.projection]       the first hint of each of its mutants but those of pitfalls
hint = "No test of yours notices …"
section = "L5.3 section 2.1"

[mutants.m09]                 every key may be missing
section = "L5.3 section 2.4"  if it is not the category's
nothing_changes = ["Tk = 1"]  sizes with which the fault cannot be seen at all
shapes_stay = ["Tq = Tk"]     sizes with which it raises no error and changes no shape, though it does with others
hints = ["…", "…"]

A mutant has, from vague to concrete: the category's hint; which sizes to make distinct; what the manifest tells in
public; its own hints. Of a pitfall (tier semantic) the manifest's comes first, as everyone knows pitfalls from the
chapter. (docs/decisions/0165, 0166)
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from grader import wording
from grader.course_file import line_of, settings_of, text_of
from grader.errors import LoadError
from grader.manifest import Row

PITFALLS = "semantic"  # the tier

Line = Annotated[str, Field(min_length=1, max_length=600, pattern=r"^\S(.*\S)?$")]
Equality = Annotated[str, Field(pattern=r"^\w+ = \w+$")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Category(_Table):
    hint: Line
    section: Line | None = None


class _Mutant(_Table):
    section: Line | None = None
    nothing_changes: list[Equality] = []
    shapes_stay: list[Equality] = []
    hints: Annotated[list[Line], Field(max_length=4)] = []


class _HintsFile(_Table):
    sizes: dict[str, Line] = {}
    categories: dict[str, _Category] = {}
    mutants: dict[str, _Mutant] = {}


def read(file: str, data: bytes, rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """Every row's hints, by mid. Raises LoadError."""
    text = text_of(file, data)
    found = settings_of(file, data, _HintsFile)
    mids, categories = {row.mid for row in rows}, {row.category for row in rows}
    for mid, mutant in found.mutants.items():
        if mid not in mids:
            raise LoadError(file, line_of(text, ("mutants", mid)), f"{mid} is not in the manifest, or not signed off")
        for key in ("nothing_changes", "shapes_stay"):
            for equality in getattr(mutant, key):
                _check_equality(file, line_of(text, ("mutants", mid, key)), equality, found.sizes)
    for category in found.categories:
        if category not in categories:
            raise LoadError(file, line_of(text, ("categories", category)), f"{category} is no category of the manifest")
    hints = {row.mid: tuple(_of(row, found)) for row in rows}
    for mid, told in hints.items():
        if len(set(told)) < len(told):
            raise LoadError(file, line_of(text, ("mutants", mid, "hints")), f"{mid} has a hint twice")
    return hints


def _check_equality(file: str, line: int, equality: str, sizes: Mapping[str, str]) -> None:
    left, right = equality.split(" = ")
    for name in (left, *([right] if right != "1" else [])):
        if name not in sizes:
            raise LoadError(file, line, f"{equality}: {name} is not listed in [sizes]")
    if left == right:
        raise LoadError(file, line, f"{equality}: a size is always equal to itself")


def _of(row: Row, found: _HintsFile) -> Iterator[str]:
    category = found.categories.get(row.category)
    mutant = found.mutants.get(row.mid, _Mutant())
    section = mutant.section or (category.section if category is not None else None) or ""
    vague_first = category is not None and row.tier != PITFALLS
    if category is not None and vague_first:
        yield wording.hint(category.hint, category.section or "")
    else:
        yield wording.hint(row.public, section)
    if mutant.nothing_changes or mutant.shapes_stay:
        yield wording.distinct_sizes(
            [_said(equality, found.sizes) for equality in mutant.nothing_changes],
            [_said(equality, found.sizes) for equality in mutant.shapes_stay],
        )
    if vague_first:
        yield wording.hint(row.public, section)
    yield from (wording.hint(text, section) for text in mutant.hints)


def _said(equality: str, sizes: Mapping[str, str]) -> str:
    left, right = equality.split(" = ")
    return f"{sizes[left]} is 1" if right == "1" else f"{sizes[left]} equals {sizes[right]}"
