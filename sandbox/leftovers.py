"""Nothing comes in; temporary directories of processes of ours that died go.

Their names say whose they are. (docs/decisions/0138)
"""

import os
import shutil
import tempfile
from pathlib import Path

from sandbox.owner import boot_id, owner_lives, owner_of

PREFIX = "autograder-"


def directory_prefix() -> str:
    """How the name of a temporary directory of this process begins."""
    pid, _, started = owner_of(os.getpid()).partition(":")
    return f"{PREFIX}{_here()}.{pid}.{started}-"


def sweep_directories(folder: Path | None = None) -> list[Path]:
    """Remove the temporary directories of processes of this machine that are dead; returns them."""
    swept = []
    for path in (folder or Path(tempfile.gettempdir())).glob(f"{PREFIX}*.*.*-*"):
        here, pid, started = path.name.removeprefix(PREFIX).rpartition("-")[0].split(".")[:3]
        if here == _here() and not owner_lives(f"{pid}:{started}"):
            shutil.rmtree(path, ignore_errors=True)
            swept.append(path)
    return swept


def _here() -> str:
    """A short name of the boot and the namespace in which this process's number means something."""
    boot, _, namespace = boot_id().partition(" ")
    return f"{boot[:8]}{''.join(filter(str.isdigit, namespace))}"
