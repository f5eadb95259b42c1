"""All that was seen of a submission arrives; the report leaves: scores, verdict, reasons and what to do next. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version

from grader import contract, mutation, tests_ast, verdicts, wording
from grader.mutation import CAUGHT, Decision, Judgement, Next, Score
from grader.plan import BROKEN, OWN, REFERENCE, Policy
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
    """The student's tests on the student's unit."""

    suite: SuiteSeen

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


@dataclass(frozen=True)
class Seen:
    """Everything grading saw. `course` holds, by test name, the runs of each course test; it and `own` are None when
    the student's unit is not Python."""

    problems: Sequence[contract.Problem]
    course: Mapping[str, Sequence[RunResult]] | None
    own: OwnSeen | None
    mutation: MutationSeen
    environment: Environment


def why_not_run(unit: Unit, calibration: SuiteSeen, policy: Policy) -> Stopped | None:
    """What the calibration run says against holding the suite against mutants."""
    tests, items = len(calibration.tests), len(calibration.collected)
    if calibration.ending is EndingKind.DEADLINE:
        return Stopped("out_of_time", wording.OUT_OF_TIME, MutantStatus.VOID)
    if tests > policy.most_tests or items > policy.most_items:
        count, most = (tests, policy.most_tests) if tests > policy.most_tests else (items, policy.most_items)
        return Stopped("too_many_tests", wording.too_many_tests(count, most), MutantStatus.VOID)
    if calibration.cause is not None:
        return Stopped("suite_ended", wording.suite_ended(calibration.cause.message), MutantStatus.VOID)
    if calibration.ending in verdicts.OUT_OF_TIME and calibration.unanswered:
        return Stopped("over_time_budget", wording.over_time_budget(unit.budget_cpu_seconds), MutantStatus.VOID)
    if not tests and calibration.errors:
        return Stopped("suite_not_loaded", _not_loaded(calibration), MutantStatus.VOID)
    if not tests:
        return Stopped("no_tests", wording.NO_TESTS, MutantStatus.SURVIVED)
    if all(test.outcome is Outcome.SKIPPED for test in calibration.tests.values()) and not calibration.errors:
        return Stopped("all_skipped", wording.ALL_SKIPPED, MutantStatus.SURVIVED)
    return None


def _not_loaded(calibration: SuiteSeen) -> str:
    # The message comes from a run on the reference: only the file's name is safe to show to everyone.
    return " ".join(wording.suite_did_not_load(error.path) for error in calibration.errors[:3])


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
    course = verdicts.course_tests(
        unit.course_tests, seen.course or {}, not_run=wording.OWN_UNIT_UNREADABLE if seen.course is None else ""
    )
    tests = student_tests(unit, submission, seen)
    mutants = mutation_part(unit, seen.mutation)
    oracle = OraclePart(status="not_run", cases=0, seed=None, worst=None, disagreements=())
    reasons = _reasons(contract_part, course, oracle, tests, mutants, seen)
    passed = not reasons
    weights = unit.weight_course_tests + unit.weight_mutation
    share = course.passed / course.total if course.total else 0.0
    score = (unit.weight_course_tests * share + unit.weight_mutation * mutants.score) / weights
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
    rejecting = calibrated.failing if judgement is None else judgement.invalid
    denied = _denied(unit.freedoms, judgement) if judgement is not None else ""
    advice = ""
    if rejecting:
        passed, total = (judgement.passed, judgement.total) if judgement is not None else (0, 1)
        advice = _advice(
            wording.rejection(name, passed, total, judgement is not None and judgement.flaky, line),
            denied,
            _misprint(unit.errata, submission, name) if REFERENCE in (judgement.rejected if judgement else ()) else "",
            own.message if own.failing else "",
        )
    return StudentTestPart(
        id=name,
        line=line,
        correct_runs=None if judgement is None else Runs(passed=judgement.passed, total=judgement.total),
        kills=tuple(mid for mid, decision in mutants.decisions.items() if name in decision.killed_by),
        flaky=None if judgement is None else judgement.flaky,
        own_code=own.outcome,
        valid=False if rejecting else None if judgement is None else judgement.valid,
        message=own.message if own.failing else "",
        rejection=calibrated.message if rejecting else "",
        advice=advice,
        denies=denied,
        cause=own.cause or calibrated.cause,
    )


def _seen_on(suite: SuiteSeen | None, name: str) -> TestSeen:
    if suite is None:
        return TestSeen(Outcome.NOT_RUN)
    for error in suite.errors:
        if error.path == name:
            return TestSeen(Outcome.ERROR, message=error.message, where=error.where)
    return suite.tests.get(name, TestSeen(Outcome.NOT_RUN))


def _denied(freedoms: Sequence[Freedom], judgement: Judgement) -> str:
    """The freedom a test forbids: it accepts the reference and rejects a wheat that uses the freedom."""
    if REFERENCE in judgement.rejected or not judgement.invalid:
        return ""
    for freedom in freedoms:
        if set(freedom.wheats) & set(judgement.rejected):
            return freedom.says
    return ""


