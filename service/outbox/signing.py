"""A token goes in; the secrets that sign what it is called back with come out, the newest first."""

import secrets as random

import sqlalchemy as sa

from service import secrets
from service.tables import secrets as table

OVERLAP_SECONDS = 86_400.0  # for which a secret that was replaced signs as well


def secrets_of(connection: sa.Connection, token: str, now: float) -> list[bytes]:
    """Those that sign now; the first one is made when it is asked for."""
    current, before = _names(token)
    found = [secrets.key(connection, current, now)]
    query = sa.select(table.c.value).where(table.c.name == before, table.c.created_at > now - OVERLAP_SECONDS)
    return [*found, *(bytes(value) for value in connection.execute(query).scalars())]


def replace(connection: sa.Connection, token: str, now: float) -> list[bytes]:
    """Make a new secret; the one before signs as well for a day."""
    current, before = _names(token)
    old = secrets.key(connection, current, now)
    connection.execute(table.delete().where(table.c.name == before))
    connection.execute(table.insert().values(name=before, value=old, created_at=now))
    value = random.token_bytes(secrets.KEY_BYTES)
    connection.execute(table.update().where(table.c.name == current).values(value=value, created_at=now))
    return secrets_of(connection, token, now)


def _names(token: str) -> tuple[str, str]:
    return f"webhook:{token}", f"webhook-before:{token}"
