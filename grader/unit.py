"""The values a unit of course material is made of, as the loader leaves them and planning reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from grader.quiz import Quiz
from sandbox.records import File
from sandbox.runtimes import PLAIN


@dataclass(frozen=True)
class UnitFile:
    """A file the student writes: `path` as in a student's repository ("python/tinyllm/xfmr/mha.py")."""

    path: str
    module: str  # "tinyllm.xfmr.mha"
    reference: bytes

    @property
    def stem(self) -> str:
        """The form field's name: the file's name without .py."""
        return self.path.rpartition("/")[2].removesuffix(".py")


@dataclass(frozen=True)
class CourseTest:
    """A course test as its comments describe it. `catches` are mutant ids, `shows` those of them that it shows best."""

    name: str
    path: str  # of its file, relative to the unit's tests folder
    kind: str
    why: str
    catches: tuple[str, ...]
    chapter: str
    shows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mutant:
    """A planted fault: `files` are the unit's files (by path) as it leaves them; `public` is what its manifest tells
    students, `ordered` the hints in the order in which they are unlocked, where the unit has such."""

    id: str
    tier: str
    operator: str
    line: int
    required: bool
    public: str
    private: str
    category: str
    files: Mapping[str, bytes]
    ordered: tuple[str, ...] = ()

    @property
    def hints(self) -> tuple[str, ...]:
        """From vague to concrete. The first stands in every report on a survivor."""
        return self.ordered or (self.public,)


@dataclass(frozen=True)
class Wheat:
    """Another correct implementation: `files` as for a mutant."""

    id: str
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Freedom:
    """Something the contract leaves open, the wheats that use it, and words of a test that is likely to deny it."""

    id: str
    says: str
    wheats: tuple[str, ...]
    signs: tuple[str, ...] = ()  # as patterns of fnmatch
    everywhere: bool = False  # whether a test that denies it fails on all code, its writer's too


@dataclass(frozen=True)
class Erratum:
    """A number the chapter prints wrongly."""

    printed: str
    correct: str
    note: str


@dataclass(frozen=True)
class Contract:
    """What one .pyi promises: `names` maps every public name ("MultiHeadAttention.attend") to its parameter names,
    or to None where it is not callable."""

    module: str
    names: Mapping[str, tuple[str, ...] | None]
    source: str


@dataclass(frozen=True)
class Dep:
    """A unit that this one builds on. `files` are what its students write; none if the course does not offer it."""

    id: str
    title: str
    files: tuple[UnitFile, ...] = ()

    @property
    def offered(self) -> bool:
        return bool(self.files)


@dataclass(frozen=True)
class UnitOracle:
    """The unit's own source of truth: `source` for the trusted process (cases, expected), `driver` for the sandbox."""

    source: bytes
    driver: bytes


@dataclass(frozen=True)
class Unit:
    """Everything needed to grade one unit. Paths are relative with forward slashes."""

    id: str
    title: str
    build: tuple[str, ...]
    files: tuple[UnitFile, ...]
    contract: Mapping[str, Contract]  # of the unit's own modules, by module name
    forbidden: tuple[str, ...]
    contracts: Mapping[str, Contract]  # of every module students may import, by module name
    companions: Mapping[str, bytes]  # reference sources of the other modules, by module name, in dependency order
    course_tests: tuple[CourseTest, ...]
    test_files: tuple[File, ...]  # the course's test files and frozen helpers, as laid for a run
    fixtures: tuple[File, ...]  # relative to the fixtures root
    smoke: tuple[str, ...]
    test_seconds: float  # wall seconds one course test may take
    determinism_runs: int
    tests_path: str  # where a student's repository keeps the graded tests ("python/tests/l5-3-mha")
    rung: str
    threshold: float
    required_mutants: tuple[str, ...]
    budget_cpu_seconds: float  # of one run of the student's suite on the reference
    mutants: tuple[Mutant, ...]
    wheats: tuple[Wheat, ...]
    freedoms: tuple[Freedom, ...]
    errata: tuple[Erratum, ...]
    weight_course_tests: float = 0.5
    weight_mutation: float = 0.5
    full_matrix_cpu_seconds: float | None = None  # None: as the policy says
    oracle: UnitOracle | None = None
    deps: tuple[Dep, ...] = ()  # what it names itself, and of what the course offers what those name, nearest first
    quiz: Quiz | None = None  # questions that are answered beside the code; no grade hangs on them
    runtime: str = PLAIN  # one of sandbox.runtimes
    aliases: Mapping[str, str] = field(default_factory=dict)  # other file names that stand for a unit's file, by path
    digest: str = ""  # SHA-256 over everything the unit's grade depends on

    @property
    def dep_files(self) -> tuple[UnitFile, ...]:
        """What a student may have written of other units: sent along, it is used in place of the reference."""
        return tuple(file for dep in self.deps for file in dep.files)

    @property
    def dep_stems(self) -> dict[str, UnitFile]:
        """The same by stem, as form fields name them; of two with one stem the unit's own, or the nearer one."""
        own = {file.stem for file in self.files} | {"tests"}
        return {file.stem: file for file in reversed(self.dep_files) if file.stem not in own}

    def stem_of(self, stem: str) -> str:
        """The stem of the unit's file that a name without .py stands for: itself, unless it is an alias."""
        path = self.aliases.get(f"{stem}.py")
        return path.rpartition("/")[2].removesuffix(".py") if path else stem


@dataclass(frozen=True)
class UnitProblem:
    """Why a unit was refused at load: `file` is relative to the course tree, `line` is 0 where none applies."""

    unit: str
    file: str
    line: int
    reason: str


@dataclass(frozen=True)
class Listed:
    """A unit that the course names and that cannot be handed in here, and why."""

    id: str
    title: str
    reason: str


@dataclass(frozen=True)
class Course:
    """A course tree: the units that loaded, what was wrong with those that did not, and those it only lists."""

    units: Mapping[str, Unit]
    problems: tuple[UnitProblem, ...]
    digest: str
    listed: tuple[Listed, ...] = ()

    def listed_as(self, unit_id: str) -> Listed | None:
        return next((each for each in self.listed if each.id == unit_id), None)
