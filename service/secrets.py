"""The name of a key goes in; the key, the same for every process on this database, comes out."""

import secrets

import sqlalchemy as sa

from service.database import insert_or_ignore
from service.tables import secrets as table

KEY_BYTES = 32


def key(connection: sa.Connection, name: str, now: float) -> bytes:
    """The key of that name: 256 random bits, made the first time it is asked for."""
    values = {"name": name, "value": secrets.token_bytes(KEY_BYTES), "created_at": now}
    connection.execute(insert_or_ignore(connection, table, values))
    found = connection.execute(sa.select(table.c.value).where(table.c.name == name)).scalar_one()
    return bytes(found)
