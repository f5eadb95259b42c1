"""Two reports of one submission go in, and what was changed in its unit between them; what came out otherwise, and what
that comes from, comes out. Pure.

A cause is named if it was different and touches what came out otherwise; if nothing was different, it is chance.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from grader.report import Report, Verdict
from service.regrading.versions import Change

Cause = Literal[
    "course_tests",
    "mutants",
    "wheats",
    "reference",
    "contract",
    "oracle",
    "settings",
    "course",
    "image",
    "grader",
    "limits",
    "failure",
    "chance",
]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


Kind = Literal["verdict", "course_test", "mutant", "own_test", "oracle"]


class Difference(_Part):
    """Something whose outcome changed. '' stands for what was, or is, not there."""

    kind: Kind
    name: str = ""
    before: str
    after: str


class Why(_Part):
    """What came out otherwise, what was different, and what of that can be the reason."""

    verdict_before: Verdict | None = None
    verdict_after: Verdict | None = None
    score_before: float | None = None
    score_after: float | None = None
    differences: tuple[Difference, ...] = Field(default=(), description="the first hundred")
    changed: tuple[str, ...] = Field(default=(), description="what was different, as 'kind name: how'")
    causes: tuple[Cause, ...] = ()


MOST_DIFFERENCES = 100
_TOUCHES: dict[str, frozenset[str]] = {
    "course_tests": frozenset({"course_test"}),
    "mutants": frozenset({"mutant"}),
    "wheats": frozenset({"own_test", "mutant"}),
    "reference": frozenset({"own_test", "mutant", "course_test"}),
    "oracle": frozenset({"oracle"}),
}
"""What a part can be the reason for; one that is not listed, for everything."""


def compared(before: Report | None, after: Report, changes: Sequence[Change] | None) -> Why:
    """`changes` None: what the unit was before is not known."""
    if before is None or before.verdict is Verdict.GRADER_ERROR:  # there was nothing to compare with
        return Why(
            verdict_before=before.verdict if before is not None else None,
            verdict_after=after.verdict,
            score_after=after.score,
            causes=("failure",),
        )
    found = tuple(_differences(before, after))
    different = list(_different(before, after, changes))
    moved = bool(found) or before.score != after.score
    return Why(
        verdict_before=before.verdict,
        verdict_after=after.verdict,
        score_before=before.score,
        score_after=after.score,
        differences=found[:MOST_DIFFERENCES],
        changed=tuple(f"{kind} {name}".strip() for kind, name in different)[:MOST_DIFFERENCES],
        causes=_causes(found, different) if moved else (),
    )


def is_moved(why: Why) -> bool:
    return bool(why.causes)


def _differences(before: Report, after: Report) -> Iterator[Difference]:
    if before.verdict is not after.verdict:
        yield Difference(kind="verdict", before=before.verdict.value, after=after.verdict.value)
    kinds: tuple[Kind, ...] = ("course_test", "mutant", "own_test", "oracle")
    for kind, old, new in zip(kinds, _outcomes(before), _outcomes(after), strict=True):
        for name in dict.fromkeys((*new, *old)):
            was, now = old.get(name, ""), new.get(name, "")
            if was != now:
                yield Difference(kind=kind, name=name, before=was, after=now)


def _outcomes(report: Report) -> tuple[dict[str, str], ...]:
    """By name, what came out: of course tests, mutants, the student's tests on correct code, and random cases."""
    course = report.course_tests.tests if report.course_tests is not None else ()
    mutants = report.mutation.mutants if report.mutation is not None else ()
    own = report.student_tests.tests if report.student_tests is not None else ()
    said = {None: "says nothing", True: "valid", False: "rejects correct code"}
    return (
        {test.id: test.outcome.value for test in course},
        {mutant.id: mutant.status.value for mutant in mutants},
        {test.id: said[test.valid] for test in own},
        {"": report.oracle.status} if report.oracle is not None else {},
    )


def _different(before: Report, after: Report, changes: Sequence[Change] | None) -> Iterator[tuple[str, str]]:
    """What was different in the two gradings, by kind, with its name and how."""
    if changes is None:
        yield "course", ""
    else:
        yield from ((change.kind, f"{change.name}: {change.how}") for change in changes)
    old, new = before.environment, after.environment
    if old is None or new is None:
        return
    if old.image_id != new.image_id:
        yield "image", new.image_id
    if old.grader != new.grader:
        yield "grader", f"{old.grader} to {new.grader}"
    if old.limits != new.limits:
        yield "limits", ", ".join(sorted(name for name in new.limits if old.limits.get(name) != new.limits[name]))


def _causes(found: Sequence[Difference], different: Sequence[tuple[str, str]]) -> tuple[Cause, ...]:
    kinds = list(dict.fromkeys(kind for kind, _ in different if kind != "texts"))  # words move nobody
    outcomes = {each.kind for each in found} - {"verdict"}
    touching = [kind for kind in kinds if _TOUCHES.get(kind, outcomes) & outcomes]
    return tuple(touching or kinds or ["chance"])  # type: ignore[arg-type]
