"""The class's latest submissions go in; what students take for right and is not comes out, the most common first.

Three things show what somebody believes. A test that rejects all correct code and passes on one mutant takes that fault
for right. Code that fails exactly the course tests which catch a mutant has that fault. And a test that rejects correct
rewrites forbids what the contract leaves open, which the report names. (docs/decisions/0182)
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa

from grader.faults import Faults
from grader.hints import PITFALLS
from grader.unit import Mutant, Unit
from service.classroom import selection, wording
from service.classroom.answers import Believer, BelievingTest, Kind, Misconception
from service.classroom.course_tests import PASSED, not_passed
from service.classroom.facts import Layout, Rejection
from service.classroom.roster import Person
from service.classroom.selection import Latest, Selection
from service.tables import facts, rejections

NAMED = 20  # students that are listed with a misconception
MOST_TESTS = 10  # of one student that are listed with a misconception
MOST_KEY_CHARS = 64
UNKNOWN = "unknown"  # the key of what nothing explains


class Sign(NamedTuple):
    """One sign of a misconception: a student's test, or None for the student's code."""

    student: str
    test: Rejection | None


@dataclass(frozen=True)
class Found:
    """What a class believes. `signs` are those of one key together, by student."""

    students: int
    rejecting: int
    signs: Mapping[str, Sequence[Sign]]
    latest: Mapping[str, Latest]


def found_in(connection: sa.Connection, wanted: Selection, unit: Unit, latest: Sequence[Latest] | None = None) -> Found:
    """Every sign in the latest submission of each student; `latest`, if they have been read already."""
    if latest is None:
        latest = selection.latest(connection, wanted)
    layouts = selection.layouts_of(connection, latest)
    tests = _rejections(connection, wanted)
    faults = FaultsOfCode(unit)
    signs: dict[str, list[Sign]] = defaultdict(list)
    for each in latest:
        if (fault := faults.of(each, layouts)) is not None:
            signs[f"fault:{fault}"].append(Sign(each.student, None))
        for key, test in _explained(tests.get(each.submission, ()), unit):
            signs[key].append(Sign(each.student, test))
    return Found(
        students=len(latest),
        rejecting=sum(each.rejecting > 0 for each in latest),
        signs=signs,
        latest={each.student: each for each in latest},
    )


def of_class(found: Found, unit: Unit, known: Mapping[str, Person], named: int = NAMED) -> tuple[Misconception, ...]:
    """What is believed, with the first few students who do; the unexplained last."""
    made = [_misconception(key, signs, found, unit, known, named) for key, signs in found.signs.items()]
    return tuple(sorted(made, key=lambda each: (each.kind is Kind.UNKNOWN, -each.students, each.key)))


# -- of code ---------------------------------------------------------------------------------------------------------


class FaultsOfCode:
    """Which planted fault a submission's code has. Where no test passes, nothing works, which is no fault in
    particular."""

    def __init__(self, unit: Unit) -> None:
        self._faults = Faults(unit)
        self._known: dict[tuple[str, str], str | None] = {}

    def of(self, latest: Latest, layouts: Mapping[str, Layout]) -> str | None:
        """The fault of a submission's code; None if there is none, or none in particular."""
        key = latest.layout, latest.tests
        if key not in self._known:
            self._known[key] = self._faults.of(not_passed(latest, layouts)) if PASSED in latest.tests else None
        return self._known[key]


# -- of tests --------------------------------------------------------------------------------------------------------


def key_of(test: Rejection, unit: Unit) -> str:
    """What a test's rejection is grouped by.

    What was found in the report's advice is believed only if the unit has it: words of the student's stand there too.
    """
    match test.code:
        case "misprint" if any(erratum.printed == test.said for erratum in unit.errata):
            return f"misprint:{test.said}"
        case "denies":
            return f"freedom:{_freedom(test.said, unit) or test.said[:MOST_KEY_CHARS]}"
    if test.accepts:
        pitfalls = [mutant.id for mutant in unit.mutants if mutant.id in test.accepts and mutant.tier == PITFALLS]
        return f"fault:{(pitfalls or test.accepts)[0]}"
    match test.code:
        case "asks_more" if freedom := _freedom(test.said, unit):
            return f"freedom:{freedom}"
        case "flaky":
            return "flaky"
        case "not_loaded":
            return "broken"
        case "ended":
            return f"broken:{test.said}"
    return UNKNOWN


