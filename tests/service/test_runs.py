import pytest

from service import database, runs, tables
from service.runs import Worker
from tests.service import samples

pytestmark = pytest.mark.both_databases


def answer(bench, submission):
    return bench.get(f"/v1/submissions/{submission}").json()


def begin(bench, run):
    with database.writing(bench.engine) as connection:
        return runs.claim(connection, run, "worker-1", bench.clock())


def end(bench, run):
    with database.writing(bench.engine) as connection:
        return runs.finish(connection, run, samples.report(samples.about()), bench.clock())


def test_places_in_the_queue_count_those_that_wait(bench):
    ids = []
    for student in ("ada", "bob", "cy"):
        ids.append(bench.submitted(student))
        bench.clock.now += 1
    assert [answer(bench, each)["position"] for each in ids] == [1, 2, 3]
    begin(bench, bench.queue.submitted[0])
    assert [answer(bench, each)["position"] for each in ids] == [None, 1, 2]


def test_who_has_work_waiting_stands_behind_who_has_none(bench):
    first, second = bench.submitted("ada"), bench.submitted("ada")
    bench.clock.now += 1
    other = bench.submitted("bob")
    assert [answer(bench, each)["position"] for each in (first, other, second)] == [1, 2, 3]


def test_estimates_come_from_recent_runs(bench):
    assert answer(bench, bench.submitted("ada"))["estimate_seconds"] is None
    [run] = bench.queue.submitted
    begin(bench, run)
    bench.clock.now += 10
    end(bench, run)
    first = bench.submitted("ada")
    assert answer(bench, first)["estimate_seconds"] == 10
    begin(bench, bench.queue.submitted[1])
    second = bench.submitted("bob")
    bench.clock.now += 0.01
    third = bench.submitted("cy")
    assert answer(bench, second)["estimate_seconds"] == 15  # half a run, and its own
    assert answer(bench, third)["estimate_seconds"] == 25
    bench.clock.now += 4
    assert answer(bench, first)["estimate_seconds"] == 6
    bench.clock.now += 100
    assert answer(bench, first)["estimate_seconds"] == 0


def test_two_slots_halve_the_wait(bench):
    bench.submitted("ada")
    [run] = bench.queue.submitted
    begin(bench, run)
    bench.clock.now += 10
    end(bench, run)
    with database.writing(bench.engine) as connection:
        runs.beat(connection, Worker("worker-1", 2, True, ()), bench.clock())
    waiting = []
    for student in "abcde":
        waiting.append(bench.submitted(student))
        bench.clock.now += 0.01
    begin(bench, bench.queue.submitted[1])
    begin(bench, bench.queue.submitted[2])
    assert [answer(bench, each)["estimate_seconds"] for each in waiting[2:]] == [15, 15, 25]


@pytest.mark.parametrize("ended", ["done", "error", "cancelled"])
def test_an_ended_run_moves_no_more(bench, ended):
    bench.submitted("ada")
    [run] = bench.queue.submitted
    with database.writing(bench.engine) as connection:
        connection.execute(tables.runs.update().values(status=ended))
    assert begin(bench, run) is None
    assert end(bench, run) is False
    with database.writing(bench.engine) as connection:
        assert runs.cancel(connection, run, bench.clock()) is False
    assert [row.status for row in bench.rows(tables.runs)] == [ended]
    assert bench.rows(tables.results) == []


def test_a_worker_that_fell_silent_is_not_alive(bench):
    with database.writing(bench.engine) as connection:
        runs.beat(connection, Worker("worker-1", 1, True, ()), bench.clock())
    assert bench.get("/readyz").json() == {"ready": True, "missing": [], "workers": 1}
    bench.clock.now += runs.ALIVE_SECONDS + 1
    assert "worker" in bench.get("/readyz").json()["missing"][0]


def test_a_report_comes_out_as_it_went_in(bench):
    bench.submitted("ada")
    [run] = bench.queue.submitted
    report = samples.report(samples.about(), survived=["m01"])
    with database.writing(bench.engine) as connection:
        runs.finish(connection, run, report, bench.clock())
        assert runs.report(connection, run) == report
