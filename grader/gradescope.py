"""A report arrives, with the points its assignment gives and how much students are told; the results.json that
Gradescope reads leaves. Pure.

What is visible is a student's view of the report, whoever asked for it; what else its reader may see is hidden, which
on Gradescope leaves it to the staff. Where students are told no names, a part is one entry with its points.
"""

import json
from collections.abc import Iterator
from typing import Literal, NotRequired

from typing_extensions import TypedDict  # pydantic, which describes these for OpenAPI, asks for this one

from grader import compared, wording
from grader.mutation import CAUGHT
from grader.reasons import believed
from grader.report import (
    Level,
    MutantPart,
    MutantStatus,
    OraclePart,
    Outcome,
    Report,
    StudentTestPart,
    Verdict,
    WeightsPart,
)
from grader.views import for_role
from grader.wording import escaped, shown

POINTS = 100.0
"""what a full score is worth if nothing else is said"""
MOST_POINTS = 1e6

Visibility = Literal["visible", "hidden"]
HALF_EACH = WeightsPart(course_tests=0.5, mutation=0.5)


class TestResult(TypedDict):
    name: str
    name_format: Literal["text"]
    number: str
    visibility: Visibility
    output: str
    output_format: Literal["text"]
    tags: list[str]
    status: NotRequired[Literal["passed", "failed"]]
    score: NotRequired[float]
    max_score: NotRequired[float]


class Results(TypedDict):
    """`score` is left out where we failed: then Gradescope reports that grading did."""

    score: NotRequired[float]
    execution_time: float
    output: str
    output_format: Literal["text"]
    test_output_format: Literal["text"]
    test_name_format: Literal["text"]
    visibility: Visibility
    stdout_visibility: Visibility
    extra_data: dict[str, str]
    tests: list[TestResult]


def render(report: Report, points: float = POINTS, level: Level = Level.HINTS) -> str:
    """The report, as its reader may see it, as JSON; a full score is `points`."""
    return json.dumps(results(report, points, level), indent=1, allow_nan=False) + "\n"


def results(report: Report, points: float = POINTS, level: Level = Level.HINTS) -> Results:
    """A grade set by hand is the score; then the entries show what was graded."""
    student = for_role(report, "student", level)
    made = Results(
        execution_time=student.timing.total,
        output=_lines([*_notes(student), f"{wording.NEXT_MARK} {student.next_step}"]),
        output_format="text",
        test_output_format="text",
        test_name_format="text",
        visibility="visible",
        stdout_visibility="hidden",
        extra_data={"submission": student.submission.id, "verdict": student.verdict.value},
        tests=[*_course_tests(student, points), *_oracle(student.oracle), *_own_tests(student)],
    )
    made["tests"] += [*_mutants(student, points), *_for_staff(report, student)]
    if student.by_hand is not None:
        made["score"] = round(points * student.by_hand.score, 6)
    elif student.verdict is not Verdict.GRADER_ERROR:
        made["score"] = round(points * (student.score or 0.0), 6)
    return made


def _notes(report: Report) -> Iterator[str]:
    if report.by_hand is not None:
        yield wording.set_by_hand(report.by_hand.score, report.by_hand.reason)
    yield from (reason.message for reason in report.reasons)
    if report.feedback is not None:
        yield report.feedback.message


def _lines(texts: list[str]) -> str:
    """Texts of any origin, each on lines of its own, without what moves a cursor or turns text."""
    return "\n".join(escaped(line) for text in texts for line in text.splitlines())


def _result(name: str, number: str, tag: str, texts: list[str], passed: bool | None = None) -> TestResult:
    made = TestResult(
        name=name,
        name_format="text",
        number=number,
        visibility="visible",
        output=_lines([text for text in texts if text]),
        output_format="text",
        tags=[tag],
    )
    if passed is not None:
        made["status"] = "passed" if passed else "failed"
    return made