def _explained(tests: Sequence[Rejection], unit: Unit) -> list[tuple[str, Rejection]]:
    """The tests of one suite with their keys. Where some are explained, the others most likely share the reason, which
    runs that stopped before them did not show."""
    keys = [(key_of(test, unit), test) for test in tests]
    return [pair for pair in keys if pair[0] != UNKNOWN] or keys


def _freedom(said: str, unit: Unit) -> str:
    """The id of the freedom whose sentence this is, or begins with; '' if the unit has none such."""
    return next((freedom.id for freedom in unit.freedoms if said.startswith(freedom.says)), "")


def _rejections(connection: sa.Connection, wanted: Selection) -> dict[str, list[Rejection]]:
    """The tests that reject correct code, by submission."""
    query = (
        sa.select(*rejections.c, facts.c.submission)
        .join(facts, facts.c.run == rejections.c.run)
        .where(selection.of_runs(rejections.c.run, wanted))
        .order_by(rejections.c.run, rejections.c.number)
    )
    tests: dict[str, list[Rejection]] = defaultdict(list)
    for row in connection.execute(query):
        rejection = Rejection(row.test, row.file, row.line, row.code, row.said, tuple(row.accepts.split()))
        tests[row.submission].append(rejection)
    return tests


# -- in words --------------------------------------------------------------------------------------------------------


def _misconception(
    key: str, signs: Sequence[Sign], found: Found, unit: Unit, known: Mapping[str, Person], named: int
) -> Misconception:
    by_student: dict[str, list[Sign]] = defaultdict(list)
    for sign in signs:
        by_student[sign.student].append(sign)
    kind, sentence, detail = said(key, len(by_student), unit)
    return Misconception(
        key=key,
        kind=kind,
        sentence=sentence,
        detail=detail,
        students=len(by_student),
        share=round(len(by_student) / found.students, 6),
        in_code=sum(sign.test is None for sign in signs),
        in_tests=sum(any(sign.test is not None for sign in mine) for mine in by_student.values()),
        tests=sum(sign.test is not None for sign in signs),
        who=tuple(
            Believer(
                student=student,
                name=known[student].name if student in known else "",
                submission=found.latest[student].submission,
                in_code=any(sign.test is None for sign in mine),
                tests=tuple(
                    BelievingTest(id=test.test, file=test.file, line=test.line)
                    for test in [sign.test for sign in mine if sign.test is not None][:MOST_TESTS]
                ),
            )
            for student, mine in sorted(by_student.items())[:named]
        ),
    )


def said(key: str, students: int, unit: Unit) -> tuple[Kind, str, str]:
    """What kind of misconception a key stands for, in a sentence, and what to say of it."""
    kind, _, what = key.partition(":")
    match kind:
        case "fault":
            fault = _mutant(what, unit)
            text = fault.private if fault is not None else what
            return Kind.FAULT, wording.takes_for_right(students, text), _and_public(fault)
        case "freedom":
            says = next((freedom.says for freedom in unit.freedoms if freedom.id == what), what)
            return Kind.FREEDOM, wording.forbids(students, says), says
        case "misprint":
            note = next((erratum.note for erratum in unit.errata if erratum.printed == what), "")
            return Kind.MISPRINT, wording.misprints(students, what), note
        case "flaky":
            return Kind.FLAKY, wording.flaky(students), wording.FLAKY_ADVICE
        case "broken":
            return Kind.BROKEN, wording.broken(students, what), wording.BROKEN_ADVICE
    return Kind.UNKNOWN, wording.unexplained(students), wording.UNEXPLAINED_ADVICE


def _mutant(mid: str, unit: Unit) -> Mutant | None:
    return next((mutant for mutant in unit.mutants if mutant.id == mid), None)


def _and_public(fault: Mutant | None) -> str:
    """What the fault is, and what students may be told of it."""
    return f"{fault.private} {fault.public}" if fault is not None else ""
