"""A moment goes in; the key we sign with then, and the set of public keys that platforms may meet, come out.

A new key is published a day before it signs, and the old one for as long after: a platform that keeps our key set for a
day never meets a signature that it cannot check. (docs/decisions/0192)
"""

import json
from dataclasses import dataclass

import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.hazmat.primitives.serialization import load_pem_private_key as load
from pylti1p3.registration import Registration

from service import audit
from service.audit import By
from service.database import take_turns
from service.tables import lti_keys as table

KEY_BITS = 2048
LEAD_SECONDS = 24 * 3600.0  # published before it signs, and after another does
KEEP_SECONDS = 90 * 24 * 3600.0  # then another key takes over by itself


@dataclass(frozen=True)
class Key:
    """A key pair of ours. `signs_from` is when it takes over; `withdrawn_at` when it is published no more."""

    id: str
    private_pem: str
    public_pem: str
    created_at: float
    signs_from: float
    withdrawn_at: float | None


def signing(connection: sa.Connection, now: float) -> Key:
    """The key that signs now. Makes the first one, and the next when this one has been used for long; so `connection`
    must be one that writes.
    """
    take_turns(connection, "lti-keys")
    keys = published(connection, now)
    if not keys:
        return _add(connection, now, signs_from=now)
    if max(key.signs_from for key in keys) <= now - KEEP_SECONDS + LEAD_SECONDS:
        _replace(connection, keys, By(None, now))
    return max((key for key in keys if key.signs_from <= now), key=lambda key: key.signs_from, default=keys[0])


def rotate(connection: sa.Connection, by: By, *, at_once: bool = False) -> Key:
    """Make the next key. It takes over in a day; `at_once`, now, and those before it are withdrawn: for a key that
    somebody else may have read. Platforms that do not look the new one up refuse us until they do.
    """
    take_turns(connection, "lti-keys")
    keys = published(connection, by.now)
    if not at_once:
        return _replace(connection, keys, by)
    for key in keys:
        connection.execute(table.update().where(table.c.id == key.id).values(withdrawn_at=by.now))
    made = _add(connection, by.now, signs_from=by.now)
    _note(connection, made, by, at_once=True)
    return made


def published(connection: sa.Connection, now: float) -> list[Key]:
    """Every key with which a platform may meet a signature, the oldest first."""
    query = sa.select(table).where(sa.or_(table.c.withdrawn_at.is_(None), table.c.withdrawn_at > now))
    return [_key(row) for row in connection.execute(query.order_by(table.c.signs_from, table.c.id))]


def key_set(keys: list[Key]) -> dict[str, list[dict[str, object]]]:
    """The JSON Web Key Set of these keys: their public halves."""
    return {"keys": [{**_jwk(key.public_pem)} for key in keys]}


def _replace(connection: sa.Connection, keys: list[Key], by: By) -> Key:
    made = _add(connection, by.now, signs_from=by.now + LEAD_SECONDS)
    for key in keys:
        if key.withdrawn_at is None:
            withdrawn_at = made.signs_from + LEAD_SECONDS
            connection.execute(table.update().where(table.c.id == key.id).values(withdrawn_at=withdrawn_at))
    _note(connection, made, by, at_once=False)
    return made


def _add(connection: sa.Connection, now: float, signs_from: float) -> Key:
    made = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    private_pem = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public_pem = _public_pem(private_pem)
    key = Key(str(_jwk(public_pem)["kid"]), private_pem, public_pem, now, signs_from, None)
    connection.execute(table.insert().values(id=key.id, private_key=private_pem, created_at=now, signs_from=signs_from))
    return key


def _note(connection: sa.Connection, key: Key, by: By, *, at_once: bool) -> None:
    audit.note(
        connection,
        by,
        action="lti_key.rotate",
        object=key.id,
        detail={"signs_from": key.signs_from, "at_once": at_once},
    )


def _key(row: sa.Row[tuple[object, ...]]) -> Key:
    public_pem = _public_pem(row.private_key)
    return Key(row.id, row.private_key, public_pem, row.created_at, row.signs_from, row.withdrawn_at)


def _public_pem(private_pem: str) -> str:
    public = load(private_pem.encode(), None).public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _jwk(public_pem: str) -> dict[str, object]:
    """As the library writes it: its kid is the key's thumbprint (RFC 7638)."""
    return dict(json.loads(json.dumps(Registration.get_jwk(public_pem))))
