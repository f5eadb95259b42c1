"""Which blocks of the unit each test enters on the reference arrives; the tests that a variant can be spared leave.

A test that enters no block which a variant changes does on the variant what it does on the reference (decision 0235).
That is said only where tests and unit keep nothing from one test for another.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from grader import blocks, independence, plan
from grader.library import top
from grader.plan import Variant
from grader.unit import Unit
from sandbox.kept import made_once
from sandbox.records import File, ItemOutcome, Module, RunResult, function_of

MOST_BLOCKS = 2048
"""what a run reports of a test is as long"""
UNEVENTFUL = (ItemOutcome.PASSED, ItemOutcome.SKIPPED)


@dataclass(frozen=True)
class Marked:
    """The reference with a mark at the beginning of each block, and the module that holds the marks."""

    variant: Variant
    marks: Module


@dataclass(frozen=True)
class Reach:
    """What the tests of a suite entered on the reference, by node id, as bits, and the seconds that each took."""

    entered: Mapping[str, int]
    seconds: Mapping[str, float]

    def spared(self, changed: int | None, share: float) -> tuple[str, ...] | None:
        """The tests that a variant which changes these blocks can be spared: those that enter none of them. None if
        that is not known, or the others take more than this share of the time."""
        if changed is None:
            return None
        entering = sum(self.seconds[item] for item, blocks in self.entered.items() if blocks & changed)
        if entering > share * sum(self.seconds.values()):
            return None
        return tuple(item for item, blocks in self.entered.items() if not blocks & changed)

    def entering(self, changed: int | None) -> frozenset[str] | None:
        """The test functions that enter some of these blocks; None where that is not known."""
        if changed is None:
            return None
        return frozenset(function_of(item) for item, blocks in self.entered.items() if blocks & changed)

    def is_quiet(self, result: RunResult, spared: Sequence[str]) -> bool:
        """Whether the run of a variant was of just the tests that it was not spared, and nothing happened in it."""
        ran = {item.id for item in result.record.items}
        return (
            is_uneventful(result)
            and result.record.collected == tuple(self.entered)
            and ran == self.entered.keys() - set(spared)
        )


def is_uneventful(result: RunResult) -> bool:
    outcomes = (item.outcome for item in result.record.items)
    return result.complete and not result.record.errors and all(outcome in UNEVENTFUL for outcome in outcomes)


def of_run(result: RunResult) -> Reach | None:
    """What a run on the marked reference says; None if anything happened that is not the rule."""
    items = {item.id: item for item in result.record.items}
    if not is_uneventful(result) or items.keys() != set(result.record.collected):
        return None
    in_order = [items[name] for name in result.record.collected]
    entered = {item.id: item.marked for item in in_order if item.marked is not None}
    return Reach(entered, {item.id: item.seconds for item in in_order}) if len(entered) == len(items) else None


def can_be_asked(unit: Unit, tests: Iterable[File]) -> bool:
    """Whether the student's tests can be left out one by one."""
    files = {file.path: file.data for file in tests if file.path.endswith(".py")}
    return independence.are_independent(files, _packages(unit))


def _packages(unit: Unit) -> frozenset[str]:
    """The top packages of the library."""
    return frozenset(top(name) for name in (*unit.companions, *(file.module for file in unit.files)))


@lru_cache(maxsize=64)
def marked(reference: tuple[tuple[str, bytes], ...]) -> Marked | None:
    """The reference, its files by path, with marks; None if it cannot have any."""
    files, count = {}, 0
    for path, source in reference:
        found = blocks.marked(source, count)
        if found is None:
            return None
        files[path] = found.source
        count += found.blocks
    if count > MOST_BLOCKS:
        return None
    name = blocks.MARKS_MODULE
    return Marked(Variant(plan.REFERENCE, "reference", files), Module(name, blocks.marks_source(count), f"{name}.py"))


def changed(unit: Unit, files: Mapping[str, bytes]) -> int | None:
    """The blocks of the reference that a variant changes, as bits; None where that cannot be said."""
    bits, start = 0, 0
    for file in unit.files:
        found = _changed(file.reference, files[file.path], _packages(unit))
        if found is None:
            return None
        bits |= sum(1 << (start + number) for number in found)
        start += blocks.count(file.reference)
    return bits


@lru_cache(maxsize=4096)  # variants are the same for every submission
def _changed(reference: bytes, variant: bytes, packages: frozenset[str]) -> tuple[int, ...] | None:
    """Remembered, and kept where things are kept; None also if either keeps something between calls."""

    def compare() -> bytes:
        keeps_nothing = independence.are_independent({"reference": reference, "variant": variant}, packages)
        found = blocks.changed(reference, variant) if keeps_nothing else None
        return json.dumps(None if found is None else sorted(found)).encode()

    parts = (_comparer(), reference, variant, *(package.encode() for package in sorted(packages)))
    found = json.loads(made_once("changed", parts, compare))
    return None if found is None else tuple(found)


@cache
def _comparer() -> bytes:
    """What decides what is changed, beside the two versions."""
    names = ("blocks.py", "independence.py", "scopes.py", "source.py")
    return sys.version.encode() + b"\0".join(Path(__file__).with_name(name).read_bytes() for name in names)
