"""A unit and a submission arrive; the runs that grade them leave.

Nothing here runs anything: every function is pure, and what is random comes from the `Random` passed in.
"""

import ast
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import cycle
from random import Random

from grader import deps
from grader.renderings import SALTS, rendered
from grader.source import imported
from grader.submission import Submission
from grader.unit import CourseTest, Unit
from sandbox.records import Drive, File, Limits, Module, Run, Suite, SuiteFolder, function_of

SUITE_ROOT = "suite"
PILOT_SHARE = 0.25
REFERENCE = "reference"
OWN = "own"
BROKEN = "broken"


@dataclass(frozen=True)
class Policy:
    """The rules of grading that are numbers (docs/decisions/0050-rules-in-numbers.md)."""

    reference_runs: int = 3
    correct_runs_at_least: int = 8
    most_tests: int = 200
    most_items: int = 2000
    full_matrix_cpu_seconds: float = 3.0
    """what running the suite on every variant to its end may take; a unit can say otherwise"""
    few_tests_share: float = 0.5
    """of the suite's time: where the tests that reach a mutant take no more, they are tried first; with 0 nobody asks
    what tests reach, and nothing that rests on it is done"""
    mutant_time_factor: float = 10.0
    mutant_cpu_seconds_least: float = 2.0
    mutant_cpu_seconds_most: float = 20.0
    mutant_time_margin: float = 2.0
    """a suite near its budget needs more than the most: never less than this many times its own time"""
    wall_per_cpu: float = 3.0
    budget_wall_per_cpu: float = 1.5
    total_seconds: float = 600.0
    resumes: int = 10
    """how often a run that a test ended is taken up again behind that test"""
    own_resumes: int = 2
    """the same on the student's unit: code that always hangs must leave time for the mutants"""
    oracle_resumes: int = 2
    """how often the oracle's cases are taken up again behind one that ended its run"""


STANDARD = Policy()


@dataclass(frozen=True)
class Variant:
    """One version of the unit's files: the reference, a wheat or a mutant, as `kind` says, or `broken`."""

    id: str
    kind: str  # "reference" | "wheat" | "mutant" | "broken"
    files: Mapping[str, bytes]  # by unit path


def preload(unit: Unit, without: Collection[str] = ()) -> tuple[Module, ...]:
    """The reference of every other module, imported once before the runs of a submission fork."""
    return tuple(
        _module(name, source, visible=False) for name, source in unit.companions.items() if name not in without
    )


def unsettled(unit: Unit, submission: Submission) -> frozenset[str]:
    """The other modules that hang on what was sent of other units: those in its place, and all that import them."""
    found = {file.module for file in deps.sent_files(unit, submission)}
    if found:
        for name, source in unit.companions.items():  # in dependency order
            is_package = any(other.startswith(f"{name}.") for other in unit.companions)
            if not found.isdisjoint(imported(name, ast.parse(source), is_package=is_package)):
                found.add(name)
    return frozenset(found)


def suites(unit: Unit, submission: Submission) -> tuple[SuiteFolder, ...]:
    """The suites that runs will be of, most of them of the first: the student's, and the course's."""
    return tuple(suite.folder for suite in (student_suite(unit, submission.tests), course_suite(unit)))


def own_modules(unit: Unit, submission: Submission) -> tuple[Module, ...]:
    """The student's files as modules, whose source may be quoted to the student; what was sent of other units, and the
    reference of modules that import that, come first."""
    sent = {file.module: submission.files[file.path] for file in deps.sent_files(unit, submission)}
    hanging = unsettled(unit, submission)
    others = dict.fromkeys(name for name in (*unit.companions, *sent) if name in hanging)
    return (
        *(_module(name, sent.get(name, unit.companions.get(name, b"")), visible=name in sent) for name in others),
        *(_module(file.module, submission.files[file.path], visible=True) for file in unit.files),
    )


def variant_modules(unit: Unit, variant: Variant, salt: int) -> tuple[Module, ...]:
    """One rendering of a variant as modules, under the same neutral file names for all of them."""
    return tuple(_module(file.module, rendered(variant.files[file.path], salt), visible=False) for file in unit.files)


def as_written(unit: Unit, variant: Variant) -> tuple[Module, ...]:
    """A variant as modules without rendering it: what its renderings are held against."""
    return tuple(_module(file.module, variant.files[file.path], visible=False) for file in unit.files)


def _module(name: str, source: bytes, *, visible: bool) -> Module:
    return Module(name, source, filename=name.replace(".", "/") + ".py", source_visible=visible)


