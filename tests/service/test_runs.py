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
        claimed = runs.find(connection, run)
        return runs.finish(connection, claimed, samples.report(samples.about()), bench.clock())


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


def test_every_change_makes_the_version_grow(bench):
    bench.submitted("ada")
    [run] = bench.queue.submitted
    versions = []

    def after(change):
        with database.writing(bench.engine) as connection:
            change(connection)
            versions.append(runs.find(connection, run).version)

    after(lambda connection: None)
    after(lambda connection: runs.claim(connection, run, "worker-1", 1.0))
    after(lambda connection: runs.show_progress(connection, runs.find(connection, run), "mutants", 1, 2))
    after(lambda connection: runs.hand_back(connection, "worker-1", 2.0))
    after(lambda connection: runs.claim(connection, run, "worker-2", 3.0))
    after(lambda connection: runs.ask_to_stop(connection, run, 4.0))
    after(lambda connection: runs.stopped(connection, runs.find(connection, run), 5.0))
    after(lambda connection: runs.claim(connection, run, "worker-3", 6.0))
    assert versions == [0, 1, 2, 3, 4, 5, 6, 6]


def test_a_worker_that_fell_silent_is_not_alive(bench):
    with database.writing(bench.engine) as connection:
        runs.beat(connection, Worker("worker-1", 1, True, ()), bench.clock())
    answer = bench.get("/readyz").json()
    assert (answer["ready"], answer["missing"], answer["workers"]) == (True, [], 1)
    bench.clock.now += runs.ALIVE_SECONDS + 1
    assert "worker" in bench.get("/readyz").json()["missing"][0]


def test_a_report_comes_out_as_it_went_in(bench):
    bench.submitted("ada")
    [run] = bench.queue.submitted
    report = samples.report(samples.about(), survived=["m01"])
    claimed = begin(bench, run)
    with database.writing(bench.engine) as connection:
        runs.finish(connection, claimed, report, bench.clock())
        assert runs.report(connection, run) == report
