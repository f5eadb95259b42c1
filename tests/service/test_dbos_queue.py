import threading
import time

import pytest
import sqlalchemy as sa

from service import database, tables
from service.dbos_queue import QUEUE, DbosEngine, DbosQueue
from service.queue import Stopping
from service.settings import Settings

pytestmark = pytest.mark.both_databases


@pytest.fixture
def settings(tmp_path, store):
    return Settings(data=tmp_path, course=tmp_path, database_url=store(tmp_path))


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


def of_the_engine(connection):
    return "workflow_status" if connection.dialect.name == "sqlite" else "dbos.workflow_status"


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
        worker.deliver_again({"a": 1000, "lost": 1000})
        delivered.wait_for(5)
    finally:
        worker.stop(0)
        worker.close()
    assert delivered.ids[:3] == ["a", "b", "c"]
    assert sorted(delivered.ids[3:]) == ["a", "lost"]


def test_what_a_worker_has_is_known_until_another_gets_it(engine, queue, settings):
    with database.writing(engine) as connection:
        queue.submit(connection, "a", 1000)
        queue.submit(connection, "b", 1001)
    held, free = threading.Event(), threading.Event()

    def hold(run_id):
        held.set()
        free.wait(60)
        raise Stopping

    worker, other = DbosEngine(settings.url, "worker-1", 1, 0.05), DbosEngine(settings.url, "worker-2", 1, 0.05)
    assert worker.known() == {"a": None, "b": None}
    worker.start(hold)
    try:
        assert held.wait(60)
        assert worker.known() == worker.known() == {"a": "worker-1", "b": None}
        other.deliver_again({"a": 1000})
        assert other.known() == {"a": None, "b": None}
    finally:
        worker.stop(0)
        free.set()
        worker.close()
    assert other.known()["a"] is None  # what the first one still did to it counts no more
    other.close()


def test_a_run_that_never_reached_the_worker_it_was_given_to_is_missed_at_the_second_look(engine, queue, settings):
    with database.writing(engine) as connection:
        queue.submit(connection, "a", 1000)
        connection.exec_driver_sql(
            f"UPDATE {of_the_engine(connection)} SET status = 'PENDING', executor_id = 'worker-1'"
        )
    worker = DbosEngine(settings.url, "worker-1", 1, 0.05)
    assert [worker.known(), worker.known()] == [{"a": "worker-1"}, {}]
    worker.close()


def test_what_has_ended_is_forgotten_after_a_while(engine, queue, settings):
    with database.writing(engine) as connection:
        for run_id in "abc":
            queue.submit(connection, run_id, 1000)
    queue.cancel("a")
    queue.cancel("b")
    worker = DbosEngine(settings.url, "worker-1", 1, 0.05)
    assert worker.forget_ended(time.time() - 3600) == 0
    assert worker.forget_ended(time.time() + 3600) == 2
    assert worker.known() == {"c": None}
    worker.close()


def test_a_transaction_that_fails_enqueues_nothing(engine, queue):
    with pytest.raises(RuntimeError), database.writing(engine) as connection:
        connection.execute(tables.courses.insert().values(id="new", title="", created_at=0))
        queue.submit(connection, "a", 1000)
        raise RuntimeError
    with database.reading(engine) as connection:
        assert connection.execute(sa.text(f"SELECT count(*) FROM {of_the_engine(connection)}")).scalar_one() == 0


def test_nothing_is_pickled(engine, queue):
    with database.writing(engine) as connection:
        queue.submit(connection, "a", 1000)
    with database.reading(engine) as connection:
        query = f"SELECT serialization FROM {of_the_engine(connection)}"
        kinds = connection.execute(sa.text(query)).scalars().all()
    assert kinds == ["portable_json"]


def test_an_engine_that_is_woken_looks_at_once_and_one_that_sleeps_can_be_stopped(engine, queue, settings):
    delivered = Delivered()
    worker = DbosEngine(settings.url, "worker-1", 1, 3600.0)
    worker.start(delivered)
    try:
        for count, run_id in enumerate(("a", "b"), 1):
            with database.writing(engine) as connection:
                queue.submit(connection, run_id, 1000)
            while len(delivered.ids) < count:  # once more if the run before was not quite over
                worker.wake()
                time.sleep(0.02)
    finally:
        worker.stop(0)
        worker.close()


def test_threads_of_the_engine_that_could_find_nothing_ask_nothing(engine, queue, settings):
    asking = set()

    def note(connection, cursor, statement, *_):
        asking.add(threading.current_thread().name)

    delivered = Delivered()
    worker = DbosEngine(settings.url, "worker-1", 1, 0.05)
    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        worker.start(delivered)
        time.sleep(2.5)  # each of them would look once a second
        with database.writing(engine) as connection:
            queue.submit(connection, "a", 1000)
        delivered.wait_for(1)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
        worker.stop(0)
        worker.close()
    looking = {name for name in asking if name.startswith(("queue-worker", "dbos-background"))}
    assert looking == {f"queue-worker-{QUEUE}"}
