"""The text of a unit's module file goes in; its checked settings come out, or LoadError with the line at fault."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from grader import wording
from grader.course_file import settings_of
from grader.submission import RESERVED_FIELDS
from grader.unit import Listed
from sandbox.runtimes import LIBRARIES, PLAIN


def relative(path: str) -> str:
    """The path itself if it is relative, with forward slashes and without '..'. Raises ValueError."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or "\x00" in path or ":" in path:
        raise ValueError("must be a relative path with forward slashes and without '..'")
    return "/".join(parts)


def _unit_path(path: str) -> str:
    plain = relative(path)
    if not re.fullmatch(r"python/(?:[A-Za-z_]\w*/)*[A-Za-z_]\w*\.py", plain):
        raise ValueError('must look like "python/tinyllm/xfmr/mha.py" or "python/mha.py"')
    return plain


def _runtime(name: str) -> str:
    if name not in LIBRARIES:
        raise ValueError(f"there is no such runtime here, only {', '.join(LIBRARIES)}")
    return name


def _tuple(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _dep(value: Any) -> Any:
    return {"id": value} if isinstance(value, str) else value


def _rung(value: Any) -> Any:
    return f"R{value}" if isinstance(value, int) else value


UnitId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")]
Path = Annotated[str, AfterValidator(relative)]
UnitPath = Annotated[str, AfterValidator(_unit_path)]
Text = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class Tests(_Table):
    dir: Path
    smoke: list[Text] = []
    timeout_s: Seconds
    determinism_runs: Annotated[int, Field(ge=1, le=20)] = 1


class Fixtures(_Table):
    files: list[Path] = []


class LearnerTests(_Table):
    rung: Annotated[str, BeforeValidator(_rung)] = ""
    path: Path
    threshold: Share
    required_mutants: list[Text] = []
    time_budget_s: Seconds
    full_matrix_cpu_s: Annotated[float, Field(ge=0)] | None = None


class Weights(_Table):
    course_tests: Share = 0.5
    mutation: Share = 0.5

    @model_validator(mode="after")
    def _sum(self) -> "Weights":
        if abs(self.course_tests + self.mutation - 1) > 1e-9:
            raise ValueError("course_tests and mutation must add up to 1")
        return self


class Erratum(_Table):
    printed: Text
    correct: Text
    note: str = ""


class Dep(_Table):
    id: UnitId
    title: str = ""


class ModuleFile(_Table):
    """course/modules/UNIT.toml. Unknown keys are ignored."""

    id: UnitId
    title: Text
    contract: Annotated[list[Path], Field(min_length=1)]
    units: Annotated[list[UnitPath], Field(min_length=1)]
    deps: list[Annotated[Dep, BeforeValidator(_dep)]] = []
    forbidden: list[Text] = []
    build: list[Text] = []
    tests: Tests
    fixtures: Fixtures = Fixtures()
    learner_tests: LearnerTests
    weights: Weights = Weights()
    errata: list[Erratum] = []
    runtime: Annotated[str, AfterValidator(_runtime)] = PLAIN
    aliases: dict[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*\.py$")], UnitPath] = {}

    @model_validator(mode="before")
    @classmethod
    def _one_or_many(cls, data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "contract": _tuple(data["contract"])} if "contract" in data else data

    @model_validator(mode="after")
    def _distinct(self) -> "ModuleFile":
        stems = [unit.rpartition("/")[2] for unit in self.units]
        if len(set(stems)) < len(stems):
            raise ValueError("two of the units have the same file name; each is a form field of its own")
        for file in (*stems, *self.aliases):
            if file.removesuffix(".py") in RESERVED_FIELDS:
                raise ValueError(
                    f"{file} cannot be handed in: the form has another field of that name; rename the file"
                )
        for alias, path in self.aliases.items():
            if path not in self.units:
                raise ValueError(f"aliases: {path} is none of the units")
            if alias in stems:
                raise ValueError(f"aliases: {alias} is the name of a unit's file")
        return self


class Outline(_Table):
    """What every module file says, also that of a unit which cannot be graded here."""

    id: UnitId
    title: Text
    offered: bool = True
    units: list[str] = []


LANGUAGES = {
    ".rs": "Rust", ".ts": "TypeScript", ".js": "JavaScript", ".go": "Go", ".java": "Java", ".jl": "Julia", ".c": "C",
    ".cc": "C++", ".cpp": "C++", ".cu": "CUDA", ".hs": "Haskell", ".ml": "OCaml", ".swift": "Swift", ".zig": "Zig",
}  # fmt: skip


def only_listed(file: str, data: bytes) -> Listed | None:
    """The unit of a module file that says it is not offered, or is written in another language; None for any other.
    Raises LoadError."""
    outline = settings_of(file, data, Outline)
    if not outline.offered:
        return Listed(outline.id, outline.title, wording.NOT_OFFERED)
    for path in outline.units:
        suffix = PurePosixPath(path).suffix
        if suffix not in ("", ".py"):
            language = LANGUAGES.get(suffix.lower(), f"{suffix} files")
            return Listed(outline.id, outline.title, wording.other_language(language, path))
    return None


def read(file: str, data: bytes) -> ModuleFile:
    """Parse and check a module file named `file`. Raises LoadError."""
    return settings_of(file, data, ModuleFile)
