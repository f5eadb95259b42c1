"""A launch that waits for a teacher's choice goes in; for that teacher, and for an hour, it comes out again."""

import json
import secrets
from dataclasses import asdict

import sqlalchemy as sa

from service.accounts import Role
from service.lti import platforms
from service.lti.messages import Kind, Launch
from service.tables import lti_tickets as table

LIFE_SECONDS = 3600.0


def keep(connection: sa.Connection, user: str, launch: Launch, now: float) -> str:
    """Store the launch; returns its id, which opens nothing without the person's session."""
    connection.execute(table.delete().where(table.c.created_at <= now - LIFE_SECONDS))
    ticket = secrets.token_hex(16)
    said = {name: value for name, value in asdict(launch).items() if name != "platform"}
    stored = json.dumps({**said, "platform": launch.platform.id})
    connection.execute(table.insert().values(id=ticket, user=user, launch=stored, created_at=now))
    return ticket


def find(connection: sa.Connection, ticket: str, user: str, now: float) -> Launch | None:
    """The launch, if it is this person's and not too old."""
    query = sa.select(table.c.launch).where(
        table.c.id == ticket, table.c.user == user, table.c.created_at > now - LIFE_SECONDS
    )
    stored = connection.execute(query).scalar_one_or_none()
    if stored is None:
        return None
    said = json.loads(stored)
    platform = platforms.find(connection, said.pop("platform"))
    if platform is None or platform.retired_at is not None:
        return None
    role, kind = Role(said.pop("role")), Kind(said.pop("kind"))
    return Launch(platform=platform, role=role, kind=kind, **said)


def drop(connection: sa.Connection, ticket: str) -> None:
    connection.execute(table.delete().where(table.c.id == ticket))
