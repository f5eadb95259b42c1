"""The environment and the command line go in; one frozen `Settings`, read once at start, comes out."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from grader.units import DEFAULT_COURSE

MEBIBYTE = 2**20

SandboxKind = Literal["docker", "process"]


@dataclass(frozen=True)
class Settings:
    """Everything the service can be told. `database_url` empty means one SQLite file in `data`."""

    data: Path = Path("data")
    course: Path = DEFAULT_COURSE
    database_url: str = ""
    sandbox: SandboxKind = "docker"
    image: str = ""  # empty: the sandbox's own default
    runtime: str = ""  # what runs its containers, such as runsc; empty: the engine's own default
    jobs: int = 2  # runs at a time within one submission
    slots: int = 1  # submissions at a time in one worker
    max_body_bytes: int = 24 * MEBIBYTE
    max_upload_seconds: float = 120.0
    max_wait_seconds: float = 120.0
    max_attempts: int = 3
    heartbeat_seconds: float = 2.0
    stop_seconds: float = 20.0  # what a stopping worker gives the run it is in before it hands it back
    engine_poll_seconds: float = 0.25

    @property
    def url(self) -> str:
        """The database, as SQLAlchemy names it."""
        return self.database_url or f"sqlite:///{self.database_file}"

    @property
    def database_file(self) -> Path:
        """Where the SQLite database lies if no other is named."""
        return self.data.resolve() / "autograder.sqlite"

    def __post_init__(self) -> None:
        for name in ("jobs", "slots", "max_body_bytes", "max_attempts"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.sandbox not in ("docker", "process"):
            raise ValueError(f"sandbox must be docker or process, got {self.sandbox!r}")


_READ: Mapping[str, Callable[[str], object]] = {
    "data": Path,
    "course": Path,
    "database_url": str,
    "sandbox": str,
    "image": str,
    "runtime": str,
    "jobs": int,
    "slots": int,
    "max_body_bytes": int,
    "stop_seconds": float,
}
"""The settings that the environment can hold, as AUTOGRADER_<NAME>, and how each is read from text."""


def from_environment(
    environ: Mapping[str, str] = os.environ,
    *,
    data: Path | None = None,
    course: Path | None = None,
    sandbox: str | None = None,
    jobs: int | None = None,
) -> Settings:
    """Read AUTOGRADER_* variables; what is passed by name (from the command line) wins over them.

    Raises ValueError for a value that cannot be.
    """
    read: dict[str, Any] = {
        name: of_text(environ[_variable(name)]) for name, of_text in _READ.items() if _variable(name) in environ
    }
    given = {"data": data, "course": course, "sandbox": sandbox, "jobs": jobs}
    return Settings(**read | {name: value for name, value in given.items() if value is not None})


def to_environment(settings: Settings) -> dict[str, str]:
    """The variables from which `from_environment` reads these settings again."""
    return {_variable(name): str(getattr(settings, name)) for name in _READ}


def _variable(name: str) -> str:
    return f"AUTOGRADER_{name.upper()}"
