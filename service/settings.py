"""The environment and the command line go in; one frozen `Settings`, read once at start, comes out."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal

from grader.units import DEFAULT_COURSE

MEBIBYTE = 2**20

SandboxKind = Literal["docker", "process"]
LogForm = Literal["text", "json"]

PREFIX = re.compile(r"(?:/[A-Za-z0-9_][A-Za-z0-9._~-]*){0,8}", re.ASCII)
"""What a path can begin with behind a proxy. A segment begins with a letter, digit or underscore: neither //, which
would name another host, nor /.. can be said."""

PUBLIC_URL = re.compile(rf"https?://[A-Za-z0-9.-]+(?::\d{{1,5}})?(?P<path>{PREFIX.pattern})", re.ASCII)
"""What a public address looks like: no user name, query or fragment, and no slash at its end."""


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
    slots: int = 0  # submissions at a time in one worker; 0: as many as its cores and memory allow
    max_body_bytes: int = 24 * MEBIBYTE
    max_upload_seconds: float = 120.0
    max_wait_seconds: float = 120.0
    max_uploads: int = 32  # read at a time by one web process, each held in memory
    max_queued: int = 5000  # runs that wait, before nothing more is taken in
    min_free_bytes: int = 512 * MEBIBYTE  # on the disk of `data`, likewise
    memory_reserve_bytes: int = 256 * MEBIBYTE  # left free beside the sandbox of a run that begins
    cache: bool = True  # answer what was graded before, under the same conditions, with that report
    max_attempts: int = 3
    attempts_per_hour: int = 0  # of a student at a unit for which no teacher says another; 0: without limit
    worker_ttl_seconds: float = 12.0  # a worker that is silent for so long is taken over by another
    stop_seconds: float = 20.0  # what a stopping worker gives the run it is in before it hands it back
    engine_poll_seconds: float = 0.25
    keep_submissions_days: float = 0.0  # 0: for ever
    public_url: str = ""  # where people reach us, as https://grader.example/grader; empty: where a request came to
    root_path: str = ""  # under which a proxy serves us, such as /grader; with public_url, its path
    forwarded_allow_ips: str = "127.0.0.1,::1"  # proxies whose X-Forwarded-* are believed: addresses, networks or *
    max_connections: int = 2000  # of one web process; over it, 503
    max_streams: int = 1000  # event streams of one web process
    max_streams_per_student: int = 10
    max_streams_per_token: int = 500  # of staff and LMS
    sender: bool = True  # `serve` tells others of grades; off for a copy of a database whose original does
    callback_hosts: str = ""  # who may be called back: hosts, or host:port, by commas; empty: any public one by https
    platform_hosts: str = ""  # learning platforms at private addresses; those at public ones are asked without
    metrics_token: str = ""  # a token that reads /metrics and nothing else
    log: LogForm = "text"
    log_level: str = ""  # empty: info for json, warning for text

    @property
    def logged_from(self) -> str:
        """The least level that is logged."""
        return self.log_level.lower() or ("info" if self.log == "json" else "warning")

    @property
    def heartbeat_seconds(self) -> float:
        """Between two signs of life of a worker."""
        return self.worker_ttl_seconds / 3

    @property
    def url(self) -> str:
        """The database, as SQLAlchemy names it."""
        return self.database_url or f"sqlite:///{self.database_file}"

    @property
    def database_file(self) -> Path:
        """Where the SQLite database lies if no other is named."""
        return self.data.resolve() / "autograder.sqlite"

    def __post_init__(self) -> None:
        for name in (
            *("jobs", "max_body_bytes", "max_attempts", "max_uploads", "max_queued"),
            *("max_connections", "max_streams", "max_streams_per_student", "max_streams_per_token"),
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("slots", "min_free_bytes", "memory_reserve_bytes"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.attempts_per_hour < 0:
            raise ValueError(f"attempts_per_hour must be at least 0, got {self.attempts_per_hour}")
        if not self.keep_submissions_days >= 0:
            raise ValueError(f"keep_submissions_days must be at least 0, got {self.keep_submissions_days}")
        if self.sandbox not in ("docker", "process"):
            raise ValueError(f"sandbox must be docker or process, got {self.sandbox!r}")
        if self.log not in ("text", "json"):
            raise ValueError(f"log must be text or json, got {self.log!r}")
        if self.logged_from not in ("debug", "info", "warning", "error"):
            raise ValueError(f"log_level must be debug, info, warning or error, got {self.log_level!r}")
        if self.forwarded_allow_ips not in ("", "*"):
            for proxy in self.forwarded_allow_ips.split(","):
                ip_network(proxy.strip())  # a name, or a network with host bits, would silently be believed by nobody
        if self.public_url:
            found = PUBLIC_URL.fullmatch(self.public_url)
            if found is None:
                raise ValueError(f"public_url must be like https://grader.example/grader, got {self.public_url!r}")
            if self.root_path not in ("", found["path"]):
                raise ValueError(f"root_path is {self.root_path}, but public_url has another: {self.public_url}")
            object.__setattr__(self, "root_path", found["path"])
        if not PREFIX.fullmatch(self.root_path):
            raise ValueError(f"root_path must be like /grader, without a slash at its end, got {self.root_path!r}")


def _switch(text: str) -> bool:
    """Raises ValueError for a text that says neither."""
    known = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}
    if text.lower() not in known:
        raise ValueError(f"a switch must be on or off, got {text!r}")
    return known[text.lower()]


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
    "max_uploads": int,
    "max_queued": int,
    "min_free_bytes": int,
    "memory_reserve_bytes": int,
    "cache": _switch,
    "stop_seconds": float,
    "worker_ttl_seconds": float,
    "max_attempts": int,
    "keep_submissions_days": float,
    "attempts_per_hour": int,
    "public_url": str,
    "root_path": str,
    "forwarded_allow_ips": str,
    "max_connections": int,
    "max_streams": int,
    "max_streams_per_student": int,
    "max_streams_per_token": int,
    "sender": _switch,
    "callback_hosts": str,
    "platform_hosts": str,
    "metrics_token": str,
    "log": str,
    "log_level": str,
}
"""The settings that the environment can hold, as AUTOGRADER_<NAME>, and how each is read from text."""


def from_environment(
    environ: Mapping[str, str] = os.environ,
    *,
    data: Path | None = None,
    course: Path | None = None,
    sandbox: str | None = None,
    jobs: int | None = None,
    public_url: str | None = None,
) -> Settings:
    """Read AUTOGRADER_* variables; what is passed by name (from the command line) wins over them.

    Raises ValueError for a value that cannot be.
    """
    read: dict[str, Any] = {
        name: of_text(environ[_variable(name)]) for name, of_text in _READ.items() if _variable(name) in environ
    }
    given = {"data": data, "course": course, "sandbox": sandbox, "jobs": jobs, "public_url": public_url}
    return Settings(**read | {name: value for name, value in given.items() if value is not None})


def to_environment(settings: Settings) -> dict[str, str]:
    """The variables from which `from_environment` reads these settings again."""
    return {_variable(name): str(getattr(settings, name)) for name in _READ}


def _variable(name: str) -> str:
    return f"AUTOGRADER_{name.upper()}"
