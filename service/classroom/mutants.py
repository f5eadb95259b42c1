"""The class's latest submissions go in; how many students catch each mutant comes out, by kind, and as a matrix of
students and mutants.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from grader.hints import PITFALLS
from grader.report import MutantStatus
from grader.unit import Unit
from service.classroom import selection
from service.classroom.answers import CategoryRow, MatrixRow, MutantRow
from service.classroom.facts import CAUGHT, MUTANTS, STATUSES, Layout
from service.classroom.roster import Person
from service.classroom.selection import Latest, Selection

ABSENT = MUTANTS[MutantStatus.INVALID]
SURVIVED = MUTANTS[MutantStatus.SURVIVED]


class Facing(NamedTuple):
    """A student's latest submission, and a character for each mutant of the unit as it is now."""

    latest: Latest
    cells: str


def of_class(
    connection: sa.Connection, wanted: Selection, unit: Unit
) -> tuple[tuple[MutantRow, ...], tuple[CategoryRow, ...], list[Facing]]:
    """The unit's mutants, their categories, and what each student with something graded did about them, by student."""
    found = selection.latest(connection, wanted)
    layouts = selection.layouts_of(connection, found)
    ids = tuple(mutant.id for mutant in unit.mutants)
    facing = [Facing(each, aligned(each.mutants, layouts[each.layout].mutants, ids)) for each in found]
    columns = list(zip(*(each.cells for each in facing), strict=True)) or [()] * len(unit.mutants)
    return mutant_rows(columns, unit), category_rows(columns, unit), facing


def aligned(cells: str, names: tuple[str, ...], wanted: tuple[str, ...]) -> str:
    """The characters of the mutants `names` as those of the mutants wanted: nothing of one that was not there."""
    if names == wanted:
        return cells
    seen = dict(zip(names, cells, strict=True))
    return "".join(seen.get(mid, ABSENT) for mid in wanted)


Columns = Sequence[tuple[str, ...]]
"""Of each mutant of the unit, what every student did about it."""


def mutant_rows(columns: Columns, unit: Unit) -> tuple[MutantRow, ...]:
    rows = []
    for mutant, column in zip(unit.mutants, columns, strict=True):
        counts = Counter(column)
        graded, killed = _graded(counts), _killed(counts)
        rows.append(
            MutantRow(
                id=mutant.id,
                tier=mutant.tier,
                category=mutant.category,
                required=mutant.id in unit.required_mutants,
                public=mutant.public,
                private=mutant.private,
                graded=graded,
                killed=killed,
                share=_share(killed, graded),
                statuses={STATUSES[char]: count for char, count in sorted(counts.items())},
            )
        )
    return tuple(rows)


def category_rows(columns: Columns, unit: Unit) -> tuple[CategoryRow, ...]:
    """Categories in the order in which the unit's mutants name them."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, mutant in enumerate(unit.mutants):
        places[mutant.category].append(place)
    rows = []
    for category, mine in places.items():
        counts = sum((Counter(columns[place]) for place in mine), Counter[str]())
        survivors = sum(SURVIVED in part for part in zip(*(columns[place] for place in mine), strict=True))
        mutants = [unit.mutants[place] for place in mine]
        graded, killed = _graded(counts), _killed(counts)
        rows.append(
            CategoryRow(
                category=category,
                mutants=tuple(mutant.id for mutant in mutants),
                pitfalls=tuple(mutant.id for mutant in mutants if mutant.tier == PITFALLS),
                graded=graded,
                killed=killed,
                share=_share(killed, graded),
                survivors=survivors,
            )
        )
    return tuple(rows)


def survivors(latest: Latest, layouts: Mapping[str, Layout]) -> list[str]:
    """The mutants that a submission's suite does not catch."""
    names = layouts[latest.layout].mutants
    return [name for name, cell in zip(names, latest.mutants, strict=True) if cell == SURVIVED]


def matrix_rows(facing: Sequence[Facing], known: Mapping[str, Person]) -> tuple[MatrixRow, ...]:
    return tuple(
        MatrixRow(
            student=latest.student,
            name=known[latest.student].name if latest.student in known else "",
            submission=latest.submission,
            cells=cells,
            killed=latest.killed,
            total=latest.mutants_total,
        )
        for latest, cells in facing
    )


def _graded(counts: Counter[str]) -> int:
    """How often a mutant was faced; a suite that could not be judged has not faced it."""
    return sum(count for char, count in counts.items() if char in CAUGHT or char == SURVIVED)


def _killed(counts: Counter[str]) -> int:
    return sum(counts[char] for char in CAUGHT)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None