def reference(unit: Unit) -> Variant:
    return Variant(REFERENCE, "reference", {file.path: file.reference for file in unit.files})


def correct_variants(unit: Unit, policy: Policy) -> tuple[Variant, ...]:
    """The correct code a suite must accept: the reference `reference_runs` times and each wheat once, filled up with
    more of the reference to `correct_runs_at_least`."""
    wheats = tuple(Variant(wheat.id, "wheat", wheat.files) for wheat in unit.wheats)
    references = max(policy.reference_runs, policy.correct_runs_at_least - len(wheats))
    return (reference(unit),) * references + wheats


def mutants(unit: Unit) -> tuple[Variant, ...]:
    return tuple(Variant(mutant.id, "mutant", mutant.files) for mutant in unit.mutants)


def builds(files: Mapping[str, bytes]) -> bool:
    """Whether every file of a variant is Python at all."""
    return all(map(_compiles, files.values()))


@lru_cache(maxsize=4096)  # variants are the same for every submission
def _compiles(source: bytes) -> bool:
    try:
        compile(source, "variant.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def broken(unit: Unit) -> Variant:
    """The contract's names with nothing behind them: every call raises. Made from the .pyi files, so it holds for any
    unit; a suite that passes on it does not see failures."""
    return Variant(
        BROKEN, "broken", {file.path: _raise_everywhere(unit.contract[file.module].source) for file in unit.files}
    )


@lru_cache(maxsize=64)  # the same for every submission
def _raise_everywhere(stub: str) -> bytes:
    tree = ast.parse(stub)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.decorator_list = [
                decorator
                for decorator in node.decorator_list
                if isinstance(decorator, ast.Name) and decorator.id in ("staticmethod", "classmethod", "property")
            ]
            node.body = ast.parse("raise AssertionError('this version of the unit fails at every call')").body
    future = ast.parse("from __future__ import annotations").body
    tree.body = future + [node for node in tree.body if not _is_future(node)]
    return ast.unparse(ast.fix_missing_locations(tree)).encode()


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


class Salts:
    """Which rendering each run of a variant gets: one it has not had, until all have had their turn.

    So what runs of the reference begin with differs, and so does a confirmation from the run it confirms. A run that
    may go on with another rendering takes two. Each variant has an order of its own, which does not depend on what
    other variants need.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._turns: dict[str, Iterator[int]] = {}

    def next_for(self, variant: Variant) -> int:
        if variant.id not in self._turns:
            self._turns[variant.id] = self._turns_of(variant.id)
        return next(self._turns[variant.id])

    def _turns_of(self, variant_id: str) -> Iterator[int]:
        order = list(SALTS)
        Random(f"{self._seed}/renderings/{variant_id}").shuffle(order)
        return cycle(order)


class RunIds:
    """Fresh ids for runs: unpredictable, and without a word of what a run holds."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def __next__(self) -> str:
        return f"r{self._random.getrandbits(64):016x}"

    def __iter__(self) -> Iterator[str]:
        return self


def smoke_first(unit: Unit) -> tuple[CourseTest, ...]:
    """The course tests in the order they are run and shown: those the unit names as smoke, then the others."""
    by_name = {test.name: test for test in unit.course_tests}
    names = dict.fromkeys((*(name for name in unit.smoke if name in by_name), *by_name))
    return tuple(by_name[name] for name in names)


def course_run(run_id: str, unit: Unit, modules: tuple[Module, ...], *tests: CourseTest) -> Run:
    """Course tests in one process, in this order, within the deadline of one. A single one has its deadline, and what
    it breaks, for itself."""
    names = tuple(f"{test.path}::{test.name}" for test in tests)
    limits = Limits(cpu_seconds=unit.test_seconds, wall_seconds=unit.test_seconds * 1.5)
    return Run(run_id, replace(course_suite(unit), only=names, first=names), modules, limits)


def course_suite(unit: Unit) -> Suite:
    """All course tests of a unit."""
    files = with_course_files(unit, unit.test_files)
    return Suite(files, SUITE_ROOT, path_dirs=("lib",), environment=environment())


def oracle_seed(seed: int) -> int:
    """The seed of the oracle's cases: 53 bits that follow from the grading's seed and from nothing else."""
    return Random(f"{seed}/oracle").getrandbits(53)


def drive_run(run_id: str, unit: Unit, modules: tuple[Module, ...], cases: Iterable[bytes]) -> Run:
    """The oracle's cases on one version of the unit, all in one process, within the time of one course test."""
    if unit.oracle is None:
        raise ValueError(f"unit {unit.id} has no oracle")
    drive = Drive(unit.oracle.driver, unit.files[0].module, tuple(cases))
    limits = Limits(cpu_seconds=unit.test_seconds, wall_seconds=unit.test_seconds * 1.5)
    return Run(run_id, drive, modules, limits)


def suite_run(
    run_id: str,
    unit: Unit,
    tests: Iterable[File],
    modules: tuple[Module, ...],
    limits: Limits,
    *,
    only: Iterable[str] = (),
    first: Iterable[str] = (),
    skip: Iterable[str] = (),
    marks: str = "",
    stop_at_first_failure: bool = False,
    messages: bool = True,
    other_version: tuple[Module, ...] = (),
) -> Run:
    """The student's suite against one version of the unit; where tests fail, their process may go on with the other."""
    suite = replace(
        student_suite(unit, tests),
        only=tuple(only),
        first=tuple(first),
        skip=tuple(skip),
        marks=marks,
        stop_at_first_failure=stop_at_first_failure,
        messages=messages,
    )
    return Run(run_id, suite, modules, limits, other_version)


def student_suite(unit: Unit, tests: Iterable[File]) -> Suite:
    """All tests of a student."""
    files = with_course_files(unit, suite_files(unit, tests))
    # The suite's folder is a path too: tests may import each other by it.
    return Suite(files, SUITE_ROOT, path_dirs=(SUITE_ROOT, "lib"), environment=environment())


def suite_files(unit: Unit, tests: Iterable[File]) -> tuple[File, ...]:
    """The student's tests in the suite's folder, and the course's helpers beside it."""
    laid = tuple(File(f"{SUITE_ROOT}/{file.path}", file.data) for file in tests)
    return laid + tuple(file for file in unit.test_files if file.path.startswith("lib/"))


def with_course_files(unit: Unit, files: tuple[File, ...]) -> tuple[File, ...]:
    return files + tuple(File(f"fixtures/{fixture.path}", fixture.data) for fixture in unit.fixtures)


def environment() -> tuple[tuple[str, str], ...]:
    return (("TINYLLM_FIXTURES", "{dir}/fixtures"),)


def budget_limits(unit: Unit, policy: Policy) -> Limits:
    """For the suite before it meets mutants, and on the student's unit: the whole budget."""
    cpu = unit.budget_cpu_seconds
    return Limits(cpu_seconds=cpu, wall_seconds=cpu * policy.budget_wall_per_cpu)


def mutant_limits(suite_cpu_seconds: float, policy: Policy) -> Limits:
    """For the suite on a mutant, and on the correct code among mutants: a multiple of what it takes on the reference,
    within bounds."""
    cpu = policy.mutant_time_factor * suite_cpu_seconds
    cpu = min(max(cpu, policy.mutant_cpu_seconds_least), policy.mutant_cpu_seconds_most)
    cpu = max(cpu, policy.mutant_time_margin * suite_cpu_seconds)
    return Limits(cpu_seconds=cpu, wall_seconds=cpu * policy.wall_per_cpu)


def runs_are_complete(unit: Unit, suite_cpu_seconds: float, variants: int, policy: Policy) -> bool:
    """Whether every variant can be run to the end of the suite, so that the kill matrix is full."""
    own = unit.full_matrix_cpu_seconds
    return suite_cpu_seconds * variants <= (policy.full_matrix_cpu_seconds if own is None else own)


def shuffled(variants: Iterable[Variant], random: Random) -> tuple[Variant, ...]:
    """Correct code and mutants in one unpredictable order."""
    order = list(variants)
    random.shuffle(order)
    return tuple(order)


def pilot(order: Sequence[Variant], share: float = PILOT_SHARE) -> tuple[Sequence[Variant], Sequence[Variant]]:
    """The variants that are run first, to learn which tests catch most, and the rest.

    Both hold correct code and mutants in about the same proportion: whatever distinguishes their runs tells a test
    nothing of what it faces.
    """
    taken: set[int] = set()
    for kind in (True, False):
        alike = [place for place, variant in enumerate(order) if (variant.kind == "mutant") is kind]
        taken |= set(alike[: math.ceil(len(alike) * share)])
    first = [variant for place, variant in enumerate(order) if place in taken]
    return first, [variant for place, variant in enumerate(order) if place not in taken]


def items_of(functions: Iterable[str], collected: Iterable[str]) -> tuple[str, ...]:
    """The collected items (node ids) that belong to the given test functions."""
    wanted = set(functions)
    return tuple(item for item in collected if function_of(item) in wanted)
