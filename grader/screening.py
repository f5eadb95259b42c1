"""Variants of a unit arrive; what the course tests, the staff suite and the oracle's cases saw of each, and which of
them are worth keeping as mutants, leave.

`runs` plans, `seen` reads results; `judge` and `pick` are the rules (docs/decisions/0151). All are pure.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from grader import comparator, plan
from grader.candidates import Candidate, Rejected
from grader.oracle import Trial, numpy_of
from grader.proof import behaviour_run
from grader.unit import Unit
from sandbox.records import Answer, File, ItemOutcome, Limits, Module, Run, RunResult

LIMITS = Limits(cpu_seconds=30, wall_seconds=180)
OBVIOUS = 0.6
"""a fault that fails more of all tests than this is found by any suite that calls the unit at all"""
FAILING = (ItemOutcome.FAILED, ItemOutcome.ERROR)


@dataclass(frozen=True)
class Yardstick:
    """What variants are held against: the staff suite, and the oracle's cases, none for a unit without."""

    unit: Unit
    staff: tuple[File, ...]
    trials: tuple[tuple[Trial, ...], ...]  # by seed


@dataclass(frozen=True)
class Seen:
    """One variant: the tests that failed on it ("course ..." and "staff ..."), how many there are, what it answered to
    each of the oracle's cases, as digests, and in how many the oracle disagrees. `ending` is "complete", or how a run
    ended instead."""

    ending: str
    failing: tuple[str, ...]
    tests: int
    answers: tuple[str, ...]
    disagree: int

    def killed_by(self, suite: str) -> bool:
        return any(name.startswith(f"{suite} ") for name in self.failing)


def runs(name: str, yardstick: Yardstick, modules: tuple[Module, ...]) -> list[Run]:
    """The runs of one variant: course tests, staff suite, and one for each of the oracle's seeds."""
    unit = yardstick.unit
    made = [behaviour_run(f"{name}c", unit, modules, None)]
    made.append(plan.suite_run(f"{name}s", unit, yardstick.staff, modules, LIMITS, messages=False))
    for number, trials in enumerate(yardstick.trials):
        made.append(plan.drive_run(f"{name}d{number}", unit, modules, [trial.case for trial in trials]))
    return made


def seen(yardstick: Yardstick, results: Sequence[RunResult]) -> Seen:
    """The results of `runs`, in their order."""
    course, staff, *drives = results
    failing = [
        f"{suite} {name}"
        for suite, result in (("course", course), ("staff", staff))
        for name in (
            *(item.id for item in result.record.items if item.outcome in FAILING),
            *(error.path for error in result.record.errors),
        )
    ]
    answers: list[str] = []
    disagree = 0
    for trials, drive in zip(yardstick.trials, drives, strict=True):
        by_case = {answer.case: answer for answer in drive.answers}
        for number, trial in enumerate(trials):
            answer = by_case.get(number)
            answers.append("" if answer is None else _digest(answer))
            disagree += answer is None or _disagrees(answer, trial)
    endings = [result.ending.kind.value for result in results if not result.complete]
    tests = len(course.record.items) + len(staff.record.items)
    return Seen((endings or ["complete"])[0], tuple(sorted(failing)), tests, tuple(answers), disagree)


def _digest(answer: Answer) -> str:
    """Of all that came back for one case, to the last bit."""
    total = hashlib.sha256(answer.error.encode())
    for name, array in sorted(answer.arrays.items()):
        total.update(f"{name} {array.dtype} {array.shape} ".encode())
        total.update(array.data)
    return total.hexdigest()[:16]


def _disagrees(answer: Answer, trial: Trial) -> bool:
    arrays = {name: numpy_of(array) for name, array in answer.arrays.items()}
    return bool(answer.error) or bool(comparator.findings(arrays, trial.expected))


def judge(candidate: Seen, reference: Seen) -> str:
    """Why a candidate is no good mutant, or "" if it may be one."""
    if candidate.ending != "complete":
        return f"does not end by itself: {candidate.ending}"
    cases = len(reference.answers)
    if cases and not candidate.failing and candidate.answers == reference.answers:
        return f"equivalent: {cases} cases answered alike to the last bit, no test fails"
    if cases and not candidate.failing and not candidate.disagree:
        return f"equivalent within the tolerances: {cases} cases, no test fails"
    if not candidate.killed_by("course"):
        return "not killed by the course tests"
    if not candidate.killed_by("staff"):
        return "not killed by the staff suite"
    if cases and not candidate.disagree:
        return "not seen by the oracle"
    if len(candidate.failing) > OBVIOUS * candidate.tests:
        return f"obvious: {len(candidate.failing)} of {candidate.tests} tests fail"
    return ""


@dataclass(frozen=True)
class Kept:
    """A mutant that counts already, or a candidate that is taken: what is to be told apart, and balanced."""

    id: str
    category: str
    function: str
    seen: Seen


def pick(
    candidates: Sequence[tuple[Candidate, Seen]], counted: Sequence[Kept], limit: int
) -> tuple[tuple[Candidate, ...], tuple[Rejected, ...]]:
    """Up to `limit` candidates, each killed by another set of tests than all that are kept, and the others.

    In turns: of what is left, the one whose function and category have the fewest, and that the fewest tests kill.
    """
    kept, taken = list(counted), list[Candidate]()
    out: list[Rejected] = []
    left = dict(enumerate(candidates))
    while left:
        patterns = {each.seen.failing: each.id for each in kept}
        for number, (candidate, its) in list(left.items()):
            if its.failing in patterns:
                twin = next(each for each in kept if each.id == patterns[its.failing])
                alike = (
                    "behaves like"
                    if its.answers and twin.seen.answers == its.answers
                    else "killed by the same tests as"
                )
                out.append(Rejected(candidate, f"{alike} {twin.id}"))
                del left[number]
        if len(taken) == limit or not left:
            break
        categories, functions = Counter(each.category for each in kept), Counter(each.function for each in kept)

        def weight(number: int, categories: Counter[str] = categories, functions: Counter[str] = functions) -> object:
            candidate, its = left[number]
            balance = categories[candidate.operator.category] + functions[candidate.function]
            return balance, len(its.failing), number

        number = min(left, key=weight)  # type: ignore[arg-type]
        candidate, its = left.pop(number)
        taken.append(candidate)
        kept.append(Kept(candidate.id, candidate.operator.category, candidate.function, its))
    out += [Rejected(candidate, "not chosen: the limit is reached") for candidate, _ in left.values()]
    return tuple(taken), tuple(out)


def equivalents(rejected: Sequence[Rejected]) -> tuple[Candidate, ...]:
    """Candidates that nothing could tell from the reference: after a person's look they may serve as wheats."""
    return tuple(each.candidate for each in rejected if each.reason.startswith("equivalent"))
