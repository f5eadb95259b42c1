"""Bytes go in under their SHA-256, once however often they are sent; those that no file names any more go out.

Taking in and collecting exclude each other: a blob may otherwise be collected between the moment a submission finds it
and the moment its files name it. SQLite has one writer anyway; on PostgreSQL both hold an advisory lock to the end of
their transaction, the former shared. (docs/decisions/0130)
"""

import hashlib
import zlib
from collections.abc import Collection, Sequence

import sqlalchemy as sa

from service.database import insert_or_ignore
from service.tables import blobs, course_tree_files, files

LOCK = 0x61675F62  # the advisory lock's number, "ag_b"


_ALONE = sa.select(sa.func.pg_advisory_xact_lock(LOCK))
_SHARED = sa.select(sa.func.pg_advisory_xact_lock_shared(LOCK))
_KNOWN = sa.select(blobs.c.digest).where(blobs.c.digest == sa.bindparam("digest"))


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def add(connection: sa.Connection, contents: Sequence[bytes]) -> list[str]:
    """Store what is not there yet; returns each digest. None is collected before the caller's transaction ends."""
    _lock(connection, _SHARED)
    digests = [digest_of(data) for data in contents]
    for digest, data in dict(zip(digests, contents, strict=True)).items():
        if connection.execute(_KNOWN, {"digest": digest}).first() is None:
            values = {"digest": digest, "data": zlib.compress(data), "byte_count": len(data)}
            connection.execute(insert_or_ignore(connection, blobs, values))
    return digests


def collect(connection: sa.Connection, digests: Collection[str] | None = None, limit: int = 1_000) -> int:
    """Delete up to `limit` blobs, of `digests` or of all, that no file names; returns how many.

    In a transaction of its own, or one that holds nothing a submission being taken in may wait for.
    """
    _lock(connection, _ALONE)
    unused = [~sa.exists().where(table.c.digest == blobs.c.digest) for table in (files, course_tree_files)]
    query = sa.select(blobs.c.digest).where(*unused)
    if digests is not None:
        query = query.where(blobs.c.digest.in_(sorted(digests)))
    found = connection.execute(query.limit(limit)).scalars().all()
    if found:
        connection.execute(blobs.delete().where(blobs.c.digest.in_(found)))
    return len(found)


def _lock(connection: sa.Connection, how: sa.Select[tuple[object]]) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(how)
