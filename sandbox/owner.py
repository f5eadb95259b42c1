"""A process comes in; a name comes out by which anybody on this machine can tell later whether it still lives."""

import os
from pathlib import Path


def boot_id() -> str:
    """This boot of this machine, and the pid namespace in which owners' numbers mean something."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"


def owner_of(pid: int) -> str:
    """A process, told apart from later ones of its number by when it started."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return f"{pid}:{fields[19]}"


def owner_lives(owner: str) -> bool:
    """Whether the process that `owner_of` named is still there."""
    try:
        return owner_of(int(owner.partition(":")[0])) == owner
    except (OSError, ValueError):
        return False
