"""What an administrator says of a learning platform goes in and is stored; the platform comes out, and whether one of
its deployments is let in.

A platform is an issuer and the client id it gave us. A deployment is one installation within it; one that nobody has
let in is remembered when it knocks, and refused. (docs/decisions/0191)
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa

from service import audit
from service.audit import By
from service.database import insert_or_ignore
from service.lti import wording
from service.tables import lti_deployments, lti_people, lti_platforms, sessions

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Platform:
    """A registered platform. Raises ValueError for an address that is not https, or http on this very machine.

    `audience` is what our token requests are addressed to, if not `auth_token_url`; `frame_origin` the origin whose
    pages may show ours in a frame, empty for none.
    """

    id: str
    name: str
    issuer: str
    client_id: str
    auth_login_url: str
    auth_token_url: str
    key_set_url: str
    audience: str = ""
    frame_origin: str = ""
    created_at: float = 0.0
    retired_at: float | None = None
    key_set: Mapping[str, Any] | None = field(default=None, compare=False)
    key_set_at: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("auth_login_url", "auth_token_url", "key_set_url"):
            if not is_safe(getattr(self, name)):
                raise ValueError(wording.address_refused(name, getattr(self, name)))
        if self.frame_origin and self.frame_origin != origin(self.frame_origin):
            raise ValueError(wording.origin_refused(self.frame_origin))
        if not self.issuer or not self.client_id:
            raise ValueError(wording.PLATFORM_INCOMPLETE)


@dataclass(frozen=True)
class Deployment:
    """One installation of us within a platform. `allowed_at` None: it knocked, and is not let in."""

    id: str
    seen_at: float
    allowed_at: float | None


def is_safe(url: str) -> bool:
    """Whether we may send tokens and browsers there: https, or http on this machine for trying things out."""
    if any(not " " < c <= "~" for c in url):  # a host in other letters is written with xn--
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or parts.username is not None or any(c in "\\;,\"'" for c in parts.netloc):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK)


def origin(url: str) -> str:
    """Scheme, host and port of an address, as browsers compare them; empty if it is not a safe one."""
    if not is_safe(url):
        return ""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    usual = {"https": 443, "http": 80}[parts.scheme]
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port not in (None, usual) else "")


def register(connection: sa.Connection, platform: Platform, by: By) -> Platform | None:
    """Store a platform under a new id; None if its issuer and client id are registered already."""
    stored = _with_id(platform, secrets.token_hex(8), by.now)
    values = {name: getattr(stored, name) for name in _WRITTEN}
    row = {"id": stored.id, "created_at": by.now, **values}
    added = insert_or_ignore(connection, lti_platforms, row).returning(lti_platforms.c.id)
    if connection.execute(added).first() is None:  # on PostgreSQL, rowcount would not tell
        return None
    audit.note(connection, by, "lti_platform.register", stored.id, detail=values)
    return stored


def change(connection: sa.Connection, platform: Platform, by: By) -> Platform | None:
    """Store what is said of a platform in place of what was; None if another has its issuer and client id.

    Its keys are looked up again.
    """
    other = find_by_client(connection, platform.issuer, platform.client_id)
    if other is not None and other.id != platform.id:
        return None
    values = {name: getattr(platform, name) for name in _WRITTEN}
    this = lti_platforms.update().where(lti_platforms.c.id == platform.id)
    connection.execute(this.values(**values, key_set=None, key_set_at=None))
    audit.note(connection, by, "lti_platform.update", platform.id, detail=values)
    return find(connection, platform.id)


def retire(connection: sa.Connection, platform_id: str, by: By, *, back: bool = False) -> None:
    """Let nobody in through a platform any more, whoever is in by it out, and send it nothing; `back` undoes that, but
    for the sessions."""
    this = lti_platforms.update().where(lti_platforms.c.id == platform_id)
    connection.execute(this.values(retired_at=None if back else by.now))
    if not back:
        came = sa.select(lti_people.c.user).where(lti_people.c.platform == platform_id)
        connection.execute(sessions.delete().where(sessions.c.user.in_(came)))
    audit.note(connection, by, "lti_platform.revive" if back else "lti_platform.retire", platform_id)


def all_platforms(connection: sa.Connection) -> list[Platform]:
    query = sa.select(lti_platforms).order_by(lti_platforms.c.name, lti_platforms.c.id)
    return [_platform(row) for row in connection.execute(query)]


def find(connection: sa.Connection, platform_id: str) -> Platform | None:
    row = connection.execute(sa.select(lti_platforms).where(lti_platforms.c.id == platform_id)).one_or_none()
    return _platform(row) if row is not None else None


def find_by_client(connection: sa.Connection, issuer: str, client_id: str) -> Platform | None:
    """The platform with this issuer and client id, also when it is retired."""
    query = sa.select(lti_platforms).where(lti_platforms.c.issuer == issuer, lti_platforms.c.client_id == client_id)
    row = connection.execute(query).one_or_none()
    return _platform(row) if row is not None else None


def named_by_login(connection: sa.Connection, issuer: str, client_id: str) -> Platform | None:
    """The platform that begins a login. It may leave its client id out where the issuer has one only."""
    query = sa.select(lti_platforms).where(lti_platforms.c.issuer == issuer, lti_platforms.c.retired_at.is_(None))
    if client_id:
        query = query.where(lti_platforms.c.client_id == client_id)
    rows = connection.execute(query.limit(2)).all()
    return _platform(rows[0]) if len(rows) == 1 else None


def keep_key_set(connection: sa.Connection, platform_id: str, key_set: Mapping[str, Any], now: float) -> None:
    """Remember the platform's public keys, for every process."""
    this = lti_platforms.update().where(lti_platforms.c.id == platform_id)
    connection.execute(this.values(key_set=json.dumps(dict(key_set)), key_set_at=now))


