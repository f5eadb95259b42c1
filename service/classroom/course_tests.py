"""The class's latest submissions go in; for each course test comes out who passes it, and where the class is stuck."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from grader.report import Outcome
from grader.unit import Unit
from service.classroom import selection
from service.classroom.answers import TestRow
from service.classroom.facts import OUTCOMES, TESTS, Layout
from service.classroom.selection import Latest, Selection

NAMED = 20  # students that are listed with a test
PASSED = TESTS[Outcome.PASSED]


def of_class(connection: sa.Connection, wanted: Selection, unit: Unit) -> tuple[int, tuple[TestRow, ...]]:
    """How many students have something graded, and the course's tests in their order."""
    found = selection.latest(connection, wanted)
    return len(found), rows(found, selection.layouts_of(connection, found), unit)


def rows(found: Sequence[Latest], layouts: Mapping[str, Layout], unit: Unit) -> tuple[TestRow, ...]:
    """A row for each test of the unit as it is now, and for those of older versions with which somebody was graded."""
    outcomes: dict[str, Counter[str]] = {test.name: Counter() for test in unit.course_tests}
    failing: dict[str, list[str]] = defaultdict(list)
    for layout, mine in by_layout(found).items():
        for name, column in zip(layouts[layout].tests, columns([each.tests for each in mine]), strict=False):
            outcomes.setdefault(name, Counter()).update(column)
            failing[name] += [each.student for each, char in zip(mine, column, strict=True) if char != PASSED]
    stuck = Counter(first for each in found if (first := first_not_passed(each, layouts)) is not None)
    about = {test.name: test for test in unit.course_tests}
    return tuple(
        TestRow(
            id=name,
            kind=about[name].kind if name in about else "",
            why=about[name].why if name in about else "",
            chapter=about[name].chapter if name in about else "",
            graded=(graded := counts.total()),
            passed=counts[PASSED],
            share=round(counts[PASSED] / graded, 6) if graded else None,
            failing=len(failing[name]),
            stuck=stuck[name],
            outcomes={OUTCOMES[char]: count for char, count in sorted(counts.items())},
            students=tuple(sorted(failing[name])[:NAMED]),
        )
        for name, counts in outcomes.items()
    )


def by_layout(found: Iterable[Latest]) -> dict[str, list[Latest]]:
    """The rows whose characters stand for the same names."""
    grouped: dict[str, list[Latest]] = defaultdict(list)
    for each in found:
        grouped[each.layout].append(each)
    return grouped


def columns(cells: Sequence[str]) -> Iterable[tuple[str, ...]]:
    """The characters of rows of one length, by column."""
    return zip(*cells, strict=True)


def not_passed(latest: Latest, layouts: Mapping[str, Layout]) -> list[str]:
    """The course tests that a submission does not pass, in their order."""
    return [name for name, char in zip(layouts[latest.layout].tests, latest.tests, strict=True) if char != PASSED]


def first_not_passed(latest: Latest, layouts: Mapping[str, Layout]) -> str | None:
    """The first course test that a submission does not pass."""
    place = len(latest.tests) - len(latest.tests.lstrip(PASSED))
    return layouts[latest.layout].tests[place] if place < len(latest.tests) else None
