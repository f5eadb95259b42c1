"""Files of the course that somebody uploaded go in, as versions beside what is in use; what each would change, and the
course that is in use, come out.

A version is checked when it is sent, and never changed. One of them is in use, or the files on the machine: the last
row of ag_course_loads says which. So taking another one, an earlier one too, is one row. Every process that grades lays
the files of the version in use out in a folder of its own, and reads them there. (docs/decisions/0229)
"""

import json
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import sqlalchemy as sa

from grader import course_tree
from grader.course_tree import Files
from grader.unit import Course, UnitProblem
from grader.units import load_course
from service import audit, blobs, submissions
from service.accounts import Account
from service.audit import By
from service.course_files.loads import Difference, Unusable, chosen, differences
from service.regrading.versions import Change
from service.settings import Settings
from service.tables import blobs as blob_rows
from service.tables import course_loads, tokens
from service.tables import course_tree_files as file_rows
from service.tables import course_trees as rows

MOST_PROPOSED = 20  # versions that one person may have which were never used


@dataclass(frozen=True)
class Found:
    """What a version would have changed when it was sent, and what is wrong with it: `problems` of units that are in
    use keep it from being used."""

    changed: tuple[Difference, ...]
    problems: tuple[UnitProblem, ...]
    usable: bool


@dataclass(frozen=True)
class Tree:
    """A version of the course's files. `sender` is the name of who sent it, or of their token; `whose` the id of that
    person, or of a token that is nobody's."""

    id: str
    made_at: float
    sender: str
    whose: str
    note: str
    found: Found
    was_used: bool = False


@dataclass(frozen=True)
class InUse:
    """What a process grades by: the number of the choice, the folder it was read from, and the course."""

    load: int
    root: Path
    course: Course


# -- what is in use --------------------------------------------------------------------------------------------------


def in_use(connection: sa.Connection, settings: Settings) -> InUse:
    """The course that is in use."""
    load, tree = chosen(connection)
    root = laid(connection, settings, tree)
    return InUse(load, root, load_course(root))


def laid(connection: sa.Connection, settings: Settings, tree: str | None) -> Path:
    """Where the files of the version lie: a folder of its own, made if it is not there. None: those on the machine."""
    if tree is None:
        return settings.course
    return course_tree.lay(files_of(connection, tree), settings.data / "course-trees" / tree)


def files_in_use(connection: sa.Connection, settings: Settings) -> Files:
    """Raises OSError."""
    _, tree = chosen(connection)
    return files_of(connection, tree) if tree is not None else course_tree.read(settings.course)


# -- versions --------------------------------------------------------------------------------------------------------


def check(files: Files, before: Course) -> Found:
    """Load the files as a course, from a folder that is gone afterwards, and hold it against the one before."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            course = load_course(course_tree.lay(files, Path(folder) / "tree"))
        except NotADirectoryError:
            return Found((), (UnitProblem("modules", "modules", 0, "is not a folder"),), usable=False)
    try:
        return Found(differences(before, course), course.problems, usable=True)
    except Unusable:
        return Found((), course.problems, usable=False)


def add(connection: sa.Connection, files: Files, found: Found, note: str, by: By) -> Tree:
    assert by.who is not None
    tree = Tree(submissions.new_id(), by.now, by.who.label, person(by.who), note, found)
    values = {"id": tree.id, "made_at": by.now, "token": by.who.id, "note": note, "found": json.dumps(asdict(found))}
    connection.execute(rows.insert().values(values))
    digests = blobs.add(connection, list(files.values()))
    named = [{"tree": tree.id, "path": path, "digest": digest} for path, digest in zip(files, digests, strict=True)]
    connection.execute(file_rows.insert(), named)
    detail = {"note": note, "units": [each.unit for each in found.changed], "usable": found.usable}
    audit.note(connection, by, action="course.propose", object=tree.id, detail=detail)
    return tree


def find(connection: sa.Connection, tree_id: str) -> Tree | None:
    row = connection.execute(_QUERY.where(rows.c.id == tree_id)).one_or_none()
    return _tree(row) if row is not None else None


def newest(connection: sa.Connection, limit: int) -> Sequence[Tree]:
    query = _QUERY.order_by(rows.c.made_at.desc(), rows.c.id).limit(limit)
    return [_tree(row) for row in connection.execute(query)]


def person(account: Account) -> str:
    """Whose versions are whose: one person's, with whatever token they were sent, or those of a token."""
    return account.user or account.id


def unused(connection: sa.Connection, whose: str) -> int:
    """How many versions of a person were never used."""
    sent = _QUERY.subquery()
    query = sa.select(sa.func.count()).select_from(sent).where(sent.c.whose == whose, ~sent.c.was_used)
    return int(connection.execute(query).scalar_one())


def hold(connection: sa.Connection, tree_id: str) -> None:
    """Let no other transaction use or delete the version before this one has ended."""
    connection.execute(sa.select(rows.c.id).where(rows.c.id == tree_id).with_for_update())


def delete(connection: sa.Connection, tree: Tree, by: By) -> None:
    """Delete a version that was never used; the sweep takes what of its files no other needs."""
    connection.execute(rows.delete().where(rows.c.id == tree.id))
    audit.note(connection, by, action="course.withdraw", object=tree.id, detail={"note": tree.note})


_QUERY = sa.select(
    rows,
    sa.func.coalesce(tokens.c.label, "").label("sender"),
    sa.func.coalesce(tokens.c.user, rows.c.token).label("whose"),
    sa.exists().where(course_loads.c.tree == rows.c.id).label("was_used"),
).select_from(rows.outerjoin(tokens, tokens.c.id == rows.c.token))


def files_of(connection: sa.Connection, tree_id: str) -> dict[str, bytes]:
    query = sa.select(file_rows.c.path, blob_rows.c.data).join(blob_rows, blob_rows.c.digest == file_rows.c.digest)
    found = connection.execute(query.where(file_rows.c.tree == tree_id).order_by(file_rows.c.path))
    return {row.path: zlib.decompress(row.data) for row in found}


# -- rows ------------------------------------------------------------------------------------------------------------


def _tree(row: sa.Row[tuple[object, ...]]) -> Tree:
    said = json.loads(row.found)
    changed = tuple(
        Difference(each["unit"], each["how"], tuple(Change(**part) for part in each["changes"]))
        for each in said["changed"]
    )
    problems = tuple(UnitProblem(**each) for each in said["problems"])
    found = Found(changed, problems, said["usable"])
    return Tree(row.id, row.made_at, row.sender, row.whose, row.note, found, bool(row.was_used))