def deployments(connection: sa.Connection, platform_id: str) -> list[Deployment]:
    table = lti_deployments
    query = sa.select(table).where(table.c.platform == platform_id).order_by(table.c.seen_at, table.c.deployment)
    return [Deployment(row.deployment, row.seen_at, row.allowed_at) for row in connection.execute(query)]


def let_in(connection: sa.Connection, platform_id: str) -> frozenset[str]:
    """The deployments from which people may come."""
    return frozenset(each.id for each in deployments(connection, platform_id) if each.allowed_at is not None)


MOST_WAITING = 50  # deployments remembered because they knocked


def knocked(connection: sa.Connection, platform_id: str, deployment: str, now: float) -> None:
    """Remember a deployment that is not let in, so that an administrator finds it in the list."""
    waiting = [each for each in deployments(connection, platform_id) if each.allowed_at is None]
    if len(waiting) < MOST_WAITING:
        row = {"platform": platform_id, "deployment": deployment, "seen_at": now}
        connection.execute(insert_or_ignore(connection, lti_deployments, row))


def allow(connection: sa.Connection, platform_id: str, deployment: str, by: By, *, allowed: bool = True) -> None:
    """Let a deployment in, or out again."""
    row = {"platform": platform_id, "deployment": deployment, "seen_at": by.now}
    connection.execute(insert_or_ignore(connection, lti_deployments, row))
    table = lti_deployments
    this = table.update().where(table.c.platform == platform_id, table.c.deployment == deployment)
    connection.execute(this.values(allowed_at=by.now if allowed else None))
    action = "lti_deployment.allow" if allowed else "lti_deployment.refuse"
    audit.note(connection, by, action, platform_id, detail={"deployment": deployment})


_WRITTEN = (
    *("name", "issuer", "client_id", "auth_login_url", "auth_token_url", "key_set_url"),
    *("audience", "frame_origin"),
)


def _with_id(platform: Platform, platform_id: str, now: float) -> Platform:
    return Platform(id=platform_id, created_at=now, **{name: getattr(platform, name) for name in _WRITTEN})


def _platform(row: sa.Row[tuple[object, ...]]) -> Platform:
    return Platform(
        id=row.id,
        created_at=row.created_at,
        retired_at=row.retired_at,
        key_set=json.loads(row.key_set) if row.key_set is not None else None,
        key_set_at=row.key_set_at,
        **{name: getattr(row, name) for name in _WRITTEN},
    )
