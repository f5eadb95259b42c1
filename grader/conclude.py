"""All that was seen of a submission arrives; the report leaves: scores, verdict, reasons and what to do next. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version

from grader import agreement, contract, mutation, tests_ast, verdicts, wording
from grader.agreement import OracleSeen
from grader.mutation import CAUGHT, Decision, Judgement, Next, Score
from grader.plan import BROKEN, OWN, REFERENCE, Policy, builds, smoke_first
from grader.report import (
    Baselines,
    CategoryPart,
    Cause,
    ContractPart,
    CourseTestsPart,
    EnvironmentPart,
    IntakeEntry,
    Integrity,
    MutantPart,
    MutantStatus,
    MutationPart,
    OraclePart,
    Outcome,
    Problem,
    Reason,
    Report,
    Runs,
    StudentTestPart,
    StudentTestsPart,
    SubmissionPart,
    Timing,
    Verdict,
    WheatPart,
)
from grader.submission import Submission
from grader.unit import Erratum, Freedom, Unit
from grader.verdicts import STANDING_LIMITS, SuiteSeen, TestSeen
from sandbox.records import EndingKind, Environment, RunResult

INVALID_NAMED = 3
"""how many tests that reject correct code a student is told at once"""


@dataclass(frozen=True)
class About:
    """Whose submission this is, and when it came."""

    id: str
    course: str
    student: str | None
    received_at: datetime
    queued_seconds: float = 0.0
    course_digest: str = ""


@dataclass(frozen=True)
class OwnSeen:
    """What was run on the student's unit: the course tests (by name, the runs of each), the student's tests, and the
    oracle's cases if the unit has an oracle."""

    course: Mapping[str, Sequence[RunResult]]
    suite: SuiteSeen
    oracle: OracleSeen | None = None

    @property
    def failing(self) -> tuple[str, ...]:
        return self.suite.failing

    @property
    def ok(self) -> bool:
        """Every test ran and none failed."""
        return not self.failing and self.suite.cause is None and not self.suite.unanswered


@dataclass(frozen=True)
class Stopped:
    """Why the suite was not held against mutants, and what that makes of them."""

    code: str
    message: str
    status: MutantStatus


@dataclass(frozen=True)
class MutationSeen:
    """The student's tests on correct code and on mutants; empty behind the calibration when `stopped`."""

    calibration: SuiteSeen
    broken: SuiteSeen
    correct: Sequence[tuple[str, SuiteSeen]] = ()
    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    complete: bool = False
    stopped: Stopped | None = None

    @property
    def ended(self) -> Cause | None:
        """How a run on correct code ended that no test can be blamed for."""
        return next((suite.cause for _, suite in self.correct if suite.cause is not None), None)

    @property
    def failures_seen(self) -> bool:
        """Whether the forced failure showed: otherwise no mutant is believed."""
        return self.broken.shows_failure

    @property
    def void(self) -> bool:
        """Whether the suite gets no score, whatever it catches."""
        invalid = any(judgement.invalid for judgement in self.judgements.values())
        return self.stopped is not None or invalid or self.ended is not None or not self.failures_seen


@dataclass(frozen=True)
class Seen:
    """Everything grading saw. `own` is None when the student's unit is not Python."""

    problems: Sequence[contract.Problem]
    own: OwnSeen | None
    mutation: MutationSeen
    environment: Environment


