"""What is named as a cause: something that was different, and touches what came out otherwise."""

from dataclasses import replace
from typing import get_args

import pytest

from grader.report import EnvironmentPart, Report, Verdict
from sandbox.records import File
from service.regrading import moves, versions, wording
from service.regrading.moves import compared, is_moved
from service.regrading.versions import Change, changes, parts_of
from tests.service import samples

UNIT = samples.unit()
MUTANT = Change("mutants", "m01", "changed")
TEST = Change("course_tests", "suite/test_twice.py", "changed")
WORDS = Change("texts", "m01", "changed")


def report(score: float = 1.0, *, survived: tuple[str, ...] = (), failed: tuple[str, ...] = ()) -> Report:
    verdict = Verdict.PASS if score == 1 else Verdict.FAIL
    return samples.report(samples.about(), verdict=verdict, score=score, survived=survived, failed=failed)


def by(report: Report, **more: object) -> Report:
    environment = EnvironmentPart(
        sandbox="docker",
        isolated=True,
        image_id="a",
        python="",
        numpy="",
        pytest="",
        hypothesis="",
        grader="1",
        limits={"tests": 200},
    )
    return report.model_copy(update={"environment": environment.model_copy(update=more)})


def test_of_what_was_changed_only_what_touches_the_outcome_is_a_cause() -> None:
    before, after = report(0.5, survived=("m01",)), report(1.0)
    assert compared(before, after, [TEST, MUTANT]).causes == ("mutants",)
    before = report(0.5, failed=("test_doubles",))
    assert compared(before, after, [TEST, MUTANT]).causes == ("course_tests",)


def test_where_nothing_touches_it_everything_that_was_changed_may_be_the_cause() -> None:
    assert compared(report(0.5, survived=("m01",)), report(1.0), [TEST]).causes == ("course_tests",)


def test_words_and_nothing_are_no_cause() -> None:
    before, after = report(0.5, survived=("m01",)), report(1.0)
    assert compared(before, after, []).causes == compared(before, after, [WORDS]).causes == ("chance",)


def test_a_state_that_was_not_kept_is_the_cause_without_a_name() -> None:
    assert compared(report(0.5, survived=("m01",)), report(1.0), None).causes == ("course",)


@pytest.mark.parametrize(("name", "value"), [("image_id", "b"), ("grader", "2"), ("limits", {"tests": 100})])
def test_the_surroundings_are_a_cause(name: str, value: object) -> None:
    found = compared(by(report(0.5, survived=("m01",))), by(report(1.0), **{name: value}), [])
    assert found.causes == ({"image_id": "image"}.get(name, name),)


def test_the_same_outcome_is_no_move_whatever_was_changed() -> None:
    assert not is_moved(compared(report(0.5, survived=("m01",)), report(0.5, survived=("m01",)), [MUTANT]))


def test_another_score_alone_is_a_move() -> None:
    assert is_moved(compared(report(0.5), report(0.75), [Change("settings", "weights", "changed")]))


def test_every_part_of_a_unit_that_is_changed_is_named() -> None:
    mutant = UNIT.mutants[0]
    for changed, expected in (
        (
            replace(UNIT, mutants=UNIT.mutants[1:]),
            [Change("mutants", "s01", "removed"), Change("texts", "s01", "removed")],
        ),
        (replace(UNIT, mutants=(replace(mutant, public="!"), UNIT.mutants[1])), [Change("texts", "s01", "changed")]),
        (replace(UNIT, test_files=(*UNIT.test_files, File("b.py", b""))), [Change("course_tests", "b.py", "added")]),
        (replace(UNIT, threshold=0.5), [Change("settings", "threshold", "changed")]),
        (replace(UNIT, required_mutants=()), [Change("mutants", "s01", "changed")]),
        (replace(UNIT, fixtures=()), [Change("course_tests", "L0.0/numbers.txt", "removed")]),
    ):
        assert list(changes(parts_of(UNIT), parts_of(changed))) == expected
    assert changes(parts_of(UNIT), parts_of(UNIT)) == ()
    assert set(parts_of(UNIT)) == set(versions.KINDS)


def test_what_had_failed_on_our_side_is_not_compared() -> None:
    failed = report(0.5).model_copy(update={"verdict": Verdict.GRADER_ERROR, "score": None})
    assert compared(failed, report(1.0), None).causes == compared(None, report(1.0), None).causes == ("failure",)


def test_every_cause_has_a_sentence_and_is_described() -> None:
    assert set(get_args(moves.Cause)) == set(wording.CAUSES)
