"""What was seen of the student's tests arrives; their part of the report leaves, with advice on each bad test. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from grader import mutation, tests_ast, verdicts, wording
from grader.library import top
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
from grader.tests_ast import TestName
from grader.unit import Erratum, Freedom, Unit
from grader.verdicts import SuiteSeen, TestSeen
from sandbox.records import EndingKind
from sandbox.runtimes import LIBRARIES


@dataclass(frozen=True)
class Place:
    """Where a test stands in the upload, from its def to its end; a whole file that could not be loaded has line 1."""

    file: str = ""
    line: int = 0
    end: int = 0
    source: bytes = b""


def student_tests(unit: Unit, submission: Submission, seen: Seen) -> StudentTestsPart:
    """Every test of the student: on correct code, on mutants, on the student's own unit.

    Tests that stand in the files come first, in the order of the files, and whether or not they were collected: order
    and presence on other code could be chosen there.
    """
    own, mutants = seen.own, seen.mutation
    frozen = {name.id: name for name in tests_ast.frozen_names(submission.tests)}
    places = _places(submission, frozen)
    own_names = () if own is None else (*own.suite.tests, *mutation.error_paths(own.suite))
    met = dict.fromkeys((*own_names, *mutants.calibration.tests, *mutation.error_paths(mutants.calibration)))
    met.update(dict.fromkeys(mutants.judgements))
    names = dict.fromkeys((*(name for name in places if name in met or name in frozen), *met))
    tests = tuple(_student_test(name, unit, seen, places.get(name, Place())) for name in names)
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


def _places(submission: Submission, frozen: Mapping[str, TestName]) -> dict[str, Place]:
    """Where files and tests stand, by name."""
    sources = {file.path: file.data for file in submission.tests}
    files = {path: Place(path, 1, 0, source) for path, source in sources.items()}
    return files | {name: Place(test.path, test.line, test.end, sources[test.path]) for name, test in frozen.items()}


def _student_test(name: str, unit: Unit, seen: Seen, place: Place) -> StudentTestPart:
    mutants = seen.mutation
    judgement = mutants.judgements.get(name)
    own = _seen_on(seen.own.suite if seen.own is not None else None, name)
    calibrated = _seen_on(mutants.calibration, name)
    judged = judgement or _by_calibration(mutants, calibrated)
    fails_everywhere = own.failing and REFERENCE in judged.rejected  # then most often something else is wrong with it
    freedoms = [freedom for freedom in unit.freedoms if freedom.everywhere or not fails_everywhere]
    denied = _denied(freedoms, judged, place) if judged.invalid else None
    kills = tuple(mid for mid, decision in mutants.decisions.items() if name in decision.killed_by)
    advice = _advice(name, place, judged, calibrated, own, denied, unit) if judged.invalid else ""
    if judged.valid and not kills and _faced_all(name, mutants):
        advice = wording.KILLS_NOTHING
    firmly = denied is not None and REFERENCE not in judged.rejected
    return StudentTestPart(
        id=name,
        file=place.file,
        line=place.line,
        correct_runs=None if judgement is None else Runs(passed=judgement.passed, total=judgement.total),
        kills=kills,
        flaky=None if judgement is None else judgement.flaky,
        own_code=own.outcome,
        valid=False if judged.invalid else True if judged.valid else None,
        message=own.message if own.failing else "",
        rejection=calibrated.message if judged.invalid else "",
        advice=advice,
        denies=denied.says if denied is not None and firmly else "",
        cause=own.cause,
    )


def _faced_all(name: str, seen: MutationSeen) -> bool:
    """Whether no mutant can be left that the test would have caught: no run stopped early, and time sufficed."""
    causes = [decision.cause for decision in seen.decisions.values()]
    in_time = all(cause is None or cause.code != EndingKind.DEADLINE for cause in causes)
    return seen.complete and in_time and any(name in decision.cells for decision in seen.decisions.values())


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


def _denied(freedoms: Sequence[Freedom], judged: Judgement, place: Place) -> Freedom | None:
    """The freedom a test forbids, as far as can be told: what it rejects comes from what it asks for.

    Several wheats use each freedom, and a test may forbid it for some of them only. So words of the test decide first,
    and among freedoms with such words the one whose wheats are most nearly those rejected. A test that rejects the
    reference too may be wrong in other ways: then only words count (docs/decisions/0114).
    """
    if judged.flaky:
        return None
    rejected = set(judged.rejected)
    words = tests_ast.words(place.source, place.line)

    def signed(freedom: Freedom) -> bool:
        return any(fnmatchcase(word, sign) for sign in freedom.signs for word in words)

    def likeness(freedom: Freedom) -> float:
        return len(rejected & set(freedom.wheats)) / len(rejected | set(freedom.wheats))

    possible = [each for each in freedoms if likeness(each) > 0 or (REFERENCE in rejected and signed(each))]
    likest = max(possible, key=lambda each: (signed(each), likeness(each)), default=None)
    return None if likest is None or (REFERENCE in rejected and not signed(likest)) else likest


def _misprint(errata: Sequence[Erratum], place: Place) -> str:
    """The misprint that stands in a test, or else in its file, where a constant may hold it."""
    literals = tests_ast.number_literals(place.source)
    inside = {text for text, at in literals if place.line <= at <= place.end}
    for numbers in (inside, {text for text, _ in literals}):
        for erratum in errata:
            if erratum.printed in numbers:
                return wording.misprint(erratum.printed, erratum.correct, erratum.note)
    return ""


def _advice(
    name: str,
    place: Place,
    judged: Judgement,
    calibrated: TestSeen,
    own: TestSeen,
    denied: Freedom | None,
    unit: Unit,
) -> str:
    """Which test to look at, why, and what to do; nothing in it was said beside the reference."""
    title = name if place.line else wording.UNNAMED_TEST
    rejects_reference = REFERENCE in judged.rejected
    if name == place.file:
        text = wording.did_not_load(name)
    else:
        text = wording.rejection(title, judged.passed, judged.total, judged.flaky, place.file, place.line)
    if calibrated.cause is not None:
        text += f" {wording.without_seen(calibrated.cause).message}"
    misprint = _misprint(unit.errata, place) if rejects_reference else ""
    if denied is not None and not misprint:
        text += wording.may_deny(denied.says) if rejects_reference else wording.denies(denied.says)
    text += misprint
    told = own.cause is not None and own.message == own.cause.message and own.message in text
    if own.failing and own.message and not told:
        text += wording.said_on_own_code(own.message)
        if name == place.file and wording.lacks_module(own.message):
            text += wording.found_there(top(unit.files[0].module), LIBRARIES[unit.runtime])
    return text
