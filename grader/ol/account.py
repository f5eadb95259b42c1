"""The address of a service and a token go in; they are kept in a file that this user alone can read, and come back."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from grader.ol.stops import Usage

SERVER, TOKEN, COURSE = "OL_SERVER", "OL_TOKEN", "OL_COURSE_ID"


@dataclass(frozen=True)
class Account:
    """`course` is the course offering's id; empty for the service's default one."""

    server: str
    token: str
    course: str = ""


def folder() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "ol"


def load() -> Account | None:
    """From the environment, or else from the file; None if neither names a service and a token."""
    kept: dict[str, str] = {}
    file = folder() / "account.json"
    if file.is_file():
        try:
            kept = {str(name): str(value) for name, value in json.loads(file.read_text(encoding="utf-8")).items()}
        except (ValueError, AttributeError) as error:
            raise Usage(f"{file} cannot be read: log in anew with: ol login") from error
    named, known = os.environ.get(SERVER), kept.get("server")
    is_elsewhere = named and named.rstrip("/") != (known or "").rstrip("/")  # a token is for one service only
    server, token = named or known, os.environ.get(TOKEN) or (None if is_elsewhere else kept.get("token"))
    return Account(server, token, os.environ.get(COURSE) or kept.get("course", "")) if server and token else None


def save(account: Account) -> Path:
    """Write the file with rights for its owner only, in one step."""
    place = folder()
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    file, fresh = place / "account.json", place / f".account-{os.getpid()}"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump({"server": account.server, "token": account.token, "course": account.course}, stream)
    os.replace(fresh, file)
    return file


def forget() -> bool:
    """Whether there was something to forget."""
    file = folder() / "account.json"
    there = file.exists()
    file.unlink(missing_ok=True)
    return there
