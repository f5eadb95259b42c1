import pytest
import sqlalchemy as sa

from grader import wording
from grader.report import Verdict
from service import database
from service.classroom import facts
from service.classroom.facts import Layout, Rejection
from service.tables import facts as rows
from service.tables import layouts, progress, rejections
from service.worker import FakeGrading
from tests.service import samples
from tests.service.classroom import klass

pytestmark = pytest.mark.both_databases


@pytest.fixture
def bench(make_bench):
    return klass.a_class(make_bench)


def report(said):
    return klass.report(samples.about(), said)


def test_outcomes_are_characters_in_the_order_of_the_layout():
    made = report(klass.fails(failed=["test_floats"], survived=["m01", "m02"]))
    row = facts.row_of(made)
    assert (row["tests"], row["mutants"]) == ("..F.", "KK..")
    assert facts.layout_of(made) == Layout(klass.TESTS, klass.MUTANTS)
    assert (row["tests_passed"], row["tests_total"], row["killed"], row["mutants_total"]) == (3, 4, 2, 4)


def test_every_outcome_and_status_has_a_character_of_its_own():
    for chars in (facts.TESTS, facts.MUTANTS):
        assert len(set(chars.values())) == len(chars) == len(type(next(iter(chars))))


def test_what_was_rejected_has_neither_tests_nor_mutants():
    row = facts.row_of(report(klass.rejected()))
    assert (row["tests"], row["mutants"], row["score"], row["verdict"]) == ("", "", None, "rejected")


SAYS = klass.ANY_NUMBER.says


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ({"advice": "Mine." + wording.misprint("4.0001", "4", "Twice 2 is 4.")}, "misprint", "4.0001"),
        ({"denies": SAYS, "advice": wording.denies(SAYS)}, "denies", SAYS),
        ({"advice": "Mine." + wording.may_deny(SAYS)}, "asks_more", SAYS),
        ({"flaky": True}, "flaky", ""),
        ({"id": "test_b.py"}, "not_loaded", ""),
        ({"cause": klass.ended()}, "ended", "cpu_time"),
        ({}, "unexplained", ""),
    ],
)
def test_a_rejection_says_what_the_report_tells_of_its_reason(more, code, said):
    [found] = facts.rejections_of(report(klass.fails(tests=[klass.rejecting(**more)])))
    assert (found.code, found.said, found.line) == (code, said, 7)


def test_a_test_that_rejects_all_correct_code_accepts_the_mutants_it_passes():
    made = report(klass.fails(tests=[klass.rejecting()], rows=[klass.on_mutants("F.FF")]))
    assert facts.rejections_of(made) == (Rejection("test_b.py::test_six", "test_b.py", 7, "unexplained", "", ("s02",)),)


def test_a_test_that_passes_on_some_correct_code_accepts_no_mutant():
    made = report(klass.fails(tests=[klass.rejecting()], rows=[klass.on_mutants("F.FF", correct=".F")]))
    [found] = facts.rejections_of(made)
    assert found.accepts == ()


def test_a_test_that_passes_on_many_mutants_tells_none_from_the_others():
    many = [f"m{number:02}" for number in range(facts.MOST_ACCEPTED + 1)]
    made = report(klass.fails(mutants=many, tests=[klass.rejecting()], rows=[klass.on_mutants("." * len(many))]))
    [found] = facts.rejections_of(made)
    assert found.accepts == ()


def test_the_end_of_a_run_stores_its_facts_beside_its_report(bench):
    submission = klass.submit(bench, "ada", klass.fails(0.25, failed=["test_zero"], tests=[klass.rejecting()]))
    [row] = bench.rows(rows)
    assert (row.submission, row.student, row.counts, row.verdict, row.score) == (submission, "ada", True, "fail", 0.25)
    assert (row.tests, row.rejecting) == ("...F", 1)
    [rejection] = bench.rows(rejections)
    assert (rejection.run, rejection.test, rejection.code) == (row.run, "test_b.py::test_six", "unexplained")
    klass.submit(bench, "bob", klass.Says())
    assert len(bench.rows(layouts)) == 1


def test_a_failure_of_ours_leaves_nothing(bench):
    klass.submit(bench, "ada", klass.Says(score=None, verdict=Verdict.GRADER_ERROR))
    assert bench.rows(rows) == bench.rows(progress) == []


def test_text_that_postgresql_refuses_is_stored_without_it(bench):
    klass.submit(bench, "ada", klass.fails(tests=[klass.rejecting("test_b.py::test_\0")]))
    [row] = bench.rows(rejections)
    assert row.test == "test_b.py::test_\N{REPLACEMENT CHARACTER}"


def test_most_of_many_rejections_are_counted_but_not_stored(bench):
    many = [klass.rejecting(f"test_b.py::test_{number}") for number in range(facts.MOST_REJECTIONS + 5)]
    klass.submit(bench, "ada", klass.fails(tests=many))
    assert len(bench.rows(rejections)) == facts.MOST_REJECTIONS
    assert bench.rows(rows)[0].rejecting == len(many)


def regraded(bench, submission, said):
    asked = bench.client.request(
        "POST", f"/v1/submissions/{submission}/runs", headers=bench.auth("teacher"), json={"reason": "again"}
    )
    assert asked.status_code == 202, asked.text

    def answer(unit, submission, about, progress):
        return klass.report(about, said)

    bench.graded(bench.worker(FakeGrading(answer)))


def test_only_the_run_that_counts_of_a_submission_counts(bench):
    submission = klass.submit(bench, "ada", klass.fails(0.3))
    regraded(bench, submission, klass.Says())
    assert sorted((row.counts, row.score) for row in bench.rows(rows)) == [(False, 0.3), (True, 1.0)]
    [row] = bench.rows(progress)
    assert (row.graded, row.best_score, row.passed_at) == (1, 1.0, bench.clock())


def test_a_report_that_is_repeated_has_facts_of_its_own(bench):
    klass.submit(bench, "ada", klass.Says())
    klass.submit(bench, "bob", klass.Says())
    assert sorted(row.student for row in bench.rows(rows)) == ["ada", "bob"]


def test_facts_of_reports_from_before_are_completed(bench):
    for student in ("ada", "bob", "cy"):
        klass.submit(bench, student, klass.fails(tests=[klass.rejecting()]))
    before = [sorted(map(tuple, bench.rows(table))) for table in (rows, progress, rejections)]
    with database.writing(bench.engine) as connection:
        for table in (rejections, progress, rows, layouts):
            connection.execute(sa.delete(table))
    assert [facts.complete(bench.engine, most=2) for _ in range(3)] == [2, 1, 0]
    assert [sorted(map(tuple, bench.rows(table))) for table in (rows, progress, rejections)] == before


def test_a_student_who_is_erased_leaves_no_facts(bench):
    klass.submit(bench, "ada", klass.fails(tests=[klass.rejecting()]))
    klass.submit(bench, "bob", klass.fails(tests=[klass.rejecting()]))
    erased = bench.client.request("DELETE", "/v1/students/ada", headers=bench.auth("admin"))
    assert erased.status_code == 200
    assert [row.student for row in bench.rows(rows)] == [row.student for row in bench.rows(progress)] == ["bob"]
    assert len(bench.rows(rejections)) == 1
