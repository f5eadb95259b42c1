"""A report arrives; JUnit XML leaves, as Jenkins and other programs of continuous integration read it. Pure.

Suites: the submission as a whole, the course tests, the random cases, the student's tests, the mutants. Every text is
escaped to printable characters first, all of which XML allows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Literal
from xml.etree import ElementTree as ET

from grader import compared, wording
from grader.mutation import CAUGHT
from grader.report import MutantPart, MutantStatus, MutationPart, OraclePart, Outcome, Report, StudentTestPart, Verdict
from grader.wording import escaped, shown

Kind = Literal["failure", "error", "skipped"]


@dataclass(frozen=True)
class Trouble:
    """Why a case did not pass: `code` for programs, `texts` for people, of which the first is the summary."""

    kind: Kind
    code: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    name: str
    seconds: float | None = None
    trouble: Trouble | None = None


@dataclass(frozen=True)
class Suite:
    name: str
    cases: tuple[Case, ...]

    def count(self, kind: Kind) -> int:
        return sum(case.trouble is not None and case.trouble.kind == kind for case in self.cases)


def render(report: Report) -> str:
    """The report, as its reader may see it, as an XML document."""
    suites = [suite for suite in _suites(report) if suite.cases]
    root = ET.Element(
        "testsuites",
        name=f"{report.submission.unit} {report.submission.id}",
        tests=str(sum(len(suite.cases) for suite in suites)),
        failures=str(sum(suite.count("failure") for suite in suites)),
        errors=str(sum(suite.count("error") for suite in suites)),
        time=f"{report.timing.total:.3f}",
    )
    root.extend(_suite_element(report, suite) for suite in suites)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite_element(report: Report, suite: Suite) -> ET.Element:
    element = ET.Element(
        "testsuite",
        name=suite.name,
        tests=str(len(suite.cases)),
        failures=str(suite.count("failure")),
        errors=str(suite.count("error")),
        skipped=str(suite.count("skipped")),
        time=f"{sum(case.seconds or 0.0 for case in suite.cases):.3f}",
        timestamp=report.submission.received_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
    )
    # What stands before the last dot is taken for a package, and suites are shown in it.
    classname = f"{report.submission.unit}.{suite.name}"
    element.extend(_case_element(case, classname) for case in suite.cases)
    return element


def _case_element(case: Case, classname: str) -> ET.Element:
    element = ET.Element("testcase", name=shown(case.name), classname=classname)
    if case.seconds is not None:
        element.set("time", f"{case.seconds:.3f}")
    if case.trouble is not None:
        lines = [escaped(line) for text in case.trouble.texts for line in text.splitlines()]
        attributes = {"message": lines[0] if lines else case.trouble.code}
        if case.trouble.kind != "skipped":
            attributes["type"] = case.trouble.code
        ET.SubElement(element, case.trouble.kind, attributes).text = "\n".join(lines)
    return element


def _suites(report: Report) -> Iterator[Suite]:
    yield Suite("submission", (_whole(report),))
    if report.course_tests is not None:
        yield Suite("course tests", tuple(_course_tests(report)))
    if report.oracle is not None:
        yield Suite("random cases", (_oracle(report.oracle),))
    if report.student_tests is not None:
        yield Suite("own tests", tuple(Case(test.id, None, _own(test)) for test in report.student_tests.tests))
    if report.mutation is not None:
        yield Suite("mutants", tuple(_mutants(report.mutation)))


def _whole(report: Report) -> Case:
    told = (report.next_step, *(reason.message for reason in report.reasons))
    if report.by_hand is not None:
        told = (*told, wording.set_by_hand(report.by_hand.score, report.by_hand.reason))
    match report.verdict:
        case Verdict.PASS:
            return Case("verdict")
        case Verdict.GRADER_ERROR:
            return Case("verdict", None, Trouble("error", report.verdict.value, told))
        case Verdict.FAIL | Verdict.REJECTED:
            return Case("verdict", None, Trouble("failure", report.verdict.value, told))


def _outcome(outcome: Outcome, texts: Sequence[str]) -> Trouble | None:
    match outcome:
        case Outcome.PASSED:
            return None
        case Outcome.SKIPPED | Outcome.NOT_RUN:
            return Trouble("skipped", outcome.value, tuple(texts))
        case Outcome.FAILED:
            return Trouble("failure", outcome.value, tuple(texts))
        case Outcome.ERROR | Outcome.TIMEOUT:
            return Trouble("error", outcome.value, tuple(texts))


def _course_tests(report: Report) -> Iterator[Case]:
    part = report.course_tests
    if part is None:
        return
    if not part.tests and part.total:
        yield _counted(wording.passed_of(part.passed, part.total), part.passed == part.total)
    for test in part.tests:
        told = (compared.said(test), test.where, test.why, test.chapter)
        yield Case(test.id, test.seconds, _outcome(test.outcome, told))


def _oracle(part: OraclePart) -> Case:
    name = "agree with independent code"
    if part.status == "not_run":
        return Case(name, None, Trouble("skipped", part.status, ()))
    if part.status == "agree":
        return Case(name)
    told = (wording.cases_agree(part.agreed, part.cases), *(found.message for found in part.disagreements))
    return Case(name, None, Trouble("failure", part.status, told))


def _own(test: StudentTestPart) -> Trouble | None:
    if test.valid is False:
        return Trouble("failure", "rejects_correct_code", (test.advice,))
    return _outcome(test.own_code, (test.message,))


def _mutants(part: MutationPart) -> Iterator[Case]:
    if not part.mutants and part.total:
        yield _counted(wording.caught_of(part.killed, part.total), part.passed)
    for mutant in part.mutants:
        yield Case(mutant.id, None, _mutant(mutant, part.void))


def _counted(told: str, passed: bool) -> Case:
    """A part of which the reader is told no names."""
    return Case("all", None, None if passed else Trouble("failure", "counted", (told,)))


def _mutant(mutant: MutantPart, void: bool) -> Trouble | None:
    cause = "" if mutant.cause is None else mutant.cause.message
    if mutant.status is MutantStatus.INVALID:
        return Trouble("skipped", mutant.status.value, (wording.MUTANT_INVALID,))
    if mutant.status is MutantStatus.VOID:
        return Trouble("error", mutant.status.value, (cause or wording.NOT_GRADED,))
    if mutant.status in CAUGHT:
        return Trouble("failure", "void_grade", (wording.CAUGHT_IN_VAIN,)) if void else None
    return Trouble("failure", mutant.status.value, (mutant.hint or wording.NOT_CAUGHT, cause))