def why_not_run(unit: Unit, submission: Submission, calibration: SuiteSeen, policy: Policy) -> Stopped | None:
    """What the calibration run says against holding the suite against mutants."""
    tests, items = len(calibration.tests), len(calibration.collected)
    if calibration.ending is EndingKind.DEADLINE:
        return Stopped("out_of_time", wording.OUT_OF_TIME, MutantStatus.VOID)
    if tests > policy.most_tests or items > policy.most_items:
        count, most = (tests, policy.most_tests) if tests > policy.most_tests else (items, policy.most_items)
        return Stopped("too_many_tests", wording.too_many_tests(count, most), MutantStatus.VOID)
    if calibration.too_slow or (calibration.cause is not None and calibration.ending in verdicts.OUT_OF_TIME):
        return Stopped("over_time_budget", wording.over_time_budget(unit.budget_cpu_seconds), MutantStatus.VOID)
    if calibration.cause is not None:
        return Stopped("suite_ended", _ended(calibration.cause), MutantStatus.VOID)
    if not tests and calibration.errors:
        # Where it says what, it says so beside the reference: only the files' names are safe to show to everyone.
        sent = {file.path for file in submission.tests}
        paths = [path for path in mutation.error_paths(calibration) if path in sent]
        return Stopped("suite_not_loaded", wording.files_not_loaded(paths), MutantStatus.VOID)
    if not tests:
        return Stopped("no_tests", wording.NO_TESTS, MutantStatus.SURVIVED)
    says_nothing = (test.outcome is Outcome.SKIPPED or not test.counts for test in calibration.tests.values())
    if all(says_nothing) and not calibration.errors:
        return Stopped("all_skipped", wording.ALL_SKIPPED, MutantStatus.SURVIVED)
    return None


def _ended(cause: Cause) -> str:
    return wording.suite_ended(wording.without_seen(cause).message)


def report(
    unit: Unit,
    submission: Submission,
    seen: Seen,
    about: About,
    *,
    seed: int,
    phases: Mapping[str, float],
    policy: Policy,
) -> Report:
    """Put the report together."""
    contract_part = ContractPart(
        ok=not seen.problems,
        problems=tuple(
            Problem(code=problem.code, file=problem.file, line=problem.line, message=problem.message)
            for problem in seen.problems
        ),
    )
    course = (
        verdicts.course_tests(smoke_first(unit), {}, not_run=wording.OWN_UNIT_UNREADABLE)
        if seen.own is None
        else verdicts.course_tests(smoke_first(unit), seen.own.course)
    )
    tests = student_tests(unit, submission, seen)
    mutants = mutation_part(unit, seen.mutation)
    oracle = agreement.judge(None if seen.own is None else seen.own.oracle)
    reasons = _reasons(contract_part, course, oracle, tests, mutants, seen)
    passed = not reasons
    weights = (unit.weight_course_tests + unit.weight_mutation) or 1.0
    score = (unit.weight_course_tests * _believed(course, oracle) + unit.weight_mutation * mutants.score) / weights
    return Report(
        submission=_submission_part(unit.id, about, submission.digest),
        verdict=Verdict.PASS if passed else Verdict.FAIL,
        score=round(score, 6),
        reasons=reasons if reasons else (Reason(code="passed", message=wording.PASSED),),
        next_step=_next_step(contract_part, course, tests, mutants, reasons),
        intake=tuple(IntakeEntry(action=n.action, path=n.path, message=n.message) for n in submission.notes),
        contract=contract_part,
        course_tests=course,
        oracle=oracle,
        student_tests=tests,
        mutation=mutants,
        environment=_environment_part(unit, seen.environment, policy),
        timing=_timing(about, phases),
        integrity=Integrity(
            seed=seed,
            digests={
                "submission": submission.digest,
                "tests": submission.tests_digest,
                "unit": unit.digest,
                "course": about.course_digest,
            },
        ),
    )


def _believed(course: CourseTestsPart, oracle: OraclePart) -> float:
    """The share of course tests passed, as far as it counts: tests that all pass on code that the oracle finds wrong
    have shown nothing (docs/decisions/0087)."""
    if not course.total or _contradicted(course, oracle):
        return 0.0
    return course.passed / course.total


def _contradicted(course: CourseTestsPart, oracle: OraclePart) -> bool:
    return oracle.status == "disagree" and course.passed == course.total


