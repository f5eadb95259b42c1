"""All that was seen of a submission arrives; the report leaves: scores, verdict, reasons and what to do next. Pure."""

from collections.abc import Mapping
from importlib.metadata import version

from grader import agreement, deps, reasons, verdicts, wording
from grader.mutation_part import mutation_part
from grader.next_step import next_course_test, next_step
from grader.plan import Policy, smoke_first
from grader.report import (
    ContractPart,
    DepPart,
    EnvironmentPart,
    Integrity,
    Problem,
    Reason,
    Report,
    SubmissionPart,
    Timing,
    Verdict,
    WeightsPart,
    intake_entries,
)
from grader.seen import About, Seen
from grader.student_part import student_tests
from grader.submission import Submission
from grader.unit import Unit
from grader.verdicts import STANDING_LIMITS
from sandbox.records import Environment


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
    course = course.model_copy(update={"next": next_course_test(unit, contract_part, course)})
    tests = student_tests(unit, submission, seen)
    mutants = mutation_part(unit, seen.mutation, [test.id for test in tests.tests])
    oracle = agreement.judge(None if seen.own is None else seen.own.oracle)
    found = reasons.reasons(contract_part, course, oracle, tests, mutants, seen)
    weights = _weights(unit)
    score = weights.course_tests * reasons.believed(course, oracle) + weights.mutation * mutants.score
    return Report(
        submission=_submission_part(unit.id, about, submission.digest),
        verdict=Verdict.FAIL if found else Verdict.PASS,
        score=round(score, 6),
        weights=weights,
        reasons=found if found else (Reason(code="passed", message=wording.PASSED),),
        next_step=next_step(unit, contract_part, course, tests, mutants, found),
        intake=intake_entries(submission.notes),
        deps=tuple(
            DepPart(
                id=dep.id,
                title=dep.title,
                used="submitted" if deps.sent(dep, submission) else "reference",
                offered=dep.offered,
            )
            for dep in unit.deps
        ),
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


def _weights(unit: Unit) -> WeightsPart:
    both = (unit.weight_course_tests + unit.weight_mutation) or 1.0
    return WeightsPart(course_tests=unit.weight_course_tests / both, mutation=unit.weight_mutation / both)


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
        libraries=dict(environment.libraries),
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
