import pytest
from prometheus_client.parser import text_string_to_metric_families

from sandbox.errors import EngineFailed, EngineUnavailable
from service import database
from service.metrics import exposition
from service.stats import SERIES, Stats
from service.tables import workers
from service.worker import FakeGrading


def scraped(bench, **headers):
    answer = bench.client.request("GET", "/metrics", headers={**bench.auth("admin"), **headers})
    assert answer.status_code == 200, answer.text
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def beat(worker):
    worker._beat(first=True)


@pytest.mark.both_databases
def test_the_queue_its_age_and_what_ended_are_told(bench):
    for who in ("ada", "bob"):
        bench.submitted(who)
    bench.graded()
    bench.submitted("ada", student="ada")
    bench.clock.now += 42
    found = scraped(bench)
    assert found["autograder_queue_length",] == 1
    assert found["autograder_queue_oldest_seconds",] == 42
    assert found["autograder_runs", ("status", "done")] == 2
    assert found["autograder_results", ("verdict", "pass")] == 2
    assert found["autograder_database_up",] == 1


@pytest.mark.both_databases
def test_what_is_to_be_told_to_others_is_counted_and_how_long_it_has_been_due(bench):
    bench.submitted("lms", student="ada", callback="https://lms.example/")
    assert scraped(bench)["autograder_deliveries", ("state", "idle")] == 1
    bench.graded()
    bench.clock.now += 42
    found = scraped(bench)
    assert found["autograder_deliveries", ("state", "waiting")] == 1
    assert found["autograder_deliveries_due_seconds",] == 42


@pytest.mark.both_databases
def test_a_workers_figures_come_by_its_beat_and_end_with_it(bench):
    worker = bench.worker(name="host-7")
    beat(worker)
    bench.submitted("ada")
    bench.graded(worker)
    beat(worker)
    found = scraped(bench)
    who = ("worker", "host-7")
    assert found["autograder_worker_graded_total", ("verdict", "pass"), who] == 1
    assert found["autograder_worker_phase_seconds_count", ("phase", "queued"), who] == 1
    assert found["autograder_worker_grading", who] == 0
    assert found["autograder_workers", ("state", "ready")] == 1
    bench.clock.now += 3600
    assert not any("worker" in dict(labels) for _, *labels in scraped(bench))


def test_failures_of_ours_are_counted_by_their_kind(make_bench):
    bench = make_bench(max_attempts=2)
    errors = iter([EngineUnavailable("no engine"), EngineFailed("lost"), EngineFailed("lost")])

    def fails(unit, submission, about, progress):
        raise next(errors)

    worker = bench.worker(FakeGrading(fails))
    bench.submitted("ada")
    bench.graded(worker)
    figures = worker._stats.read().numbers
    assert figures["attempts_failed"] == {("EngineUnavailable",): 1, ("EngineFailed",): 2}
    assert figures["graded"] == {("grader_error",): 1}


def test_requests_are_counted_by_route_and_never_by_what_fills_it(bench):
    for number in range(30):
        bench.get(f"/v1/submissions/{number}")
        bench.get(f"/nothing/{number}")
        bench.client.request(f"ODD{number}", "/v1/units")
    found = scraped(bench)
    counted = {
        labels for name, *labels in found if name == "autograder_http_requests_total" for labels in [tuple(labels)]
    }
    route = "/v1/submissions/{submission_id}"
    assert found["autograder_http_requests_total", ("method", "GET"), ("route", route), ("status", "404")] == 30
    assert len(counted) == 3
    assert found["autograder_http_request_seconds_count", ("route", route)] == 30


def test_refusals_are_counted_by_their_reason(make_bench):
    bench = make_bench(max_queued=1)
    bench.submitted("ada")
    assert bench.post("bob").status_code == 503
    bench.get("/readyz")
    found = scraped(bench)
    assert found["autograder_refused_total", ("reason", "queue_full"), ("status", "503")] == 1
    assert found["autograder_refused_total", ("reason", "not_ready"), ("status", "503")] == 1


def test_figures_come_while_the_database_is_away(make_bench):
    bench = make_bench(metrics_token="scrape-me")
    with database.writing(bench.engine) as connection:
        workers.drop(connection)
    answer = bench.client.request("GET", "/metrics", headers={"Authorization": "Bearer scrape-me"})
    assert answer.status_code == 200
    assert "autograder_database_up 0.0" in answer.text and "autograder_disk_free_bytes" in answer.text


def test_nothing_told_names_a_student_a_submission_or_a_unit(bench):
    submission = bench.submitted("ada")
    worker = bench.worker()
    bench.graded(worker)
    beat(worker)
    text = bench.get("/metrics").text
    for secret in ("ada", submission, "L0.0", *bench.tokens.values()):
        assert secret not in text


def test_every_series_is_told_with_its_help_and_type_and_openmetrics_on_request(bench):
    stats = Stats()
    for name, series in SERIES.items():
        labels = dict.fromkeys(series.labels, 'a"\n\\')
        stats.observe(name, 1.0, **labels) if series.kind == "histogram" else stats.count(name, **labels)
    text, media_type = exposition(stats.read(), None, 1, "")
    assert media_type.startswith("text/plain")
    families = {family.name: family for family in text_string_to_metric_families(text.decode())}
    for name, series in SERIES.items():
        family = families[f"autograder_{name}"]
        assert (family.type, family.documentation) == (series.kind, series.says)
        assert all(
            value == 'a"\n\\' for sample in family.samples for label, value in sample.labels.items() if label != "le"
        )
    _, media_type = exposition(stats.read(), None, 1, "application/openmetrics-text;version=1.0.0")
    assert media_type.startswith("application/openmetrics-text")