def rejected(unit_id: str, about: About, code: str, message: str) -> Report:
    """The report of an upload that was not taken in."""
    return Report(
        submission=_submission_part(unit_id, about, ""),
        verdict=Verdict.REJECTED,
        score=None,
        reasons=(Reason(code=code, message=message),),
        next_step=message,
        timing=_timing(about, {}),
    )


def failed(unit_id: str, about: About, submission_digest: str, error: BaseException) -> Report:
    """The report of a failure of ours: no score, no attempt used, nothing said against the submission."""
    return Report(
        submission=_submission_part(unit_id, about, submission_digest),
        verdict=Verdict.GRADER_ERROR,
        score=None,
        reasons=(Reason(code="grader_error", message=wording.grader_failed(type(error).__name__)),),
        next_step=wording.NEXT_WAIT,
        timing=_timing(about, {}),
    )


def _submission_part(unit_id: str, about: About, digest: str) -> SubmissionPart:
    return SubmissionPart(
        id=about.id,
        unit=unit_id,
        course=about.course,
        student=about.student,
        received_at=about.received_at,
        digest=digest,
    )


def _timing(about: About, phases: Mapping[str, float]) -> Timing:
    rounded = {phase: round(seconds, 4) for phase, seconds in phases.items()}
    total = round(about.queued_seconds + sum(phases.values()), 4)
    return Timing(queued=round(about.queued_seconds, 4), phases=rounded, total=total)


def _environment_part(unit: Unit, environment: Environment, policy: Policy) -> EnvironmentPart:
    return EnvironmentPart(
        sandbox=environment.kind,
        isolated=environment.isolated,
        image_id=environment.image_id,
        python=environment.python,
        numpy=environment.numpy,
        pytest=environment.pytest,
        hypothesis=environment.hypothesis,
        grader=version("tinyllm-autograder"),
        limits={
            "course_test_seconds": unit.test_seconds,
            "suite_cpu_seconds": unit.budget_cpu_seconds,
            "submission_seconds": policy.total_seconds,
            "memory_bytes": STANDING_LIMITS.memory_bytes,
            "processes": STANDING_LIMITS.processes,
            "disk_bytes": STANDING_LIMITS.disk_bytes,
            "output_bytes": STANDING_LIMITS.output_bytes,
            "tests": policy.most_tests,
        },
    )


# -- the student's tests ---------------------------------------------------------------------------------------------


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


# -- the mutation grade ----------------------------------------------------------------------------------------------


def mutation_part(unit: Unit, seen: MutationSeen) -> MutationPart:
    """Scores and statuses; the score is 0 where the suite rejects correct code, hides failures or could not be run."""
    decisions = _without_runs(unit, seen.stopped) if seen.stopped is not None else seen.decisions
    score = mutation.score(decisions, unit.required_mutants)
    share = 0.0 if seen.void else score.share
    return MutationPart(
        score=round(share, 6),
        score_if_valid=round(score.share, 6),
        threshold=unit.threshold,
        killed=score.killed,
        total=score.total,
        required_ok=score.required_ok,
        passed=not seen.void and share >= unit.threshold and score.required_ok,
        matrix="none" if seen.stopped is not None else "full" if seen.complete else "first_kill",
        mutants=_mutant_parts(unit, decisions),
        wheats=_wheat_parts(unit, seen),
        categories=_categories(unit, decisions),
    )


def _without_runs(unit: Unit, stopped: Stopped) -> dict[str, Decision]:
    cause = Cause(code=Outcome.NOT_RUN, message=wording.NOT_GRADED) if stopped.status is MutantStatus.VOID else None
    not_run = Decision(Next.NOTHING, stopped.status, cause=cause)
    invalid = Decision(Next.NOTHING, MutantStatus.INVALID)
    return {mutant.id: not_run if builds(mutant.files) else invalid for mutant in unit.mutants}


