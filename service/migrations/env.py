"""Alembic runs this file: our tables are migrated, those of the job engine in the same database are not seen."""

import sqlalchemy as sa
from alembic import context

from service.database import open_engine
from service.tables import metadata


def ours(name: str | None, kind: str, parents: object) -> bool:
    return kind != "table" or (name or "").startswith("ag_")


def run(connection: sa.Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table="ag_alembic_version",
        include_name=ours,
        render_as_batch=True,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


engine = open_engine(context.config.attributes["url"])
try:
    with engine.connect() as connection:
        run(connection)
        connection.commit()
finally:
    engine.dispose()
