"""A unit whose students write one file of tinyllm arrives; its variants, and both suites' runs on them, leave.

A variant is the reference, a wheat or a mutant of that file, which lies over tinyllm by path order.
"""

import csv
import tomllib
import types
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from grader import patches
from grader.unit import Unit
from grader.units import load_course
from tests.course import variants


@dataclass(frozen=True)
class Whole:
    """`file` is below tinyllm, `suite` the folder of the staff's tests. `few` variants, some of each kind, are tried
    with every change, all of them in the full run. `over_strict` holds a test for each freedom, which denies it."""

    id: str
    file: str
    suite: str
    few: tuple[str, ...]
    over_strict: Path

    course = variants.COURSE

    @property
    def path(self) -> str:
        return f"python/tinyllm/{self.file}"

    @property
    def reference(self) -> Path:
        return variants.ROOT / "tinyllm" / self.file

    @property
    def course_tests(self) -> Path:
        return self.course / "tests" / self.id

    @property
    def staff_suite(self) -> Path:
        return self.course / "ref/learner-tests" / self.id / "python/tests" / self.suite

    @cached_property
    def unit(self) -> Unit:
        return load_course(self.course).units[self.id]

    @cached_property
    def module_file(self) -> dict[str, Any]:
        return tomllib.loads((self.course / "modules" / f"{self.id}.toml").read_text())

    @cached_property
    def manifest(self) -> list[dict[str, str]]:
        with (self.course / "mutants" / self.id / "manifest.tsv").open(newline="") as lines:
            return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))

    @property
    def mutants(self) -> list[str]:
        return [row["mid"] for row in self.manifest]

    @property
    def by_hand(self) -> list[str]:
        """The mutants that no generator proposed."""
        return [row["mid"] for row in self.manifest if not row.get("signed_off")]

    @property
    def correct(self) -> list[str]:
        return [name for name in self.sources if name not in self.mutants]

    @cached_property
    def sources(self) -> dict[str, str]:
        """The student's file of every variant: `reference`, `w01`… and the mutants' ids."""
        wheats = {path.name[:3]: path.read_text() for path in sorted((self.course / "wheats" / self.id).glob("w*.py"))}
        mutants = {row["mid"]: self.mutant(row["mid"]) for row in self.manifest}
        return {"reference": self.reference.read_text(), **wheats, **mutants}

    def mutant(self, mid: str) -> str:
        """The file with one planted fault."""
        patch = (self.course / "mutants" / self.id / f"{mid}.patch").read_bytes()
        return patches.apply(patch, {self.path: self.reference.read_bytes()})[self.path].decode()

    def module(self, name: str) -> Any:
        """A variant, imported."""
        return _imported(self, name)

    def course_run(self, name: str) -> variants.Run:
        return self.runs_of(self.course_tests, self._beside(name))[name]

    def staff_run(self, name: str) -> variants.Run:
        return self.runs_of(self.staff_suite, self._beside(name))[name]

    def _beside(self, name: str) -> tuple[str, ...]:
        """The variants that run together with one."""
        return self.few if name in self.few else tuple(self.sources)

    def runs_of(self, suite: Path, names: tuple[str, ...], tests: tuple[str, ...] = ()) -> dict[str, variants.Run]:
        """One run of a suite per variant."""
        return _runs(self, suite, names, tests)


@cache
def _imported(whole: Whole, name: str) -> types.ModuleType:
    made = types.ModuleType(f"{whole.reference.stem}_{name}")
    exec(compile(whole.sources[name], name, "exec", dont_inherit=True), made.__dict__)
    return made


@cache
def _runs(whole: Whole, suite: Path, names: tuple[str, ...], tests: tuple[str, ...]) -> dict[str, variants.Run]:
    chosen = {name: whole.sources[name] for name in names}
    return variants.run_suite(suite, chosen, tests, place=f"tinyllm/{whole.file}")


HERE = Path(__file__).parent
SDPA = Whole(
    "L5.1",
    "xfmr/sdpa.py",
    "l5-1-sdpa",
    ("reference", "w03", "w06", "s02", "s04", "s05", "s07", "s08", "m07", "m13", "m27", "m31", "m33"),
    HERE / "over_strict51.py",
)
MASKS = Whole(
    "L5.2",
    "xfmr/masks.py",
    "l5-2-masks",
    ("reference", "w03", "w05", "s01", "s06", "s07", "m04", "m11", "m14", "m17", "m29", "m32"),
    HERE / "over_strict52.py",
)
