"""What was seen of the student's tests arrives; their part of the report leaves, with advice on each bad test. Pure."""

from collections.abc import Sequence

from grader import mutation, tests_ast, verdicts, wording
from grader.mutation import Judgement
from grader.plan import BROKEN, OWN, REFERENCE
from grader.report import (
    Baselines,
    Outcome,
    Runs,
    StudentTestPart,
    StudentTestsPart,
)
from grader.seen import MutationSeen, Seen
from grader.submission import Submission
from grader.unit import Erratum, Freedom, Unit
from grader.verdicts import SuiteSeen, TestSeen


def student_tests(unit: Unit, submission: Submission, seen: Seen) -> StudentTestsPart:
    """Every test of the student: on correct code, on mutants, on the student's own unit."""
    own, mutants = seen.own, seen.mutation
    names = dict.fromkeys((*mutants.calibration.tests, *mutation.error_paths(mutants.calibration), *mutants.judgements))
    if own is not None:
        names.update(dict.fromkeys((*own.suite.tests, *mutation.error_paths(own.suite))))
    lines = {file.path: 1 for file in submission.tests}
    lines |= {name.id: name.line for name in tests_ast.frozen_names(submission.tests)}
    tests = tuple(_student_test(name, unit, submission, seen, lines.get(name, 0)) for name in names)
    return StudentTestsPart(
        total=len(tests),
        own_code_ok=own is not None and own.ok,
        tests=tests,
        baselines=Baselines(
            correct=tuple(verdicts.suite_run_part(variant, suite) for variant, suite in mutants.correct),
            own=None if own is None else verdicts.suite_run_part(OWN, own.suite),
            broken=verdicts.suite_run_part(BROKEN, mutants.broken),
            cpu_seconds=round(mutants.calibration.cpu_seconds, 4),
            budget_cpu_seconds=unit.budget_cpu_seconds,
        ),
    )


def _student_test(name: str, unit: Unit, submission: Submission, seen: Seen, line: int) -> StudentTestPart:
    mutants = seen.mutation
    judgement = mutants.judgements.get(name)
    own = _seen_on(seen.own.suite if seen.own is not None else None, name)
    calibrated = _seen_on(mutants.calibration, name)
    judged = judgement or _by_calibration(mutants, calibrated)
    denied = _denied(unit.freedoms, judged)
    return StudentTestPart(
        id=name,
        line=line,
        correct_runs=None if judgement is None else Runs(passed=judgement.passed, total=judgement.total),
        kills=tuple(mid for mid, decision in mutants.decisions.items() if name in decision.killed_by),
        flaky=None if judgement is None else judgement.flaky,
        own_code=own.outcome,
        valid=False if judged.invalid else True if judged.valid else None,
        message=own.message if own.failing else "",
        rejection=calibrated.message if judged.invalid else "",
        advice=_advice(name, line, judged, calibrated, own, denied, unit, submission) if judged.invalid else "",
        denies=denied,
        cause=own.cause,
    )


def _by_calibration(seen: MutationSeen, calibrated: TestSeen) -> Judgement:
    """What the calibration run alone says of a test, where the suite got no further. Time over says nothing of the
    test in which it was over."""
    too_slow = calibrated.ended_run and seen.stopped is not None and seen.stopped.code == "over_time_budget"
    if calibrated.failing and not too_slow:
        return Judgement(0, 1, rejected=(REFERENCE,))
    return Judgement(0, 0, silent=True)


def _seen_on(suite: SuiteSeen | None, name: str) -> TestSeen:
    if suite is None:
        return TestSeen(Outcome.NOT_RUN)
    for error in suite.errors:
        if error.path == name:
            return TestSeen(Outcome.ERROR, message=error.message, where=error.where)
    return suite.tests.get(name, TestSeen(Outcome.NOT_RUN))


def _denied(freedoms: Sequence[Freedom], judgement: Judgement) -> str:
    """The freedom a test forbids: it accepts the reference and rejects wheats. Wheats use several freedoms each, so
    it is the one whose wheats are most nearly those rejected."""
    if REFERENCE in judgement.rejected or not judgement.invalid or judgement.flaky:
        return ""
    rejected = set(judgement.rejected)

    def likeness(freedom: Freedom) -> float:
        return len(rejected & set(freedom.wheats)) / len(rejected | set(freedom.wheats))

    likest = max(freedoms, key=likeness, default=None)
    return likest.says if likest is not None and likeness(likest) > 0 else ""


def _misprint(errata: Sequence[Erratum], submission: Submission, name: str, line: int) -> str:
    """The misprint that stands in a test, or else in its file, where a constant may hold it."""
    path = name.partition("::")[0]
    source = next((file.data for file in submission.tests if file.path == path), b"")
    starts = (test.line for test in tests_ast.frozen_names(submission.tests) if test.path == path)
    end = min((start for start in starts if start > line), default=None)
    literals = tests_ast.number_literals(source)
    inside = {text for text, at in literals if line <= at and (end is None or at < end)}
    for numbers in (inside, {text for text, _ in literals}):
        for erratum in errata:
            if erratum.printed in numbers:
                return wording.misprint(erratum.printed, erratum.correct, erratum.note)
    return ""


def _advice(
    name: str,
    line: int,
    judged: Judgement,
    calibrated: TestSeen,
    own: TestSeen,
    denied: str,
    unit: Unit,
    submission: Submission,
) -> str:
    """Which test to look at, why, and what to do; nothing in it was said beside the reference."""
    title = name if line else wording.UNNAMED_TEST
    if any(file.path == name for file in submission.tests):
        text = wording.did_not_load(name)
    else:
        text = wording.rejection(title, judged.passed, judged.total, judged.flaky, line)
    if calibrated.cause is not None:
        text += f" {wording.without_seen(calibrated.cause).message}"
    if denied:
        text += wording.denies(denied)
    if REFERENCE in judged.rejected:
        text += _misprint(unit.errata, submission, name, line)
    told = own.cause is not None and own.message == own.cause.message and own.message in text
    return text + (wording.said_on_own_code(own.message) if own.failing and own.message and not told else "")
