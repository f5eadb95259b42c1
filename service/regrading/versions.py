"""A unit by which something was graded goes in, and is kept as the digests of its parts; what was changed between two
states of it comes out.

The unit's own digest says that something differs, its parts say what. (docs/decisions/0198)
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from grader.digest import digest_of
from grader.report import Report
from grader.unit import Unit
from service.database import insert_or_ignore
from service.tables import versions

Parts = Mapping[str, Mapping[str, str]]
"""By kind and name, the digest of each part."""

KINDS = ("course_tests", "mutants", "wheats", "reference", "contract", "oracle", "settings", "texts")


@dataclass(frozen=True)
class Version:
    """A state of a unit, where it was graded, and by which version of the grader. Time in UTC seconds."""

    unit: str
    digest: str
    image: str
    grader: str
    first_at: float
    parts: Parts


@dataclass(frozen=True)
class Change:
    """A part that is not as it was: added, removed or changed."""

    kind: str
    name: str
    how: str


def parts_of(unit: Unit) -> dict[str, dict[str, str]]:
    """The digest of every part that a grade, or what is said of it, depends on."""
    found: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    for kind, name, told in _parts(unit):
        found[kind][name] = digest_of(told)
    return found


def _parts(unit: Unit) -> Iterator[tuple[str, str, list[tuple[str, bytes]]]]:
    for laid in (*unit.test_files, *unit.fixtures):
        yield "course_tests", laid.path, [("file", laid.data)]
    for mutant in unit.mutants:
        counts = repr((mutant.tier, mutant.id in unit.required_mutants)).encode()
        yield "mutants", mutant.id, [("counts", counts), *mutant.files.items()]
        said = repr((mutant.category, mutant.public, mutant.private, mutant.hints)).encode()
        yield "texts", mutant.id, [("said", said)]
    for wheat in unit.wheats:
        yield "wheats", wheat.id, list(wheat.files.items())
    for file in unit.files:
        yield "reference", file.path, [("file", file.reference)]
    for name, source in unit.companions.items():
        yield "reference", name, [("file", source)]
    for name, contract in unit.contracts.items():
        yield "contract", name, [("file", contract.source.encode())]
    for freedom in unit.freedoms:
        yield "texts", freedom.id, [("said", repr(freedom).encode())]
    if unit.oracle is not None:
        yield "oracle", unit.id, [("source", unit.oracle.source), ("driver", unit.oracle.driver)]
    settings = {
        "threshold": unit.threshold,
        "weights": (unit.weight_course_tests, unit.weight_mutation),
        "budget": unit.budget_cpu_seconds,
        "test seconds": unit.test_seconds,
        "determinism": unit.determinism_runs,
        "forbidden": unit.forbidden,
    }
    for name, value in settings.items():
        yield "settings", name, [("value", repr(value).encode())]


def changes(before: Parts, after: Parts) -> tuple[Change, ...]:
    """Every part that differs, by kind and name."""
    found = []
    for kind in KINDS:
        old, new = before.get(kind, {}), after.get(kind, {})
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                how = "added" if name not in old else "removed" if name not in new else "changed"
                found.append(Change(kind, name, how))
    return tuple(found)


def note(connection: sa.Connection, unit: Unit, report: Report, now: float) -> None:
    """Keep what the report was made by, if it is of this unit as it is and not kept already."""
    made_by, environment = report.integrity, report.environment
    if made_by is None or environment is None or made_by.digests.get("unit") != unit.digest:
        return
    key = {
        "unit": unit.id,
        "digest": unit.digest,
        "image": environment.image_id[:128],
        "grader": environment.grader[:64],
    }
    same = (versions.c[name] == value for name, value in key.items())
    if connection.execute(sa.select(versions.c.unit).where(*same)).first() is None:
        row = {**key, "first_at": now, "parts": json.dumps(parts_of(unit))}
        connection.execute(insert_or_ignore(connection, versions, row))


def of_unit(connection: sa.Connection, unit: str) -> Sequence[Version]:
    """Every version of the unit by which something was graded, the first one first."""
    query = sa.select(versions).where(versions.c.unit == unit)
    rows = connection.execute(query.order_by(versions.c.first_at, versions.c.digest, versions.c.image))
    return [Version(row.unit, row.digest, row.image, row.grader, row.first_at, json.loads(row.parts)) for row in rows]


def parts(connection: sa.Connection, unit: str, digest: str) -> Parts | None:
    """What the unit was made of; None if nothing was kept of that state."""
    query = sa.select(versions.c.parts).where(versions.c.unit == unit, versions.c.digest == digest).limit(1)
    found = connection.execute(query).scalar_one_or_none()
    return json.loads(found) if found is not None else None
