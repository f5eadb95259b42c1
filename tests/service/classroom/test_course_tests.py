import dataclasses

import pytest

from service.classroom.course_tests import NAMED, rows
from service.classroom.facts import Layout
from service.classroom.selection import Latest
from tests.service.classroom import klass
from tests.service.classroom.klass import asked

LAYOUTS = {"now": Layout(klass.TESTS, ()), "before": Layout(("test_old", "test_doubles"), ())}


def latest(student, tests, layout="now"):
    return Latest(student, 1, 0.0, None, "s", 0.5, 0, "s", 0.0, "fail", 0.5, 0, 0, 0, 0, 0, layout, tests, "")


def told(*found):
    return {row.id: row for row in rows(found, LAYOUTS, klass.unit())}


def test_each_student_is_asked_for_the_latest_submission_only(make_bench):
    bench = klass.a_class(make_bench)
    klass.submit(bench, "ada", klass.fails(failed=["test_doubles", "test_zero"]))
    bench.clock.now += 60
    klass.submit(bench, "ada", klass.fails(failed=["test_zero"]))
    klass.submit(bench, "bob", klass.fails(failed=["test_floats", "test_zero"]))
    answer = asked(bench, "tests")
    assert answer["students"] == 2
    assert [row["id"] for row in answer["tests"]] == list(klass.TESTS)
    shares = {row["id"]: (row["passed"], row["share"], row["failing"], row["stuck"]) for row in answer["tests"]}
    assert shares == {
        "test_doubles": (2, 1.0, 0, 0),
        "test_negative": (2, 1.0, 0, 0),
        "test_floats": (1, 0.5, 1, 1),
        "test_zero": (0, 0.0, 2, 1),
    }
    assert answer["tests"][3]["students"] == ["ada", "bob"]
    assert answer["tests"][3]["why"] == "why test_zero"
    assert answer["tests"][3]["outcomes"] == {"failed": 2}


def test_a_test_that_nobody_was_graded_with_has_no_share():
    row = told()["test_zero"]
    assert (row.graded, row.share, row.failing) == (0, None, 0)


def test_a_test_of_an_older_version_is_told_for_those_graded_with_it():
    found = told(latest("ada", ".F", "before"), latest("bob", "..F."))
    assert (found["test_old"].graded, found["test_old"].passed, found["test_old"].why) == (1, 1, "")
    assert (found["test_doubles"].graded, found["test_doubles"].failing, found["test_doubles"].stuck) == (2, 1, 1)


def test_only_the_first_few_who_fail_are_listed_in_their_order():
    row = told(*(latest(f"s{number:02}", "F...") for number in reversed(range(NAMED + 1))))["test_doubles"]
    assert row.failing == NAMED + 1
    assert row.students == tuple(f"s{number:02}" for number in range(NAMED))


def test_one_who_was_rejected_is_stuck_at_no_test():
    found = rows([latest("ada", "", "none")], {"none": Layout()}, klass.unit())
    assert all(row.graded == 0 for row in found)


@pytest.mark.parametrize("query", ["student=bob", "search=BO", "verdict=pass"])
def test_a_part_of_the_class_can_be_asked_about(make_bench, query):
    bench = klass.a_class(make_bench)
    klass.submit(bench, "ada", klass.fails(failed=["test_zero"]))
    klass.submit(bench, "bob", klass.Says())
    answer = asked(bench, f"tests?{query}")
    assert (answer["students"], answer["tests"][3]["failing"]) == (1, 0)


def test_a_percent_sign_is_looked_for_as_it_is(make_bench):
    bench = klass.a_class(make_bench)
    klass.submit(bench, "ada", klass.Says())
    klass.submit(bench, "100%", klass.Says())
    assert asked(bench, "tests?search=%25")["students"] == 1


def test_another_unit_is_another_class(make_bench):
    other = dataclasses.replace(klass.unit(), id="L0.1")
    bench = make_bench(klass.samples.course(klass.unit(), other))
    klass.submit(bench, "ada", klass.Says())
    assert bench.get("/v1/courses/default/units/L0.1/tests", "teacher").json()["students"] == 0