def _scored(result: TestResult, earned: float, most: float) -> TestResult:
    """`earned` is the share of `most` that it got."""
    return {**result, "score": round(most * earned, 6), "max_score": round(most, 6)}


def _course_tests(report: Report, points: float) -> Iterator[TestResult]:
    part = report.course_tests
    if part is None:
        return
    counts = report.oracle is None or not part.total or believed(part, report.oracle) * part.total == part.passed
    share = points * (report.weights or HALF_EACH).course_tests
    if not part.tests and part.total:
        told = [wording.passed_of(part.passed, part.total), "" if counts else wording.PASSED_IN_VAIN]
        result = _result(wording.COURSE_TESTS, "1", "course", told, part.passed == part.total)
        yield _scored(result, part.passed / part.total if counts else 0.0, share)
    most = share / max(part.total, 1)
    for number, test in enumerate(part.tests, 1):
        passed = test.outcome is Outcome.PASSED
        told = [] if passed else [compared.said(test), test.where, test.why, test.chapter]
        counted = [wording.PASSED_IN_VAIN] if passed and not counts else []
        yield _scored(_result(test.id, f"1.{number}", "course", told + counted, passed), passed and counts, most)


def _oracle(part: OraclePart | None) -> Iterator[TestResult]:
    if part is not None and part.status != "not_run":
        told = [wording.cases_agree(part.agreed, part.cases), *(found.message for found in part.disagreements)]
        yield _result(wording.RANDOM_CASES, "2", "course", told, part.status == "agree")


def _own_tests(report: Report) -> Iterator[TestResult]:
    tests = () if report.student_tests is None else report.student_tests.tests
    for number, test in enumerate(tests, 1):
        yield _result(shown(test.id), f"3.{number}", "own tests", [test.advice, test.message], _own_test_passed(test))


def _own_test_passed(test: StudentTestPart) -> bool | None:
    if test.own_code.failing or test.valid is False:
        return False
    return True if test.own_code is Outcome.PASSED else None


def _mutants(report: Report, points: float) -> Iterator[TestResult]:
    part = report.mutation
    if part is None:
        return
    share = points * (report.weights or HALF_EACH).mutation
    if not part.mutants and part.total:
        told = [wording.caught_of(part.killed, part.total), wording.CAUGHT_IN_VAIN if part.void else ""]
        yield _scored(_result(wording.MUTANTS, "4", "mutants", told, part.passed), part.score, share)
    most = share / max(part.total, 1)
    for number, mutant in enumerate(part.mutants, 1):
        if mutant.status is MutantStatus.INVALID:
            continue
        caught = mutant.status in CAUGHT
        told = [wording.CAUGHT_IN_VAIN] if caught and part.void else _of_mutant(mutant)
        result = _result(wording.mutant_named(mutant.id), f"4.{number}", "mutants", told, caught)
        yield _scored(result, caught and not part.void, most)


def _of_mutant(mutant: MutantPart) -> list[str]:
    by = [wording.caught_by(mutant.killed_by)] if mutant.killed_by else []
    return [*by, mutant.hint, "" if mutant.cause is None else mutant.cause.message]


def _for_staff(report: Report, student: Report) -> Iterator[TestResult]:
    """What the reader may see and a student may not, hidden."""
    if report == student:
        return
    entries: list[tuple[str, list[str]]] = []
    if report.student_tests is not None:
        entries += [(test.id, [test.rejection]) for test in report.student_tests.tests if test.rejection]
    if report.mutation is not None:
        entries += [
            (wording.mutant_named(mutant.id), [mutant.detail, *_of_mutant(mutant)])
            for mutant in report.mutation.mutants
        ]
        entries += [
            (wording.wheat_named(wheat.id), [wording.rejected_by(wheat.rejected_by)])
            for wheat in report.mutation.wheats
            if not wheat.accepted
        ]
    for number, (name, told) in enumerate(entries, 1):
        hidden = _result(wording.for_staff(shown(name)), f"5.{number}", "staff", told)
        yield {**hidden, "visibility": "hidden"}
