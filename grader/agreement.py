"""The oracle's cases and what a unit answered to them arrive; whether they agree leaves. Pure.

Answers come from a process that the student's code shared, so nothing is believed of them but that they are arrays:
each is compared, and a case without an answer is never agreement.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from grader import comparator, wording
from grader.comparator import Finding
from grader.oracle import Trial, numpy_of
from grader.report import Cause, Disagreement, OraclePart
from sandbox.records import Answer, Ending, RunResult

TOLD = 5
"""how many disagreeing cases a report tells"""
DIGITS = 3


@dataclass(frozen=True)
class OracleSeen:
    """What a unit did on the cases of a seed. `answers` and `endings` are by place in `trials`; an ending stands at
    the case whose run it ended, and `ended` is one that no case can be blamed for."""

    seed: int
    trials: Sequence[Trial]
    answers: Mapping[int, Answer] = field(default_factory=dict)
    endings: Mapping[int, Ending] = field(default_factory=dict)
    ended: Ending | None = None
    next_case: int = 0
    """where a further run would take the cases up; behind the last one when there is nothing left to ask"""

    @cached_property
    def judged(self) -> OraclePart:
        """What `judge` says, worked out once."""
        return _judge(self)

    def with_run(self, result: RunResult) -> "OracleSeen":
        """The same after a further run of the cases from `next_case` on."""
        first, end = self.next_case, len(self.trials)
        answers = {**self.answers, **{first + answer.case: answer for answer in result.answers}}
        if result.complete:
            return OracleSeen(self.seed, self.trials, answers, self.endings, self.ended, end)
        if result.ending.item is None:
            return OracleSeen(self.seed, self.trials, answers, self.endings, result.ending, end)
        at = first + int(result.ending.item)
        return OracleSeen(self.seed, self.trials, answers, {**self.endings, at: result.ending}, self.ended, at + 1)


NOT_RUN = OraclePart(status="not_run", cases=0, agreed=0, seed=None, worst=None, disagreements=())


def judge(seen: OracleSeen | None) -> OraclePart:
    """Compare every answer. None, or no cases, is `not_run`."""
    return NOT_RUN if seen is None or not seen.trials else seen.judged


def _judge(seen: OracleSeen) -> OraclePart:
    return _all_agree(seen) or _one_by_one(seen)


def _all_agree(seen: OracleSeen) -> OraclePart | None:
    """What is judged of most units, at a fraction of the cost; None if there may be anything to tell of a case."""
    cases = len(seen.trials)
    if seen.endings or seen.ended is not None or any(at not in seen.answers for at in range(cases)):
        return None
    if any(answer.error for answer in seen.answers.values()):
        return None
    pairs = ((_arrays(seen.answers[at]), trial.expected) for at, trial in enumerate(seen.trials))
    worst = comparator.worst_of_agreeing(pairs)
    if worst is None:
        return None
    return OraclePart(
        status="agree", cases=cases, agreed=cases, seed=seen.seed, worst=_rounded(worst), disagreements=()
    )


def _one_by_one(seen: OracleSeen) -> OraclePart:
    found = [_compared(seen.answers[at], trial) if at in seen.answers else () for at, trial in enumerate(seen.trials)]
    told = [each for at in range(len(seen.trials)) for each in _disagreement(seen, at, found[at])]
    if seen.ended is not None:
        cause = wording.cause(seen.ended)
        told.append(Disagreement(case="", message=cause.message, cause=cause))
    agreed = sum(at in seen.answers and not _fails(seen, at, found[at]) for at in range(len(seen.trials)))
    agree = agreed == len(seen.trials) and not told
    if not agree and not told:
        told.append(Disagreement(case="", message=wording.NO_ANSWER))
    return OraclePart(
        status="agree" if agree else "disagree",
        cases=len(seen.trials),
        agreed=agreed,
        seed=seen.seed,
        worst=_worst(seen, found),
        disagreements=tuple(told[:TOLD]),
    )


def _compared(answer: Answer, trial: Trial) -> tuple[Finding, ...]:
    if answer.error:
        return ()
    return comparator.findings(_arrays(answer), trial.expected)


def _arrays(answer: Answer) -> dict[str, comparator.Array]:
    return {name: numpy_of(array) for name, array in answer.arrays.items()}


def _fails(seen: OracleSeen, at: int, found: tuple[Finding, ...]) -> bool:
    return bool(found) or at in seen.endings or bool(seen.answers[at].error)


def _disagreement(seen: OracleSeen, at: int, found: tuple[Finding, ...]) -> Iterator[Disagreement]:
    """What there is to say of one case: nothing if it agrees, or was never asked."""
    trial = seen.trials[at]
    cause: Cause | None = None
    if at in seen.endings:
        cause = wording.cause(seen.endings[at])
        what = cause.message
    elif at in seen.answers and seen.answers[at].error:
        what = wording.case_failed(seen.answers[at].error)
    elif found:
        what = wording.differs(found[0].says, found[0].difference, len(found) - 1)
    else:
        return
    yield Disagreement(case=trial.id, message=wording.case_disagrees(trial.says, what), cause=cause)


def _worst(seen: OracleSeen, found: Sequence[tuple[Finding, ...]]) -> float | None:
    """The largest error met, in tolerances: above 1 it is a disagreement. None where no numbers could be compared."""
    errors: list[float] = []
    for at, answer in seen.answers.items():
        if found[at]:
            errors += [each.difference.ratio for each in found[at] if each.difference.ratio is not None]
        elif not answer.error:
            errors.append(comparator.worst_closeness(_arrays(answer), seen.trials[at].expected))
    return _rounded(max(errors)) if errors else None


def _rounded(ratio: float) -> float:
    return float(f"{ratio:.{DIGITS}g}")
