"""A login that a platform begins goes in, bound to the browser it is begun in; once, and soon, it comes out again.

The browser is known by a cookie that holds 256 random bits. Only digests are stored. (docs/decisions/0192)
"""

import hashlib
import secrets
from dataclasses import dataclass
from urllib.parse import urlencode

import sqlalchemy as sa

from service.lti.platforms import Platform
from service.tables import lti_logins as table

LIFE_SECONDS = 600.0  # a person may have to sign in to the platform first


@dataclass(frozen=True)
class Login:
    """One that was begun. `nonce` is the digest of what the platform's answer must hold."""

    platform: str
    nonce: str


def begin(
    connection: sa.Connection,
    platform: Platform,
    *,
    browser: str,
    login_hint: str,
    message_hint: str,
    back: str,
    now: float,
) -> str:
    """Where to send the browser, which the platform sends on to `back` with its answer."""
    connection.execute(table.delete().where(table.c.created_at <= now - LIFE_SECONDS))
    state, nonce = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    connection.execute(
        table.insert().values(
            state=digest_of(state),
            browser=digest_of(browser),
            nonce=digest_of(nonce),
            platform=platform.id,
            created_at=now,
        )
    )
    asked = {
        "scope": "openid",
        "response_type": "id_token",
        "response_mode": "form_post",
        "prompt": "none",
        "client_id": platform.client_id,
        "redirect_uri": back,
        "login_hint": login_hint,
        "state": state,
        "nonce": nonce,
    }
    if message_hint:
        asked["lti_message_hint"] = message_hint
    joint = "&" if "?" in platform.auth_login_url else "?"
    return platform.auth_login_url + joint + urlencode(asked)


def use(connection: sa.Connection, *, state: str, browser: str, now: float) -> Login | None:
    """The login with this state, if it was begun in this browser, lately, and has not been used; now it has."""
    this = sa.and_(
        table.c.state == digest_of(state),
        table.c.browser == digest_of(browser),
        table.c.created_at > now - LIFE_SECONDS,
        table.c.used_at.is_(None),
    )
    if connection.execute(table.update().where(this).values(used_at=now)).rowcount != 1:
        return None
    row = connection.execute(sa.select(table).where(table.c.state == digest_of(state))).one()
    return Login(row.platform, row.nonce)


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
