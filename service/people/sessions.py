"""A person who has shown who they are goes in, a session begins; a request's cookie goes in, its session comes out.

The cookie is 256 random bits; the database holds their SHA-256. The CSRF token of a session is derived from the
cookie, so that only a page of ours, which was made for that cookie, can know it. (docs/decisions/0176)
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa
from fastapi import Request, Response

from service.tables import sessions

IDLE_SECONDS = 24 * 3_600.0
LIFE_SECONDS = 14 * 86_400.0
SEEN_EVERY_SECONDS = 300.0  # how often it is written down that somebody is still there
AGENT_CHARS = 200

NAME = "ag_session"
VISITOR = "ag_visitor"  # of somebody who has not signed in yet: what the CSRF token of the sign-in form is made from

SameSite = Literal["Lax", "None"]


@dataclass(frozen=True)
class Session:
    """Somebody is signed in. `digest` is its id: it opens nothing."""

    digest: str
    user: str
    created_at: float
    seen_at: float
    expires_at: float
    agent: str
    address: str


def begin(connection: sa.Connection, user_id: str, now: float, agent: str = "", address: str = "") -> str:
    """Store a new session of this person; returns the secret for the cookie."""
    secret = new_secret()
    connection.execute(sessions.delete().where(sa.or_(sessions.c.expires_at <= now, _is_idle(now))))
    connection.execute(
        sessions.insert().values(
            digest=digest_of(secret),
            user=user_id,
            created_at=now,
            seen_at=now,
            expires_at=now + LIFE_SECONDS,
            agent=_printable(agent)[:AGENT_CHARS],
            address=address,
        )
    )
    return secret


def find(connection: sa.Connection, secret: str, now: float) -> Session | None:
    """The session of this cookie, if it has not ended."""
    row = connection.execute(
        sa.select(sessions).where(
            sessions.c.digest == digest_of(secret), sessions.c.expires_at > now, sa.not_(_is_idle(now))
        )
    ).one_or_none()
    return Session(**row._mapping) if row is not None else None


def of_user(connection: sa.Connection, user_id: str, now: float) -> list[Session]:
    """Where the person is signed in, the one used last first."""
    query = sa.select(sessions).where(sessions.c.user == user_id, sessions.c.expires_at > now, sa.not_(_is_idle(now)))
    return [Session(**row._mapping) for row in connection.execute(query.order_by(sessions.c.seen_at.desc()))]


def seen(connection: sa.Connection, session: Session, now: float) -> None:
    """Write down that the person is still there."""
    connection.execute(sessions.update().where(sessions.c.digest == session.digest).values(seen_at=now))


def end(connection: sa.Connection, digest: str, user_id: str) -> bool:
    """End a session of this person; False if there is none such."""
    query = sessions.delete().where(sessions.c.digest == digest, sessions.c.user == user_id)
    return connection.execute(query).rowcount == 1


def forget(connection: sa.Connection, secret: str) -> None:
    """End the session of this cookie, whosever it is: who signs in anew leaves none behind."""
    connection.execute(sessions.delete().where(sessions.c.digest == digest_of(secret)))


def end_others(connection: sa.Connection, user_id: str, but: str) -> int:
    """End the person's sessions but the one with this digest; returns how many."""
    return connection.execute(sessions.delete().where(sessions.c.user == user_id, sessions.c.digest != but)).rowcount


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def csrf_of(secret: str) -> str:
    """What a form made for this cookie carries."""
    return hashlib.sha256(b"csrf\0" + secret.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def is_csrf(sent: object, csrf: str) -> bool:
    """Whether what a form or a header carries is this CSRF token."""
    return isinstance(sent, str) and hmac.compare_digest(sent.encode("utf-8", "surrogatepass"), csrf.encode())


def _is_idle(now: float) -> sa.ColumnElement[bool]:
    return sessions.c.seen_at <= now - IDLE_SECONDS


# -- cookies ---------------------------------------------------------------------------------------------------------


def cookie(request: Request, name: str = NAME) -> str | None:
    """The cookie's value, as this request's scheme names it."""
    return request.cookies.get(_named(request, name)) or None


def set_cookie(
    request: Request, response: Response, secret: str, name: str = NAME, same_site: SameSite = "Lax"
) -> None:
    """Give the browser the cookie. "None" lets it be sent inside another site's frame, which needs TLS."""
    _set(request, response, name, secret, "" if name == VISITOR else f"; Max-Age={LIFE_SECONDS:.0f}", same_site)


def drop_cookie(request: Request, response: Response, name: str = NAME) -> None:
    _set(request, response, name, "", "; Max-Age=0", "Lax")


def _set(request: Request, response: Response, name: str, value: str, life: str, same_site: SameSite) -> None:
    # By hand: Python 3.11 cannot say Partitioned, without which browsers drop a cookie set in a frame.
    secure = _is_secure(request)
    framed = secure and same_site == "None"
    kept = f"; Secure; SameSite={same_site}" if secure else "; SameSite=Lax"
    text = f"{_named(request, name)}={value}; Path=/; HttpOnly{life}{kept}{'; Partitioned' if framed else ''}"
    response.headers.append("Set-Cookie", text)


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https"


def _named(request: Request, name: str) -> str:
    """Behind TLS with the prefix that makes browsers refuse it from anybody but this host."""
    return f"__Host-{name}" if _is_secure(request) else name


def address_of(request: Request) -> str:
    return request.client.host[:64] if request.client is not None else ""


def _printable(text: str) -> str:
    return "".join(char for char in text if char.isprintable())
