import threading

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from service import database, dbos_queue, offerings, tables
from service.settings import Settings


@pytest.fixture
def settings(tmp_path):
    return Settings(data=tmp_path, course=tmp_path)


@pytest.fixture
def engine(settings):
    database.migrate(settings)
    engine = database.open_engine(settings.url)
    yield engine
    engine.dispose()


def test_the_migrations_lead_to_the_tables_as_written_down(engine, settings):
    dbos_queue.migrate(settings.url)
    with database.reading(engine) as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "include_name": lambda name, kind, parents: kind != "table" or name.startswith("ag_"),
                "version_table": "ag_alembic_version",
                "compare_type": True,
            },
        )
        assert compare_metadata(context, tables.metadata) == []


def test_the_migrations_go_back_to_nothing(engine, settings):
    from alembic import command

    command.downgrade(database.alembic_config(settings), "base")
    left = [name for name in sa.inspect(engine).get_table_names() if name.startswith("ag_")]
    assert left == ["ag_alembic_version"]


def test_a_second_migration_changes_nothing(engine, settings):
    database.migrate(settings)
    with database.reading(engine) as connection:
        assert connection.execute(sa.select(tables.courses.c.id)).scalars().all() == ["default"]


def test_the_database_keeps_what_it_acknowledged(engine):
    with database.reading(engine) as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}


def test_writers_take_turns_and_lose_no_update(engine):
    with database.writing(engine) as connection:
        connection.execute(tables.courses.insert().values(id="counted", title="", created_at=0))

    def count():
        for _ in range(20):
            with database.writing(engine) as connection:
                row = sa.select(tables.courses.c.created_at).where(tables.courses.c.id == "counted")
                seen = connection.execute(row).scalar_one()
                connection.execute(
                    tables.courses.update().where(tables.courses.c.id == "counted").values(created_at=seen + 1)
                )

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.reading(engine) as connection:
        row = sa.select(tables.courses.c.created_at).where(tables.courses.c.id == "counted")
        assert connection.execute(row).scalar_one() == 80


def test_a_reader_does_not_wait_for_a_writer(engine):
    with database.writing(engine) as writer:
        writer.execute(tables.courses.insert().values(id="new", title="", created_at=0))
        with database.reading(engine) as reader:
            assert reader.execute(sa.select(tables.courses.c.id)).scalars().all() == ["default"]


def test_a_failed_transaction_leaves_nothing(engine):
    with pytest.raises(RuntimeError), database.writing(engine) as connection:
        connection.execute(tables.courses.insert().values(id="new", title="", created_at=0))
        raise RuntimeError
    with database.reading(engine) as connection:
        assert connection.execute(sa.select(tables.courses.c.id)).scalars().all() == ["default"]


def test_adding_columns_and_taking_them_back_loses_no_row(engine, settings):
    """SQLite copies a table to change it, unless told not to, and the cascade would empty what points to it."""
    from alembic import command

    with database.writing(engine) as connection:
        connection.exec_driver_sql(
            "INSERT INTO ag_tokens (id, digest, role, label, created_at) VALUES ('t','d','lms','',0)"
        )
        connection.exec_driver_sql(
            "INSERT INTO ag_submissions (id, unit, course, token, received_at, digest, notes, run) "
            "VALUES ('s', 'u', 'default', 't', 7, 'd', '[]', 'r')"
        )
        connection.exec_driver_sql(
            "INSERT INTO ag_runs (id, submission, status, priority, queued_at, attempts, phase, done, total) "
            "VALUES ('r', 's', 'queued', 1, 7, 0, '', 0, 0)"
        )
    command.downgrade(database.alembic_config(settings), "0001")
    command.upgrade(database.alembic_config(settings), "head")
    with database.reading(engine) as connection:
        assert connection.execute(sa.select(tables.runs.c.id, tables.runs.c.version)).all() == [("r", 0)]
        assert connection.execute(sa.select(tables.submissions.c.stored_at)).scalar_one() == 7


def test_what_was_asked_of_units_before_gets_the_usual_limits_on_hints(engine, settings):
    from alembic import command

    command.downgrade(database.alembic_config(settings), "0002")
    with database.writing(engine) as connection:
        connection.exec_driver_sql(
            "INSERT INTO ag_assignments (course, unit, late_policy, attempts, counts, updated_at) "
            "VALUES ('default', 'u', '{}', 7, 'best', 0)"
        )
    command.upgrade(database.alembic_config(settings), "head")
    with database.reading(engine) as connection:
        asked = offerings.assignment(connection, "default", "u")
    assert (asked.attempts, asked.hints) == (7, offerings.HintLimits())


def test_what_was_deleted_is_neither_in_the_file_nor_in_its_journal(engine, settings):
    def held() -> bytes:
        return b"".join(path.read_bytes() for path in settings.data.glob("*.sqlite*"))

    with database.writing(engine) as connection:
        for number in range(200):
            values = {"id": str(number), "title": f"a name of somebody {number}", "created_at": 0}
            connection.execute(tables.courses.insert().values(values))
    assert b"a name of somebody" in held()
    with database.writing(engine) as connection:
        connection.execute(tables.courses.update().where(tables.courses.c.id == "7").values(title="x"))
        connection.execute(tables.courses.delete().where(tables.courses.c.id != "7"))
    database.empty_journal(engine)
    assert b"a name of somebody" not in held()