def _mutant_parts(unit: Unit, decisions: Mapping[str, Decision]) -> tuple[MutantPart, ...]:
    return tuple(
        MutantPart(
            id=mutant.id,
            tier=mutant.tier,
            required=mutant.id in unit.required_mutants,
            status=decisions[mutant.id].status,
            killed_by=decisions[mutant.id].killed_by,
            hint=mutant.public if decisions[mutant.id].status is MutantStatus.SURVIVED else "",
            category=mutant.category,
            cause=decisions[mutant.id].cause,
            detail=mutant.private,
        )
        for mutant in unit.mutants
    )


def _wheat_parts(unit: Unit, seen: MutationSeen) -> tuple[WheatPart, ...]:
    ran = {variant for variant, _ in seen.correct}
    rejected_by = {
        wheat.id: tuple(name for name, judgement in seen.judgements.items() if wheat.id in judgement.rejected)
        for wheat in unit.wheats
        if wheat.id in ran
    }
    return tuple(WheatPart(id=wheat, accepted=not names, rejected_by=names) for wheat, names in rejected_by.items())


def _categories(unit: Unit, decisions: Mapping[str, Decision]) -> tuple[CategoryPart, ...]:
    names = dict.fromkeys(mutant.category for mutant in unit.mutants)
    scores: dict[str, Score] = {
        name: mutation.score({m.id: decisions[m.id] for m in unit.mutants if m.category == name}, ()) for name in names
    }
    return tuple(CategoryPart(category=name, killed=each.killed, total=each.total) for name, each in scores.items())


# -- reasons and what to do next -------------------------------------------------------------------------------------


def _reasons(
    contract_part: ContractPart,
    course: CourseTestsPart,
    oracle: OraclePart,
    tests: StudentTestsPart,
    mutants: MutationPart,
    seen: Seen,
) -> tuple[Reason, ...]:
    """Everything that keeps the submission from passing, the first to mend first; empty if it passes."""
    found: list[tuple[str, str]] = []
    if not contract_part.ok:
        first = contract_part.problems[0]
        count = len(contract_part.problems)
        found.append(("contract", wording.contract_broken(count, first.file, first.line, first.message)))
    if course.passed < course.total:
        names = [test.id for test in course.tests if test.outcome is not Outcome.PASSED]
        found.append(("course_tests", wording.course_tests_failed(course.passed, course.total, names)))
    if _contradicted(course, oracle):
        message = wording.oracle_disagrees(oracle.cases - oracle.agreed, oracle.cases, oracle.disagreements[0].message)
        found.append(("oracle_disagrees", message))
    stopped = seen.mutation.stopped
    if stopped is not None:
        found.append((stopped.code, stopped.message))
    found += _invalid_reasons(tests, seen.mutation)
    if not tests.own_code_ok and _own_says_more(stopped):
        found += _own_reasons(tests)
    if stopped is None:
        found += _mutation_reasons(mutants, seen.mutation)
    return tuple(Reason(code=code, message=message) for code, message in found)


def _invalid_reasons(tests: StudentTestsPart, seen: MutationSeen) -> list[tuple[str, str]]:
    """Tests that reject correct code, by kind. Only the first few are named, and only by names that stand in the
    uploaded files: any choice among names could carry something of the reference."""
    found: list[tuple[str, str]] = []
    broken_files = set(mutation.known_errors(seen.calibration, seen.correct))
    invalid = [test for test in tests.tests if test.valid is False]
    named = [test for test in invalid if test.line][:INVALID_NAMED]
    files = [test for test in invalid if test.id in broken_files]
    strict = [test for test in invalid if test not in files and not test.flaky]
    flaky = [test for test in invalid if test not in files and test.flaky]

    def names(kind: Sequence[StudentTestPart]) -> list[str]:
        return [test.id for test in named if test in kind]

    if files and (seen.stopped is None or seen.stopped.code != "suite_not_loaded"):
        found.append(("suite_not_loaded", wording.files_not_loaded(names(files))))
    if strict:
        more = len(strict) - len(names(strict))
        found.append(("rejects_correct_code", wording.rejects_correct_code(names(strict), more)))
    if flaky:
        found.append(("flaky_tests", wording.flaky_tests(names(flaky), len(flaky) - len(names(flaky)))))
    return found


