"""Where a launch comes from goes in: a platform's course, and one link within it; our course, its unit and where scores
for it go come out.

A platform's course is connected to one of ours by a teacher of it, once; its links are set when units are picked, or
at a teacher's first launch. (docs/decisions/0191)
"""

import re
import secrets
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlsplit

import sqlalchemy as sa

from service import audit, outbox
from service.audit import By
from service.database import insert_or_ignore
from service.lti.messages import Launch
from service.tables import lti_contexts, lti_links

UNIT = "unit"  # the custom parameter, and the parameter of a link's address, that names its unit
SLUG_CHARS = 40


@dataclass(frozen=True)
class Context:
    """A platform's course and the one of ours that it stands for."""

    id: str
    platform: str
    deployment: str
    context: str
    title: str
    course: str
    memberships_url: str
    line_items_url: str
    created_at: float
    synced_at: float | None


@dataclass(frozen=True)
class Link:
    """One activity of a platform's course. An empty `line_item_url`: scores have nowhere to go. `is_new`: until now
    they had none, or another.
    """

    id: str
    context: str
    resource_link: str
    unit: str
    line_item_url: str
    is_new: bool = False


def find_context(connection: sa.Connection, launch: Launch) -> Context | None:
    """The connected course that the launch comes from."""
    table = lti_contexts
    query = sa.select(table).where(
        table.c.platform == launch.platform.id,
        table.c.deployment == launch.deployment,
        table.c.context == launch.context,
    )
    row = connection.execute(query).one_or_none()
    return Context(**row._mapping) if row is not None else None


def context_by_id(connection: sa.Connection, context_id: str) -> Context | None:
    row = connection.execute(sa.select(lti_contexts).where(lti_contexts.c.id == context_id)).one_or_none()
    return Context(**row._mapping) if row is not None else None


def contexts_of(connection: sa.Connection, course: str) -> list[Context]:
    """The platforms' courses that are connected to one of ours."""
    query = sa.select(lti_contexts).where(lti_contexts.c.course == course).order_by(lti_contexts.c.created_at)
    return [Context(**row._mapping) for row in connection.execute(query)]


def connect(connection: sa.Connection, launch: Launch, course: str, by: By) -> Context:
    """Let the launch's course stand for ours from now on. One that another teacher connected meanwhile stays."""
    row = {
        "id": secrets.token_hex(8),
        "platform": launch.platform.id,
        "deployment": launch.deployment,
        "context": launch.context,
        "title": launch.context_title,
        "course": course,
        "memberships_url": launch.memberships_url,
        "line_items_url": launch.line_items_url,
        "created_at": by.now,
    }
    connection.execute(insert_or_ignore(connection, lti_contexts, row))
    found = find_context(connection, launch)
    assert found is not None
    if found.id == row["id"]:
        detail = {"platform": launch.platform.id, "deployment": launch.deployment, "context": launch.context}
        audit.note(connection, by, "lti_context.connect", found.id, course=course, detail=detail)
    return found


def disconnect(connection: sa.Connection, context: Context, by: By) -> None:
    """Forget a platform's course and its links: the next teacher who launches connects it anew. Members stay."""
    links = sa.select(lti_links.c.line_item_url).where(lti_links.c.context == context.id)
    line_items = [url for url in connection.execute(links).scalars() if url]
    outbox.disconnect(connection, platform=context.platform, line_items=line_items)
    connection.execute(lti_contexts.delete().where(lti_contexts.c.id == context.id))
    audit.note(connection, by, "lti_context.disconnect", context.id, course=context.course)


def refresh(connection: sa.Connection, launch: Launch, context: Context) -> Context:
    """Remember the addresses of the platform's services as it says them now."""
    said = {
        name: value
        for name in ("memberships_url", "line_items_url")
        if (value := getattr(launch, name)) and value != getattr(context, name)
    }
    if said:
        connection.execute(lti_contexts.update().where(lti_contexts.c.id == context.id).values(said))
    return context_by_id(connection, context.id) or context


def find_link(connection: sa.Connection, context: Context, launch: Launch, units: Collection[str]) -> Link | None:
    """The link that was launched. One whose unit the platform names, as it does for units that were picked, is stored
    here at its first launch; None: nobody has said yet which unit it is for."""
    table = lti_links
    this = sa.and_(table.c.context == context.id, table.c.resource_link == launch.resource_link)
    row = connection.execute(sa.select(table).where(this)).one_or_none()
    if row is None:
        unit = unit_named(launch)
        return set_link(connection, context, launch, unit, None) if unit in units else None
    is_new = False
    if launch.line_item_url and launch.line_item_url != row.line_item_url:
        connection.execute(table.update().where(this).values(line_item_url=launch.line_item_url))
        row, is_new = connection.execute(sa.select(table).where(this)).one(), True
    return replace(_link(row), is_new=is_new)


def set_link(connection: sa.Connection, context: Context, launch: Launch, unit: str, by: By | None) -> Link:
    """Let the launched link stand for the unit. `by` None: the platform itself said so."""
    row = {
        "id": secrets.token_hex(8),
        "context": context.id,
        "resource_link": launch.resource_link,
        "unit": unit,
        "line_item_url": launch.line_item_url,
        "created_at": by.now if by is not None else context.created_at,
    }
    connection.execute(insert_or_ignore(connection, lti_links, row))
    this = sa.and_(lti_links.c.context == context.id, lti_links.c.resource_link == launch.resource_link)
    if by is not None:
        connection.execute(lti_links.update().where(this).values(unit=unit))
    found = connection.execute(sa.select(lti_links).where(this)).one()
    if by is not None:
        audit.note(connection, by, "lti_link.set", found.id, course=context.course, unit=unit)
    return replace(_link(found), is_new=True)


def set_line_item(connection: sa.Connection, context: Context, link: Link, url: str, by: By) -> None:
    """Let scores for the link go to this line item."""
    connection.execute(lti_links.update().where(lti_links.c.id == link.id).values(line_item_url=url))
    audit.note(connection, by, "lti_link.column", link.id, course=context.course, unit=link.unit)


def unit_named(launch: Launch) -> str:
    """The unit that the platform names: with a parameter of its own, or within the link's address."""
    asked = parse_qs(urlsplit(launch.target).query).get(UNIT, [])
    return launch.custom.get(UNIT) or (asked[0] if len(asked) == 1 else "")


def scored_links(connection: sa.Connection, context: Context) -> list[Link]:
    """The context's links whose scores have somewhere to go."""
    query = sa.select(lti_links).where(lti_links.c.context == context.id, lti_links.c.line_item_url != "")
    return [_link(row) for row in connection.execute(query.order_by(lti_links.c.created_at, lti_links.c.id))]


def links_of(connection: sa.Connection, context: Context) -> list[Link]:
    query = sa.select(lti_links).where(lti_links.c.context == context.id)
    return [_link(row) for row in connection.execute(query.order_by(lti_links.c.created_at, lti_links.c.id))]


def _link(row: sa.Row[tuple[object, ...]]) -> Link:
    return Link(row.id, row.context, row.resource_link, row.unit, row.line_item_url)


def slug(title: str) -> str:
    """An id for a course with this title: letters, digits and hyphens, and something that makes it the only one."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:SLUG_CHARS].strip("-")
    return f"{words or 'course'}-{secrets.token_hex(3)}"
