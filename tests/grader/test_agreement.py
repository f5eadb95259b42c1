"""From answers to a verdict: every case must be answered, in numbers that agree, by a run that ended well."""

import numpy as np
import pytest

from grader import agreement
from grader.agreement import OracleSeen
from grader.comparator import Expectation, Tolerance
from grader.oracle import Trial
from grader.report import OraclePart
from sandbox.arrays import Array
from sandbox.records import Answer, Ending, EndingKind, RunResult

COMPLETE = Ending(EndingKind.COMPLETE)
EXPECTED = np.array([1.0, 2.0])


def trial(number: int) -> Trial:
    what = Expectation(EXPECTED, Tolerance(atol=0.01), "the result")
    return Trial(f"c{number}", f"with {number} heads", b"", {"y": what})


def answer(case: int, values: object = EXPECTED, dtype: str = "float64", name: str = "y") -> Answer:
    array = np.asarray(values, dtype)
    return Answer(case, {name: Array(dtype, array.shape, array.tobytes())})


def seen(*runs: tuple[Ending, tuple[Answer, ...]], cases: int = 3) -> OracleSeen:
    found = OracleSeen(seed=9, trials=tuple(map(trial, range(cases))))
    for ending, answers in runs:
        found = found.with_run(RunResult("r", ending, answers=answers))
    return found


def judged(*answers: Answer, ending: Ending = COMPLETE) -> OraclePart:
    return agreement.judge(seen((ending, answers), cases=len(answers)))


def test_no_oracle_and_no_cases_is_not_run() -> None:
    assert agreement.judge(None).status == agreement.judge(seen(cases=0)).status == "not_run"


def test_right_answers_agree_and_the_worst_error_is_told_in_tolerances() -> None:
    part = judged(answer(0), answer(1, [1.0, 2.005]))
    assert (part.status, part.cases, part.agreed, part.seed, part.worst) == ("agree", 2, 2, 9, 0.5)
    assert part.disagreements == ()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (answer(1, [1.0, 2.5]), "With 1 heads: the result at [1] is 2.5, expected 2"),
        (answer(1, [1.0, np.nan]), "at [1] is nan"),
        (answer(1, [1.0, np.inf]), "at [1] is inf"),
        (answer(1, 1.0), "has the shape [], expected [2]"),
        (answer(1, []), "has the shape [0], expected [2]"),
        (answer(1, [[1.0, 2.0]]), "has the shape [1, 2], expected [2]"),
        (answer(1, EXPECTED, "float32"), "has the dtype float32, expected float64"),
        (answer(1, name="z"), "the result is missing (and 1 more result of this case)"),
        (Answer(1), "the result is missing"),
        (Answer(1, error="SystemExit: 0"), "With 1 heads: your code ended with SystemExit: 0"),
    ],
)
def test_a_wrong_answer_is_told_with_its_case(wrong: Answer, says: str) -> None:
    part = judged(answer(0), wrong, answer(2))
    assert (part.status, part.cases, part.agreed) == ("disagree", 3, 2)
    [told] = part.disagreements
    assert told.case == "c1" and says in told.message


def test_a_further_array_that_nobody_asked_for_is_a_disagreement() -> None:
    extra = Answer(0, {**answer(0).arrays, "z": Array("bool", (), b"\1")})
    assert judged(extra).status == "disagree"


def test_the_worst_error_of_a_disagreement_is_more_than_one_tolerance() -> None:
    assert judged(answer(0, [1.0, 2.05])).worst == pytest.approx(5.0)


@pytest.mark.parametrize(
    "kind", [kind for kind in EndingKind if kind is not EndingKind.COMPLETE], ids=lambda kind: kind.value
)
def test_an_ending_is_a_disagreement_of_its_case_with_its_cause(kind: EndingKind) -> None:
    part = agreement.judge(seen((Ending(kind, "1"), (answer(0),)), (COMPLETE, (answer(0),))))
    assert (part.status, part.agreed) == ("disagree", 2)
    [told] = part.disagreements
    assert told.case == "c1" and told.cause is not None and told.cause.code == kind.value
    assert told.message.startswith("With 1 heads: ")


def test_a_run_that_ended_behind_its_last_answer_does_not_agree() -> None:
    part = judged(answer(0), answer(1), ending=Ending(EndingKind.EARLY_EXIT))
    assert part.status == "disagree"
    [told] = part.disagreements
    assert told.case == "" and told.cause is not None and told.cause.code == "early_exit"


def test_cases_that_were_never_answered_do_not_agree() -> None:
    part = agreement.judge(seen((COMPLETE, (answer(0),))))
    assert (part.status, part.agreed) == ("disagree", 1)
    assert part.disagreements


def test_cases_are_taken_up_behind_the_one_that_ended_the_run() -> None:
    hang = Ending(EndingKind.CPU_TIME, "1")
    first = seen((hang, (answer(0),)), cases=5)
    assert first.next_case == 2
    second = first.with_run(RunResult("r", Ending(EndingKind.CPU_TIME, "0")))
    assert (second.next_case, sorted(second.endings)) == (3, [1, 2])
    third = second.with_run(RunResult("r", COMPLETE, answers=(answer(0), answer(1))))
    assert (third.next_case, sorted(third.answers)) == (5, [0, 3, 4])


def test_only_the_first_disagreements_are_told() -> None:
    part = judged(*(answer(number, [0.0, 0.0]) for number in range(20)))
    assert (part.agreed, len(part.disagreements)) == (0, agreement.TOLD)
