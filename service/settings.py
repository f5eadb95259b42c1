"""The environment and the command line go in; one frozen `Settings`, read once at start, comes out."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MEBIBYTE = 2**20

SandboxKind = Literal["docker", "process"]


@dataclass(frozen=True)
class Settings:
    """Everything the service can be told. `database_url` empty means one SQLite file in `data`."""

    data: Path
    course: Path
    database_url: str = ""
    sandbox: SandboxKind = "docker"
    image: str = ""  # empty: the sandbox's own default
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
        return self.database_url or f"sqlite:///{self.data.resolve() / 'autograder.sqlite'}"

    def __post_init__(self) -> None:
        for name in ("jobs", "slots", "max_body_bytes", "max_attempts"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.sandbox not in ("docker", "process"):
            raise ValueError(f"sandbox must be docker or process, got {self.sandbox!r}")


def from_environment(
    environ: Mapping[str, str] = os.environ,
    *,
    data: Path | None = None,
    course: Path | None = None,
    sandbox: str | None = None,
    jobs: int | None = None,
) -> Settings:
    """Read AUTOGRADER_* variables; what is passed by name (from the command line) wins over them."""

    def read(name: str, given: object, default: str) -> str:
        return str(given) if given is not None else environ.get(f"AUTOGRADER_{name}", default)

    return Settings(
        data=Path(read("DATA", data, "data")),
        course=Path(read("COURSE", course, "course")),
        database_url=read("DATABASE_URL", None, ""),
        sandbox=read("SANDBOX", sandbox, "docker"),  # type: ignore[arg-type]  # checked when built
        image=read("IMAGE", None, ""),
        jobs=int(read("JOBS", jobs, "2")),
        slots=int(read("SLOTS", None, "1")),
        max_body_bytes=int(read("MAX_BODY_BYTES", None, str(24 * MEBIBYTE))),
        stop_seconds=float(read("STOP_SECONDS", None, "20")),
    )
