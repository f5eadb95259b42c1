"""What was seen of the mutants arrives; their part of the report leaves, or why they were not run. Pure."""

from collections.abc import Iterable, Mapping

from grader import mutation, verdicts, wording
from grader.kill_matrix import kill_matrix
from grader.mutation import Decision, Next, Score
from grader.plan import Policy, builds
from grader.report import (
    CategoryPart,
    Cause,
    MutantPart,
    MutantStatus,
    MutationPart,
    Outcome,
    WheatPart,
)
from grader.seen import MutationSeen, Stopped
from grader.submission import Submission
from grader.unit import Unit
from grader.verdicts import SuiteSeen
from grader.wording import INVALID_NAMED
from sandbox.records import EndingKind


def why_not_run(unit: Unit, submission: Submission, calibration: SuiteSeen, policy: Policy) -> Stopped | None:
    """What the calibration run says against holding the suite against mutants."""
    tests, items = len(calibration.tests), len(calibration.collected)
    if calibration.ending is EndingKind.DEADLINE:
        return Stopped("out_of_time", wording.OUT_OF_TIME, MutantStatus.VOID)
    if tests > policy.most_tests or items > policy.most_items:
        most = policy.most_tests if tests > policy.most_tests else policy.most_items
        return Stopped("too_many_tests", wording.too_many_tests(most), MutantStatus.VOID)
    if calibration.too_slow or (calibration.cause is not None and calibration.ending in verdicts.OUT_OF_TIME):
        return Stopped("over_time_budget", wording.over_time_budget(unit.budget_cpu_seconds), MutantStatus.VOID)
    if calibration.cause is not None:
        return Stopped("suite_ended", _ended(calibration.cause), MutantStatus.VOID)
    if not tests and calibration.errors:
        # Where it says what, it says so beside the reference: only the files' names are safe to show to everyone.
        broken = mutation.error_paths(calibration)
        paths = [file.path for file in submission.tests if file.path in broken]
        message = wording.files_not_loaded(paths[:INVALID_NAMED], more=len(paths) > INVALID_NAMED)
        return Stopped("suite_not_loaded", message, MutantStatus.VOID)
    if not tests:
        return Stopped("no_tests", wording.NO_TESTS, MutantStatus.SURVIVED)
    says_nothing = (test.outcome is Outcome.SKIPPED or not test.counts for test in calibration.tests.values())
    if all(says_nothing) and not calibration.errors:
        return Stopped("all_skipped", wording.ALL_SKIPPED, MutantStatus.SURVIVED)
    return None


def _ended(cause: Cause) -> str:
    return wording.suite_ended(wording.without_seen(cause).message)


def mutation_part(unit: Unit, seen: MutationSeen, tests: Iterable[str] = ()) -> MutationPart:
    """Scores, statuses, and what each of the `tests` did; the score is 0 where the suite rejects correct code, hides
    failures or could not be run."""
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
        remembered=seen.remembered,
        matrix="none" if seen.stopped is not None else "full" if seen.complete else "first_kill",
        mutants=_mutant_parts(unit, decisions),
        wheats=_wheat_parts(unit, seen),
        categories=_categories(unit, decisions),
        kill_matrix=kill_matrix(tests, seen),
    )


def _without_runs(unit: Unit, stopped: Stopped) -> dict[str, Decision]:
    cause = Cause(code=Outcome.NOT_RUN, message=wording.NOT_GRADED) if stopped.status is MutantStatus.VOID else None
    not_run = Decision(Next.NOTHING, stopped.status, cause=cause)
    invalid = Decision(Next.NOTHING, MutantStatus.INVALID)
    return {mutant.id: not_run if builds(mutant.files) else invalid for mutant in unit.mutants}


def _mutant_parts(unit: Unit, decisions: Mapping[str, Decision]) -> tuple[MutantPart, ...]:
    hints = {m.id: m.hints if decisions[m.id].status is MutantStatus.SURVIVED else () for m in unit.mutants}
    return tuple(
        MutantPart(
            id=mutant.id,
            tier=mutant.tier,
            required=mutant.id in unit.required_mutants,
            status=decisions[mutant.id].status,
            killed_by=decisions[mutant.id].killed_by,
            hint=next(iter(hints[mutant.id]), ""),
            hints_total=len(hints[mutant.id]),
            hints=hints[mutant.id],
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
