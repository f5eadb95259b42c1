"""What the tests of unit L5.2 share: its places, its variants as text and as modules, and both suites' runs on them."""

import csv
import types
from functools import cache
from pathlib import Path
from typing import Any

from grader import patches
from grader.unit import Unit
from grader.units import load_course
from tests.course import variants

ID = "L5.2"
PATH = "python/tinyllm/xfmr/masks.py"
PLACE = PATH.removeprefix("python/")
COURSE = variants.COURSE
REFERENCE = variants.ROOT / PLACE
COURSE_TESTS = COURSE / "tests" / ID
STAFF_SUITE = COURSE / "ref/learner-tests" / ID / "python/tests/l5-2-masks"
FEW = ("reference", "w03", "w05", "s01", "s06", "s07", "m04", "m11", "m14", "m17", "m29", "m32")
"""variants that every change is tried with: a few of each kind"""


@cache
def unit() -> Unit:
    return load_course(COURSE).units[ID]


@cache
def manifest() -> list[dict[str, str]]:
    with (COURSE / "mutants" / ID / "manifest.tsv").open(newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


@cache
def sources() -> dict[str, str]:
    """masks.py of every variant: `reference`, `w01`… and the mutants' ids."""
    wheats = {path.name[:3]: path.read_text() for path in sorted((COURSE / "wheats" / ID).glob("w*.py"))}
    mutants = {row["mid"]: mutant(row["mid"]) for row in manifest()}
    return {"reference": REFERENCE.read_text(), **wheats, **mutants}


def mutant(mid: str) -> str:
    """masks.py with one planted fault."""
    patch = (COURSE / "mutants" / ID / f"{mid}.patch").read_bytes()
    return patches.apply(patch, {PATH: REFERENCE.read_bytes()})[PATH].decode()


@cache
def module(name: str) -> Any:
    """A variant, imported."""
    made = types.ModuleType(f"masks_{name}")
    exec(compile(sources()[name], name, "exec", dont_inherit=True), made.__dict__)
    return made


@cache
def course_run(names: tuple[str, ...]) -> dict[str, variants.Run]:
    return runs_of(COURSE_TESTS, names)


@cache
def staff_run(names: tuple[str, ...]) -> dict[str, variants.Run]:
    return runs_of(STAFF_SUITE, names)


def runs_of(suite: Path, names: tuple[str, ...], tests: tuple[str, ...] = ()) -> dict[str, variants.Run]:
    """One run of a suite per variant."""
    return variants.run_suite(suite, {name: sources()[name] for name in names}, tests, place=PLACE)
