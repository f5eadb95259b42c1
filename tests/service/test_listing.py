import base64

import pytest

from grader.report import Verdict
from service import listing
from service.database import reading
from service.page_keys import BadKey
from service.worker import FakeGrading
from tests.service import samples

pytestmark = pytest.mark.both_databases

DAY = 86_400


@pytest.fixture
def klass(bench):
    """Six graded submissions of three students, over three days, and one that waits."""
    marks = [("ada", 0.2), ("bob", 1.0), ("ada", 0.55), ("cy", 0.2), ("ada", 1.0), ("cy", 0.95)]
    for student, score in marks:
        bench.submitted("teacher", student=student)

        def answer(unit, submission, about, progress, score=score):
            good = score == 1.0
            return samples.report(
                about,
                unit.id,
                verdict=Verdict.PASS if good else Verdict.FAIL,
                score=score,
                failed=[] if score > 0.5 else ["test_doubles"],
                survived=[] if good else ["m01"],
            )

        bench.graded(bench.worker(FakeGrading(answer)))
        bench.clock.now += DAY / 2
    bench.submitted("teacher", student="ada")
    return bench


def listed(bench, query=""):
    answer = bench.get(f"/v1/units/L0.0/submissions?{query}", "teacher")
    assert answer.status_code == 200, answer.text
    return answer.json()


def pages(bench, query):
    path = f"/v1/units/L0.0/submissions?{query}"
    while path:
        answer = bench.get(path, "teacher").json()
        yield answer["submissions"]
        path = answer["next"]


def test_the_newest_come_first(klass):
    rows = listed(klass)["submissions"]
    times = [row["received_at"] for row in rows]
    assert len(rows) == 7
    assert times == sorted(times, reverse=True)
    assert (rows[0]["status"], rows[0]["verdict"], rows[0]["score"]) == ("queued", None, None)
    assert (rows[1]["status"], rows[1]["verdict"], rows[1]["mutation_score"]) == ("done", "fail", 0.5)


def test_filters_narrow_the_list(klass):
    for query, count in (
        ("student=ada", 4),
        ("student=nobody", 0),
        ("course=default", 7),
        ("course=other", 0),
        ("verdict=pass", 2),
        ("status=queued", 1),
        ("status=done&student=cy&verdict=fail", 2),
        ("student=ada%27%20or%201%3D1--", 0),
    ):
        assert len(listed(klass, query)["submissions"]) == count, query


@pytest.mark.parametrize("sort", ["received_at", "-received_at", "score", "-score"])
def test_pages_show_every_row_once_in_order(klass, sort):
    whole = listed(klass, f"sort={sort}&limit=500")["submissions"]
    for limit in (1, 2, 3, 7):
        found = list(pages(klass, f"sort={sort}&limit={limit}"))
        assert [row for page in found for row in page] == whole
        assert all(len(page) == limit for page in found[:-1])
    key = sort.lstrip("-")
    values = [row[key] if row[key] is not None else -1 for row in whole]
    assert values == sorted(values, reverse=sort.startswith("-"))


def test_a_page_is_not_moved_by_what_arrives_meanwhile(klass):
    first = listed(klass, "limit=3")
    klass.clock.now += 1
    klass.submitted("bob")
    second = klass.get(first["next"], "teacher").json()
    seen = {row["id"] for row in first["submissions"]} & {row["id"] for row in second["submissions"]}
    assert not seen


@pytest.mark.parametrize(
    "cursor", ["x", "AAAA", "W10", "WzEsMiwzXQ", "%F0%9F%90%B1", "WyItcmVjZWl2ZWRfYXQiLCAieCIsICJ5Il0"]
)
def test_a_key_of_somebody_elses_making_is_refused(bench, cursor):
    answer = bench.get(f"/v1/units/L0.0/submissions?after={cursor}", "teacher")
    assert (answer.status_code, answer.json()["code"]) == (422, "page_unknown")


@pytest.mark.parametrize(
    "key",
    [
        '["-received_at", 1, "\\ud800"]',
        '["-received_at", 1, "\\u0000"]',
        '["-received_at", NaN, "a"]',
        '["-received_at", 1e999, "a"]',
        f'["-received_at", {"9" * 400}, "a"]',
        '["-received_at", 1, ["a"]]',
    ],
)
def test_a_key_that_no_database_can_compare_is_refused(klass, key):
    cursor = base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")
    with reading(klass.engine) as connection, pytest.raises(BadKey):
        listing.page(connection, listing.Filter("L0.0"), listing.Sort.NEWEST, 10, cursor)


@pytest.mark.parametrize("query", ["submissions?student=%00", "submissions?course=a%00", "stats?course=%00"])
def test_a_filter_that_no_database_can_compare_is_a_422(bench, query):
    assert bench.get(f"/v1/units/L0.0/{query}", "teacher").status_code == 422


def test_an_id_that_no_database_can_compare_is_of_no_submission(bench):
    assert bench.get("/v1/submissions/%00", "teacher").status_code == 404


def test_a_key_for_another_order_is_refused(klass):
    key = listed(klass, "limit=1")["next"].partition("after=")[2]
    answer = klass.get(f"/v1/units/L0.0/submissions?sort=score&after={key}", "teacher")
    assert answer.status_code == 422


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "limit=x", "sort=id", "status=odd", "verdict=odd"])
def test_odd_parameters_are_a_422_that_names_them(bench, query):
    answer = bench.get(f"/v1/units/L0.0/submissions?{query}", "teacher")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert query.partition("=")[0] in answer.json()["message"]


def test_statistics_count_the_class(klass):
    stats = klass.get("/v1/units/L0.0/stats", "teacher").json()
    assert (stats["submissions"], stats["students"]) == (7, 3)
    assert stats["statuses"] == {"done": 6, "queued": 1}
    assert stats["verdicts"] == {"pass": 2, "fail": 4}
    assert stats["mean_score"] == pytest.approx((0.2 + 1 + 0.55 + 0.2 + 1 + 0.95) / 6)
    assert [bucket["count"] for bucket in stats["scores"]] == [0, 0, 2, 0, 0, 1, 0, 0, 0, 3]
    assert stats["course_tests"] == [
        {"id": "test_doubles", "graded": 6, "failed": 2, "outcomes": {"passed": 4, "failed": 2}}
    ]
    assert {mutant["id"]: mutant["survived"] for mutant in stats["mutants"]} == {"s01": 0, "m01": 4}
    days = stats["days"]
    assert sum(day["submissions"] for day in days) == 7
    assert sum(day["passed"] for day in days) == 2
    assert [day["day"] for day in days] == sorted({row["received_at"][:10] for row in listed(klass)["submissions"]})


def test_statistics_of_another_course_are_empty(klass):
    stats = klass.get("/v1/units/L0.0/stats?course=other", "teacher").json()
    assert (stats["submissions"], stats["mean_score"], stats["mutants"], stats["days"]) == (0, None, [], [])
