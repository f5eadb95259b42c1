import threading

import pytest
import sqlalchemy as sa

from service import database, dbos_queue, tables
from service.dbos_queue import DbosEngine, DbosQueue
from service.settings import Settings


@pytest.fixture
def settings(tmp_path):
    settings = Settings(data=tmp_path, course=tmp_path)
    database.migrate(settings)
    dbos_queue.migrate(settings.url)
    return settings


@pytest.fixture
def engine(settings):
    engine = database.open_engine(settings.url)
    yield engine
    engine.dispose()


@pytest.fixture
def queue(engine):
    queue = DbosQueue(engine)
    yield queue
    queue.close()


class Delivered:
    """A handler that remembers, and waits until it has seen enough."""

    def __init__(self):
        self.ids = []
        self._changed = threading.Condition()

    def __call__(self, run_id):
        with self._changed:
            self.ids.append(run_id)
            self._changed.notify_all()

    def wait_for(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.ids) >= count, 60)


def test_runs_come_out_in_order_of_priority_and_those_taken_back_do_not(engine, queue, settings):
    with database.writing(engine) as connection:
        for run_id, priority in (("c", 1002), ("a", 1000), ("x", 1000), ("b", 1001), ("a", 1000)):
            queue.submit(connection, run_id, priority)
    queue.cancel("x")
    delivered = Delivered()
    worker = DbosEngine(settings.url, "worker-1", 1, 0.05)
    worker.start(delivered)
    try:
        delivered.wait_for(3)
        # What the queue has lost, or believes done, is delivered when our tables say that it is not.
        assert set(worker.adopt({"a": 1000, "lost": 1000})) == {"a", "lost"}
        delivered.wait_for(5)
        assert worker.adopt({}) == []
    finally:
        worker.stop(0)
    assert delivered.ids[:3] == ["a", "b", "c"]
    assert sorted(delivered.ids[3:]) == ["a", "lost"]


def test_a_transaction_that_fails_enqueues_nothing(engine, queue):
    with pytest.raises(RuntimeError), database.writing(engine) as connection:
        connection.execute(tables.courses.insert().values(id="new", title="", created_at=0))
        queue.submit(connection, "a", 1000)
        raise RuntimeError
    with database.reading(engine) as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM workflow_status")).scalar_one() == 0


def test_nothing_is_pickled(engine, queue):
    with database.writing(engine) as connection:
        queue.submit(connection, "a", 1000)
    with database.reading(engine) as connection:
        kinds = connection.execute(sa.text("SELECT serialization FROM workflow_status")).scalars().all()
    assert kinds == ["portable_json"]
