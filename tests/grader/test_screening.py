"""The rules by which candidates become mutants, one by one."""

from dataclasses import replace
from pathlib import Path

import pytest

from grader import screening
from grader.candidates import Candidate, propose
from grader.screening import Kept, Seen
from tests.grader.small_course import small_unit

REFERENCE = Seen("complete", (), 10, ("a", "b"), 0)
GOOD = Seen("complete", ("course test_a", "staff test_b"), 10, ("a", "x"), 1)


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (GOOD, ""),
        (replace(GOOD, ending="cpu_time"), "does not end by itself: cpu_time"),
        (REFERENCE, "equivalent: 2 cases answered alike to the last bit, no test fails"),
        (replace(REFERENCE, answers=("a", "c")), "equivalent within the tolerances: 2 cases, no test fails"),
        (replace(REFERENCE, answers=("a", "c"), disagree=1), "not killed by the course tests"),
        (replace(GOOD, failing=("staff test_b",)), "not killed by the course tests"),
        (replace(GOOD, failing=("course test_a",)), "not killed by the staff suite"),
        (replace(GOOD, disagree=0), "not seen by the oracle"),
        (replace(GOOD, failing=GOOD.failing * 4), "obvious: 8 of 10 tests fail"),
    ],
)
def test_the_first_rule_that_is_broken_is_the_reason(seen: Seen, reason: str) -> None:
    assert screening.judge(seen, REFERENCE) == reason


def test_without_an_oracle_tests_alone_decide() -> None:
    reference = replace(REFERENCE, answers=())
    assert screening.judge(reference, reference) == "not killed by the course tests"
    assert screening.judge(replace(GOOD, answers=(), disagree=0), reference) == ""


@pytest.fixture
def candidates(tmp_path: Path) -> list[Candidate]:
    """Of two functions in turns."""
    first = propose(small_unit(tmp_path))[0]
    return [replace(first, id=f"c{i}", function=f"f{i % 2}") for i in range(6)]


def killed_by(*names: str, answer: str = "x") -> Seen:
    return replace(GOOD, failing=names, answers=("a", answer))


def test_the_one_that_fewest_tests_kill_comes_first_and_functions_take_turns(candidates: list[Candidate]) -> None:
    seen = [
        killed_by("1", "2", "3"),
        killed_by("1", "2"),
        killed_by("1"),
        killed_by("4"),
        killed_by("5"),
        killed_by("6"),
    ]
    taken, out = screening.pick(list(zip(candidates, seen, strict=True)), [], 3)
    assert [each.id for each in taken] == ["c2", "c3", "c4"]
    assert {each.reason for each in out} == {"not chosen: the limit is reached"}


def test_what_counts_already_counts_for_the_balance(candidates: list[Candidate]) -> None:
    counted = [Kept("m01", "other", "f0", killed_by("9"))]
    seen = [killed_by("1"), killed_by("2", "3")]
    taken, _ = screening.pick(list(zip(candidates, seen, strict=False)), counted, 1)
    assert [each.id for each in taken] == ["c1"]


def test_two_that_the_same_tests_kill_are_one(candidates: list[Candidate]) -> None:
    counted = [Kept("m01", "other", "f0", killed_by("1"))]
    seen = [killed_by("1"), killed_by("1", answer="y"), killed_by("2"), killed_by("2", answer="z")]
    taken, out = screening.pick(list(zip(candidates, seen, strict=False)), counted, 9)
    assert [each.id for each in taken] == ["c3"]
    assert {each.candidate.id: each.reason for each in out} == {
        "c0": "behaves like m01",
        "c1": "killed by the same tests as m01",
        "c2": "killed by the same tests as c3",
    }
