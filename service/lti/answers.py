"""The JSON of learning platforms: what an administrator or a teacher sends, and what they are shown."""

from datetime import datetime

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field

from service.answers import Answer, moment
from service.lti import placements, platforms
from service.lti.keys import Key
from service.lti.platforms import Platform
from service.posted import STORABLE

URL_CHARS = 2000


class PlatformBody(BaseModel):
    """A platform as its own pages show it to whoever adds a tool."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=200, pattern=STORABLE)
    issuer: str = Field(min_length=1, max_length=255, pattern=STORABLE, description="what it calls itself")
    client_id: str = Field(min_length=1, max_length=255, pattern=STORABLE)
    auth_login_url: str = Field(max_length=URL_CHARS, pattern=STORABLE, description="https; where browsers are sent")
    auth_token_url: str = Field(max_length=URL_CHARS, pattern=STORABLE, description="https; where tokens are given")
    key_set_url: str = Field(max_length=URL_CHARS, pattern=STORABLE, description="https; its public keys")
    audience: str = Field(
        "", max_length=URL_CHARS, pattern=STORABLE, description="of requests for tokens, if it is not auth_token_url"
    )
    frame_origin: str = Field(
        "", max_length=URL_CHARS, pattern=STORABLE, description="whose pages may show ours in a frame"
    )
    retired: bool = Field(False, description="lets nobody in any more")


class DeploymentBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    deployment: str = Field(min_length=1, max_length=255, pattern=STORABLE)
    allowed: bool = True


class DeploymentAnswer(Answer):
    deployment: str
    allowed: bool
    seen_at: datetime


class PlatformAnswer(Answer):
    id: str
    name: str
    issuer: str
    client_id: str
    auth_login_url: str
    auth_token_url: str
    key_set_url: str
    audience: str
    frame_origin: str
    retired: bool
    created_at: datetime
    deployments: tuple[DeploymentAnswer, ...] = Field(description="also those that knocked and wait to be let in")


class PlatformList(Answer):
    platforms: tuple[PlatformAnswer, ...]


class KeyAnswer(Answer):
    id: str = Field(description="the kid under which platforms find it")
    created_at: datetime
    signs_from: datetime
    withdrawn_at: datetime | None


class KeyList(Answer):
    keys: tuple[KeyAnswer, ...]


class RotateBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    at_once: bool = Field(False, description="for a key that others may know: withdraws those before it now")


class InvitationAnswer(Answer):
    url: str = Field(description="to be typed into the platform; works once")
    expires_at: datetime


class CodeAnswer(Answer):
    code: str = Field(description="a teacher types it at the first launch; works once")
    expires_at: datetime


class LinkAnswer(Answer):
    id: str
    unit: str
    resource_link: str
    has_line_item: bool = Field(description="whether scores have somewhere to go")


class ContextAnswer(Answer):
    id: str
    platform: str
    title: str
    context: str = Field(description="the platform's id of its course")
    offers_members: bool
    synced_at: datetime | None
    links: tuple[LinkAnswer, ...]


class ContextList(Answer):
    contexts: tuple[ContextAnswer, ...]


class SyncedAnswer(Answer):
    listed: int
    changed: int
    left: int


def shown_platform(connection: sa.Connection, platform: Platform) -> PlatformAnswer:
    return PlatformAnswer(
        id=platform.id,
        name=platform.name,
        issuer=platform.issuer,
        client_id=platform.client_id,
        auth_login_url=platform.auth_login_url,
        auth_token_url=platform.auth_token_url,
        key_set_url=platform.key_set_url,
        audience=platform.audience,
        frame_origin=platform.frame_origin,
        retired=platform.retired_at is not None,
        created_at=moment(platform.created_at),
        deployments=tuple(
            DeploymentAnswer(deployment=each.id, allowed=each.allowed_at is not None, seen_at=moment(each.seen_at))
            for each in platforms.deployments(connection, platform.id)
        ),
    )


def shown_keys(found: list[Key]) -> KeyList:
    return KeyList(
        keys=tuple(
            KeyAnswer(
                id=key.id,
                created_at=moment(key.created_at),
                signs_from=moment(key.signs_from),
                withdrawn_at=moment(key.withdrawn_at) if key.withdrawn_at is not None else None,
            )
            for key in found
        )
    )


def shown_contexts(connection: sa.Connection, course: str) -> ContextList:
    """The platforms' courses that stand for one of ours, with their links."""
    return ContextList(
        contexts=tuple(
            ContextAnswer(
                id=context.id,
                platform=context.platform,
                title=context.title,
                context=context.context,
                offers_members=bool(context.memberships_url),
                synced_at=moment(context.synced_at) if context.synced_at is not None else None,
                links=tuple(
                    LinkAnswer(
                        id=link.id,
                        unit=link.unit,
                        resource_link=link.resource_link,
                        has_line_item=bool(link.line_item_url),
                    )
                    for link in placements.links_of(connection, context)
                ),
            )
            for context in placements.contexts_of(connection, course)
        )
    )
