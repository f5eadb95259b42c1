from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from grader.report import Verdict
from service import database, runs
from service.classroom.overview import buckets, series_of
from service.runs import Worker
from tests.service.classroom import klass
from tests.service.classroom.klass import asked

HOUR, DAY = 3_600, 86_400
BERLIN = ZoneInfo("Europe/Berlin")


def quarter(*when):
    return int(datetime(*when, tzinfo=UTC).timestamp() // 900)


def test_a_full_score_is_in_the_last_bucket_and_a_bound_in_the_upper_one():
    assert [bucket.students for bucket in buckets([0.0, 0.1, 0.95, 1.0])] == [1, 1, 0, 0, 0, 0, 0, 0, 0, 2]


def test_hours_without_a_submission_stand_in_the_series():
    by, points = series_of({quarter(2026, 5, 1, 8): 2, quarter(2026, 5, 1, 10, 45): 1}, [], None, ZoneInfo("UTC"))
    assert by == "hour"
    assert [point.submissions for point in points] == [2, 0, 1]


def test_a_long_time_is_told_by_the_day_on_the_clocks_of_the_course():
    late = quarter(2026, 5, 1, 22, 30)  # half past midnight of the second in Berlin
    by, points = series_of({quarter(2026, 4, 25, 8): 1, late: 1}, [], None, BERLIN)
    assert by == "day"
    assert [point.at.date().isoformat() for point in points][::7] == ["2026-04-25", "2026-05-02"]
    assert points[-1].submissions == 1


@pytest.mark.parametrize(("day", "hours"), [((2026, 3, 29), 23), ((2026, 10, 25), 25)])
def test_a_day_on_which_the_clocks_change_has_as_many_hours_as_pass(day, hours):
    begin = datetime(*day, tzinfo=BERLIN).timestamp()
    end = begin + (hours - 1) * HOUR
    _, points = series_of({int(begin // 900): 1, int(end // 900): 1}, [], "hour", BERLIN)
    assert len(points) == hours == len({point.at.isoformat() for point in points})
    _, days = series_of({int(begin // 900): 1, int(end // 900): 1}, [], "day", BERLIN)
    assert [point.submissions for point in days] == [2]


def test_a_zone_with_half_an_hour_begins_its_days_at_its_midnight():
    kolkata = ZoneInfo("Asia/Kolkata")
    _, points = series_of({quarter(2026, 5, 1, 18, 30): 1}, [], "day", kolkata)
    assert [point.at.isoformat() for point in points] == ["2026-05-02T00:00:00+05:30"]


def test_hours_over_years_are_told_by_the_day():
    by, _ = series_of({quarter(2024, 1, 1): 1, quarter(2025, 1, 1): 1}, [], "hour", BERLIN)
    assert by == "day"


@pytest.fixture
def bench(make_bench):
    """Ada passes at the second try and fails at a third, bob does not, cy's was rejected, and dee's waits."""
    bench = klass.a_class(make_bench)
    klass.submit(bench, "ada", klass.fails(0.25))
    bench.clock.now += HOUR
    klass.submit(bench, "ada", klass.Says())
    klass.submit(bench, "bob", klass.fails(0.75))
    bench.clock.now += HOUR
    klass.submit(bench, "ada", klass.fails(0.5))
    klass.submit(bench, "cy", klass.rejected())
    bench.submitted("teacher", student="dee")
    return bench


@pytest.mark.both_databases
def test_the_overview_counts_students_once(bench):
    told = asked(bench, "overview")
    assert (told["students"], told["began"], told["passed"]) == (4, 4, 1)
    assert (told["submissions"], told["pending"], told["failed"]) == (6, 1, 0)
    assert told["verdicts"] == {"fail": 2, "rejected": 1}
    assert told["median_score"] == 0.875  # of ada's best and bob's: what was rejected has none
    assert [bucket["students"] for bucket in told["scores"]][7:] == [1, 0, 1]


@pytest.mark.both_databases
def test_a_student_who_has_passed_is_in_the_series_once_when_that_was(bench):
    told = asked(bench, "overview")
    assert told["by"] == "hour"
    assert [(point["submissions"], point["passed"]) for point in told["series"]] == [(1, 0), (2, 1), (3, 0)]


@pytest.mark.both_databases
def test_a_failure_of_ours_is_told_as_ours(make_bench):
    bench = klass.a_class(make_bench)
    klass.submit(bench, "ada", klass.Says(score=None, verdict=Verdict.GRADER_ERROR))
    told = asked(bench, "overview")
    assert (told["failed"], told["began"], told["students"]) == (1, 1, 1)


def test_the_queue_is_told_with_its_workers(bench):
    bench.clock.now += 40
    with database.writing(bench.engine) as connection:
        runs.beat(connection, Worker("w", 1, False, ("docker: no engine",)), bench.clock())
    queue = asked(bench, "overview")["queue"]
    assert (queue["waiting"], queue["running"], queue["oldest_seconds"]) == (1, 0, 40.0)
    assert (queue["workers"], queue["ready"], queue["missing"]) == (1, 0, ["docker: no engine"])


def test_a_unit_without_submissions_has_an_empty_overview(make_bench):
    told = asked(klass.a_class(make_bench), "overview")
    assert (told["students"], told["series"], told["median_score"], told["verdicts"]) == (0, [], None, {})


def test_times_are_those_of_the_latest_submission(bench):
    since = datetime.fromtimestamp(bench.clock(), UTC).isoformat().replace("+00:00", "Z")
    told = asked(bench, f"overview?since={since}")
    assert told["verdicts"] == {"fail": 1, "rejected": 1}
    assert told["submissions"] == 3
    assert told["students"] == 3


@pytest.mark.parametrize("wrong", ["since=tomorrow", "until=2026-13-01", "verdict=good", "by=minute"])
def test_what_cannot_be_read_is_said(bench, wrong):
    assert bench.get(f"{klass.PATH}/overview?{wrong}", "teacher").status_code == 422


def test_a_course_or_unit_that_is_not_there_is_404(bench):
    assert bench.get("/v1/courses/none/units/L0.0/overview", "teacher").json()["code"] == "course_unknown"
    assert bench.get("/v1/courses/default/units/L9.9/overview", "teacher").json()["code"] == "unit_unknown"
