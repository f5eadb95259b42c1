import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.report import Verdict
from service import retention
from service.classroom.progress import Graded, progress_of
from service.tables import progress
from tests.service.classroom import klass


def graded(number, score, verdict=Verdict.FAIL):
    return Graded(f"r{number}", f"s{number}", float(number), verdict, score)


def test_nobody_has_made_progress_without_a_report():
    assert progress_of([]) is None


def test_progress_tells_the_latest_the_best_and_when_it_first_passed():
    found = progress_of(
        [graded(1, 0.2), graded(2, 1.0, Verdict.PASS), graded(3, 1.0, Verdict.PASS), graded(4, None, Verdict.REJECTED)]
    )
    assert (found.run, found.latest_at, found.first_at, found.graded) == ("r4", 4.0, 1.0, 4)
    assert (found.best_submission, found.best_score, found.since_best) == ("s2", 1.0, 2)
    assert found.passed_at == 2.0


def test_what_was_rejected_is_worse_than_nothing_right():
    assert progress_of([graded(1, None, Verdict.REJECTED), graded(2, 0.0)]).best_submission == "s2"


@given(st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=6), st.randoms())
def test_progress_does_not_depend_on_the_order_of_the_rows(scores, random):
    sent = [graded(number, score) for number, score in enumerate(scores)]
    shuffled = random.sample(sent, len(sent))
    assert progress_of(shuffled) == progress_of(sent)


@pytest.mark.both_databases
def test_submissions_that_are_no_longer_kept_are_no_progress(make_bench):
    bench = klass.a_class(make_bench)
    klass.submit(bench, "ada", klass.Says())
    bench.clock.now += 100 * 86_400
    klass.submit(bench, "ada", klass.fails(0.4))
    [before] = bench.rows(progress)
    assert (before.graded, before.best_score) == (2, 1.0)
    settings = dataclasses.replace(bench.settings, keep_submissions_days=50)
    retention.sweep(bench.engine, settings, bench.clock())
    [after] = bench.rows(progress)
    assert (after.graded, after.best_score, after.passed_at) == (1, 0.4, None)
