"""A platform's course goes in; its people are read from the platform, are members of ours afterwards, and their scores
have somewhere to go.
"""

from dataclasses import dataclass

import sqlalchemy as sa
from pylti1p3.lineitem import LineItem

from service import outbox
from service.audit import By
from service.database import writing
from service.lti import ags, memberships, people, placements, speaking, wording
from service.lti.placements import Context, Link
from service.lti.speaking import Away, Session, Tokens
from service.outbound import Reach
from service.people.users import User
from service.tables import lti_contexts


@dataclass(frozen=True)
class Synced:
    """What a reading brought. `listed` counts who is on the list with a part in the course."""

    listed: int
    changed: int
    left: int


def sync(engine: sa.Engine, reach: Reach, context: Context, by: By) -> Synced:
    """Read the list and make it so. No transaction is open meanwhile. Raises Away."""
    if not context.memberships_url:
        raise Away(wording.MEMBERS_NOT_OFFERED, for_good=True)
    with writing(engine) as connection:
        speaker = speaking.speaker(connection, context.platform, by.now, Session(reach), Tokens())
    if speaker is None:
        raise Away(wording.LOGIN_UNKNOWN, for_good=True)
    listed = memberships.fetch(speaker, context.memberships_url)
    with writing(engine) as connection:
        taken = people.take_list(connection, context.platform, context.course, listed, by)
        for subject, person in taken.students:
            tell(connection, context, subject, person, by.now)
        this = lti_contexts.update().where(lti_contexts.c.id == context.id)
        connection.execute(this.values(synced_at=by.now))
    return Synced(taken.listed, taken.changed, taken.left)


def add_column(engine: sa.Engine, reach: Reach, context: Context, link: Link, title: str, by: By) -> None:
    """Have the platform make a grade column for a link that has none, and tell it the grades. Raises Away."""
    if not context.line_items_url:
        raise Away(wording.COLUMNS_NOT_OFFERED, for_good=True)
    with writing(engine) as connection:
        speaker = speaking.speaker(connection, context.platform, by.now, Session(reach), Tokens())
    if speaker is None:
        raise Away(wording.LOGIN_UNKNOWN, for_good=True)
    column = LineItem().set_label(f"{link.unit}: {title}").set_score_maximum(ags.POINTS).set_tag("score")
    column.set_resource_id(link.unit).set_resource_link_id(link.resource_link)
    url = ags.create_line_item(speaker, context.line_items_url, column)
    with writing(engine) as connection:
        placements.set_line_item(connection, context, link, url, by)
        tell_of_link(connection, context, url, link.unit, by.now)


def tell(connection: sa.Connection, context: Context, subject: str, person: User, now: float) -> None:
    """From now on tell the line items of the context's links this student's grades."""
    for link in placements.scored_links(connection, context):
        outbox.connect(
            connection,
            platform=context.platform,
            line_item=link.line_item_url,
            recipient=subject,
            course=context.course,
            unit=link.unit,
            student=person.student,
            now=now,
        )


def tell_of_link(connection: sa.Connection, context: Context, line_item: str, unit: str, now: float) -> None:
    """A link got its line item: tell it the grades of every student whom the platform named."""
    for subject, person in people.named_students(connection, context.platform, context.course):
        outbox.connect(
            connection,
            platform=context.platform,
            line_item=line_item,
            recipient=subject,
            course=context.course,
            unit=unit,
            student=person.student,
            now=now,
        )