def _misprint(errata: Sequence[Erratum], submission: Submission, name: str) -> str:
    path = name.partition("::")[0]
    source = next((file.data for file in submission.tests if file.path == path), b"")
    numbers = {text for text, _ in tests_ast.number_literals(source)}
    for erratum in errata:
        if erratum.printed in numbers:
            return wording.misprint(erratum.printed, erratum.correct, erratum.note)
    return ""


def _advice(rejection: str, denied: str, misprint: str, own_message: str) -> str:
    said = wording.said_on_own_code(own_message) if own_message else ""
    return rejection + (wording.denies(denied) if denied else "") + misprint + said


# -- the mutation grade ----------------------------------------------------------------------------------------------


def mutation_part(unit: Unit, seen: MutationSeen) -> MutationPart:
    """Scores and statuses; the score is 0 while any test rejects correct code or the suite could not be run."""
    decisions = seen.decisions or _without_runs(unit, seen.stopped)
    score = mutation.score(decisions, unit.required_mutants)
    void = seen.stopped is not None or any(judgement.invalid for judgement in seen.judgements.values())
    broken_cause = next((suite.cause for _, suite in seen.correct if suite.cause is not None), None)
    void = void or broken_cause is not None
    share = 0.0 if void else score.share
    return MutationPart(
        score=round(share, 6),
        score_if_valid=round(score.share, 6),
        threshold=unit.threshold,
        killed=score.killed,
        total=score.total,
        required_ok=score.required_ok,
        passed=not void and share >= unit.threshold and score.required_ok,
        matrix="none" if seen.stopped is not None else "full" if seen.complete else "first_kill",
        mutants=_mutant_parts(unit, decisions),
        wheats=_wheat_parts(unit, seen),
        categories=_categories(unit, decisions),
    )


def _without_runs(unit: Unit, stopped: Stopped | None) -> dict[str, Decision]:
    status = stopped.status if stopped is not None else MutantStatus.VOID
    cause = Cause(code="not_run", message=wording.NOT_GRADED) if status is MutantStatus.VOID else None
    return {mutant.id: Decision(Next.NOTHING, status, cause=cause) for mutant in unit.mutants}


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
        found.append(("contract", wording.contract_broken(len(contract_part.problems))))
    if course.passed < course.total:
        names = [test.id for test in course.tests if test.outcome is not Outcome.PASSED]
        found.append(("course_tests", wording.course_tests_failed(course.passed, course.total, names)))
    if oracle.status == "disagree":
        found.append(("oracle_disagrees", oracle.disagreements[0].message))
    stopped = seen.mutation.stopped
    if stopped is not None:
        found.append((stopped.code, stopped.message))
    invalid = [test for test in tests.tests if test.valid is False]
    flaky = [test.id for test in invalid if test.flaky]
    strict = [test.id for test in invalid if not test.flaky]
    if strict:
        found.append(("rejects_correct_code", wording.rejects_correct_code(strict)))
    if flaky:
        found.append(("flaky_tests", wording.flaky_tests(flaky)))
    if not tests.own_code_ok and stopped_allows_own(stopped):
        failing = [test.id for test in tests.tests if test.own_code in (Outcome.FAILED, Outcome.ERROR, Outcome.TIMEOUT)]
        found.append(("own_tests", wording.own_tests_fail(failing) if failing else wording.OWN_TESTS_NOT_RUN))
    if stopped is None:
        found += _mutation_reasons(mutants, seen.mutation)
    return tuple(Reason(code=code, message=message) for code, message in found)


def stopped_allows_own(stopped: Stopped | None) -> bool:
    """Whether what the tests did on the student's own unit says more than the reason for stopping does."""
    return stopped is None or stopped.code not in ("no_tests", "all_skipped", "too_many_tests")


def _mutation_reasons(mutants: MutationPart, seen: MutationSeen) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    ended = next((suite.cause for _, suite in seen.correct if suite.cause is not None), None)
    if ended is not None:
        found.append(("suite_ended", wording.suite_ended(ended.message)))
    if not seen.broken.failing and seen.broken.cause is None:
        found.append(("no_failure_seen", wording.NO_CALLS))
    if any(mutant.cause is not None and mutant.cause.code == "deadline" for mutant in mutants.mutants):
        found.append(("out_of_time", wording.OUT_OF_TIME))
    if mutants.score_if_valid < mutants.threshold:
        found.append(("below_threshold", wording.below_threshold(mutants.killed, mutants.total, mutants.threshold)))
    if not mutants.required_ok:
        missed = [m.id for m in mutants.mutants if m.required and m.status not in (*CAUGHT, MutantStatus.INVALID)]
        found.append(("required_survived", wording.required_survived(missed)))
    return found


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
    for test in tests.tests:
        if test.valid is False:
            return wording.next_rejection(test.advice)
    codes = {reason.code: reason.message for reason in reasons}
    for test in tests.tests:
        if "own_tests" in codes and test.own_code in (Outcome.FAILED, Outcome.ERROR, Outcome.TIMEOUT):
            return wording.next_own(test.id)
    survivors = [mutant for mutant in mutants.mutants if mutant.status is MutantStatus.SURVIVED]
    for mutant in sorted(survivors, key=lambda mutant: not mutant.required):
        if mutants.matrix != "none":
            return wording.next_mutant(mutant.id, mutant.hint)
    return reasons[0].message
