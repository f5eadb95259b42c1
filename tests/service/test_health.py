import pytest

from sandbox.errors import EngineUnavailable, ImageMissing
from service import database, health
from service.runs import Worker
from service.tables import workers


def ready(bench, status):
    answer = bench.get("/readyz", "nobody")
    assert answer.status_code == status, answer.text
    return answer.json() | {"checks": {check["name"]: check for check in answer.json()["checks"]}}


def say(bench, name, *missing):
    worker = bench.worker(name=name)
    worker._missing = missing
    worker._beat(first=True)


@pytest.mark.both_databases
def test_with_a_worker_that_lacks_nothing_the_service_is_ready(bench):
    say(bench, "one")
    bench.submitted("ada")
    bench.clock.now += 5
    found = ready(bench, 200)
    assert (found["ready"], found["missing"], found["workers"]) == (True, [], 1)
    assert all(check["ok"] and check["state"] for check in found["checks"].values())
    assert set(found["checks"]) >= {"database", "worker", "docker", "image", "disk", "queue", "course"}
    assert found["checks"]["queue"]["state"] == "1 wait, the oldest for 5 s"


def test_without_a_worker_it_says_how_to_start_one(bench):
    assert "autograder worker" in ready(bench, 503)["missing"][0]


@pytest.mark.parametrize(
    ("error", "name"), [(EngineUnavailable("no socket"), "docker"), (ImageMissing("build it"), "image")]
)
def test_what_the_only_worker_lacks_is_named(bench, error, name):
    worker = bench.worker()
    worker._miss(error)
    worker._beat(first=True)
    found = ready(bench, 503)
    assert found["missing"] == [f"{name}: {error}"]
    assert [check for check, is_in in found["checks"].items() if not is_in["ok"]] == [name]


def test_one_worker_that_can_grade_is_enough(bench):
    say(bench, "one")
    say(bench, "two", "docker: no socket")
    found = ready(bench, 200)
    assert found["checks"]["worker"]["state"] == "1 of 2 ready"
    assert "no socket" in found["checks"]["docker"]["state"]


def test_a_disk_that_fills_up_is_named(make_bench):
    bench = make_bench(min_free_bytes=2**60)
    say(bench, "one")
    [missing] = ready(bench, 503)["missing"]
    assert missing.startswith("disk: ") and "MiB" in missing


def test_a_queue_at_its_mark_is_named(make_bench):
    bench = make_bench(max_queued=1)
    say(bench, "one")
    bench.submitted("ada")
    assert ready(bench, 503)["missing"] == ["queue: 1 wait, the oldest for 0 s"]


def test_a_database_that_does_not_answer_is_named_and_the_process_lives(bench):
    with database.writing(bench.engine) as connection:
        workers.drop(connection)
    [missing] = ready(bench, 503)["missing"]
    assert missing.startswith("database: SQLite, autograder.sqlite")
    assert bench.get("/livez", "nobody").status_code == 200


def test_the_databases_name_tells_no_password():
    engine = database.open_engine("postgresql+psycopg://grader:swordfish@db.example/grades")
    assert health.database_name(engine) == "PostgreSQL, grades on db.example"


def test_a_worker_that_starts_is_no_fault_of_its_engine():
    checks = {check.name: check for check in health.of_workers([Worker("a", 1, False, ("worker: starting",))])}
    assert not checks["worker"].works and "starting" in checks["worker"].state
    assert checks["docker"].works and checks["image"].works
