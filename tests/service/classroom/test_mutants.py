import pytest

from service.classroom.mutants import aligned
from tests.service.classroom import klass
from tests.service.classroom.klass import asked


@pytest.fixture
def bench(make_bench):
    bench = klass.a_class(make_bench)
    klass.submit(bench, "ada", klass.fails(survived=["s01", "s02"]))
    klass.submit(bench, "bob", klass.fails(survived=["s01"]))
    klass.submit(bench, "cy", klass.rejected())
    return bench


@pytest.mark.both_databases
def test_mutants_are_told_with_the_share_of_students_who_catch_them(bench):
    answer = asked(bench, "mutants")
    shares = {row["id"]: (row["graded"], row["killed"], row["share"]) for row in answer["mutants"]}
    assert shares == {"s01": (2, 0, 0.0), "s02": (2, 1, 0.5), "m01": (2, 2, 1.0), "m02": (2, 2, 1.0)}
    first = answer["mutants"][0]
    assert (first["private"], first["required"], first["statuses"]) == (
        "The factor is 3 where it should be 2.",
        True,
        {"invalid": 1, "survived": 2},
    )


@pytest.mark.both_databases
def test_categories_are_told_with_their_pitfalls_and_who_misses_any(bench):
    scale, sign = asked(bench, "mutants")["categories"]
    assert (scale["category"], scale["mutants"], scale["pitfalls"]) == ("scale", ["s01", "m02"], ["s01"])
    assert (scale["killed"], scale["graded"], scale["survivors"]) == (2, 4, 2)
    assert (sign["category"], sign["killed"], sign["survivors"]) == ("sign", 3, 1)


def test_the_matrix_has_a_row_for_each_student_by_pages(bench):
    first = asked(bench, "mutants?limit=2")
    assert [(row["student"], row["cells"], row["killed"]) for row in first["matrix"]] == [
        ("ada", "..KK", 2),
        ("bob", ".KKK", 3),
    ]
    second = bench.get(first["next"], "teacher").json()
    assert [(row["student"], row["cells"]) for row in second["matrix"]] == [("cy", "----")]
    assert second["next"] is None
    assert second["mutants"] == first["mutants"]


def test_a_page_key_of_another_list_is_refused(bench):
    key = asked(bench, "students?limit=1&sort=-score")["next"].partition("after=")[2]
    assert bench.get(f"{klass.PATH}/mutants?after={key}", "teacher").json()["code"] == "page_unknown"


def test_a_suite_that_was_held_against_other_mutants_says_nothing_of_the_new_ones():
    assert aligned("K.T", ("m01", "gone", "s01"), klass.MUTANTS) == "T-K-"


def test_a_unit_without_submissions_has_its_mutants_without_shares(make_bench):
    answer = asked(klass.a_class(make_bench), "mutants")
    assert [row["share"] for row in answer["mutants"]] == [None] * 4
    assert [row["survivors"] for row in answer["categories"]] == [0, 0]
