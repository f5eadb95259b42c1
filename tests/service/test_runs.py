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