def _own_reasons(tests: StudentTestsPart) -> list[tuple[str, str]]:
    """What the tests found in the student's own unit. A test that rejects correct code has found nothing there."""
    failing = [test for test in tests.tests if test.own_code in FAILING]
    believed = [test.id for test in failing if test.valid is not False]
    if believed:
        return [("own_tests", wording.own_tests_fail(believed))]
    return [] if failing else [("own_tests", wording.OWN_TESTS_NOT_RUN)]


def _own_says_more(stopped: Stopped | None) -> bool:
    """Whether what the tests did on the student's own unit says more than the reason for stopping does."""
    return stopped is None or stopped.code not in ("no_tests", "all_skipped", "too_many_tests")


def _mutation_reasons(mutants: MutationPart, seen: MutationSeen) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    causes = [mutant.cause for mutant in mutants.mutants] + [seen.ended, seen.broken.cause]
    if any(cause is not None and cause.code == EndingKind.DEADLINE for cause in causes):
        found.append(("out_of_time", wording.OUT_OF_TIME))
    elif seen.ended is not None:
        found.append(("suite_ended", _ended(seen.ended)))
    elif not seen.failures_seen:
        found.append(("no_failure_seen", wording.NO_FAILURE_SEEN))
    if mutants.score_if_valid < mutants.threshold:
        found.append(("below_threshold", wording.below_threshold(mutants.killed, mutants.total, mutants.threshold)))
    if not mutants.required_ok:
        missed = [m.id for m in mutants.mutants if m.required and m.status not in (*CAUGHT, MutantStatus.INVALID)]
        found.append(("required_survived", wording.required_survived(missed)))
    return found


FAILING = (Outcome.FAILED, Outcome.ERROR, Outcome.TIMEOUT)
SUITE_FIRST = (
    "oracle_disagrees",
    "out_of_time",
    "too_many_tests",
    "over_time_budget",
    "suite_ended",
    "no_tests",
    "all_skipped",
    "no_failure_seen",
)
"""reasons that say themselves what to do, and without which the rest means little"""


def _next_step(
    contract_part: ContractPart,
    course: CourseTestsPart,
    tests: StudentTestsPart,
    mutants: MutationPart,
    reasons: Sequence[Reason],
) -> str:
    if not reasons:
        return wording.NEXT_PASSED
    if contract_part.problems:
        first = contract_part.problems[0]
        return wording.next_contract(first.file, first.line, first.message)
    for course_test in course.tests:
        if course_test.outcome is not Outcome.PASSED:
            return wording.next_course_test(course_test.id, course_test.message)
    codes = {reason.code: reason.message for reason in reasons}
    for code in SUITE_FIRST:
        if code in codes:
            return codes[code]
    for test in sorted(tests.tests, key=lambda test: not test.line):  # those that can be named first
        if test.valid is False:
            return wording.next_rejection(test.advice)
    for test in tests.tests:
        if "own_tests" in codes and test.own_code in FAILING and test.valid is not False:
            return wording.next_own(test.id)
    survivors = [mutant for mutant in mutants.mutants if mutant.status is MutantStatus.SURVIVED]
    for mutant in sorted(survivors, key=lambda mutant: not mutant.required):
        if mutants.matrix != "none":
            return wording.next_mutant(mutant.id, mutant.hint)
    for mutant in mutants.mutants:
        if mutant.status is MutantStatus.VOID and mutant.cause is not None:
            return wording.next_void(mutant.id, wording.without_seen(mutant.cause).message)
    return reasons[0].message
