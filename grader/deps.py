"""What a unit builds on, and what was sent of it, go in; which units are to be built first come out.

A unit that the course does not offer can be built by nobody: its reference is always there.
"""

from collections.abc import Collection
from dataclasses import dataclass

from grader import wording
from grader.errors import Rejected
from grader.submission import Submission
from grader.unit import Dep, Unit, UnitFile

ALL = "all"
NONE = "none"


@dataclass(frozen=True)
class RefDeps:
    """The units whose reference may stand in for what a student has not built: all of them, or these."""

    every: bool = True
    ids: frozenset[str] = frozenset()  # in small letters

    def allows(self, dep: Dep) -> bool:
        return self.every or dep.id.casefold() in self.ids


def ref_deps(text: str) -> RefDeps:
    """From "all", "none" or "L5.1,L0.4". Raises ValueError for an empty name."""
    if text in (ALL, NONE):
        return RefDeps(every=text == ALL)
    ids = [name.strip().casefold() for name in text.split(",")]
    if not all(ids):
        raise ValueError(text)
    return RefDeps(False, frozenset(ids))


def sent_files(unit: Unit, submission: Submission) -> list[UnitFile]:
    """The files of other units that came with a submission of this one."""
    return [file for file in unit.dep_files if file.path in submission.files]


def sent(dep: Dep, submission: Submission) -> bool:
    """Whether the submission brings all files of the unit, so that its own are used."""
    return dep.offered and all(file.path in submission.files for file in dep.files)


def missing(unit: Unit, submission: Submission, allowed: RefDeps, passed: Collection[str] = ()) -> tuple[Dep, ...]:
    """What was neither sent nor passed before and may not come from the reference, nearest first."""
    return tuple(
        dep
        for dep in unit.deps
        if dep.offered and not sent(dep, submission) and dep.id not in passed and not allowed.allows(dep)
    )


def check(unit: Unit, submission: Submission, allowed: RefDeps, passed: Collection[str] = ()) -> None:
    """Raises Rejected, naming the unit to build first, if something is missing."""
    if lacking := missing(unit, submission, allowed, passed):
        *after_it, first = lacking
        stems = [file.stem for file in first.files]
        raise Rejected("needs_dep", wording.needs_dep(first.id, first.title, stems, [dep.id for dep in after_it]))
