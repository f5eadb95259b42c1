"""This machine's cores and memory go in; how many runs a worker makes at a time, and what one must wait for, comes out.

A sandbox may use memory up to its limit. If that is not there when a run begins, the kernel ends something in the
middle of it, perhaps of somebody else; so the run waits instead, and the worker says what for. A machine that is too
small for the whole limit grades in half of what it has. (docs/decisions/0138)
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from grader.verdicts import STANDING_LIMITS
from service import wording
from service.settings import Settings

SANDBOX_BYTES = 2 * 2**30  # of a container, as sandbox/docker_engine.py makes it
MOST_SHARE = 0.5  # of the machine's memory that a run can be made to wait for
MOST_SLOTS = 8


class Admission(Protocol):
    def lacks(self) -> str | None:
        """What a run must wait for before it begins, in words; None: it may begin."""
        ...


class AlwaysAdmits:
    """For tests, and wherever memory is somebody else's care."""

    def lacks(self) -> str | None:
        return None


@dataclass(frozen=True)
class Memory:
    """Bytes that this process and its siblings may use in all, and how many of them are free."""

    total_bytes: int
    free_bytes: int


class MemoryAdmission:
    """Lets a run begin when what its sandbox may use, and a reserve beside it, are free."""

    def __init__(self, settings: Settings, memory: Callable[[], Memory] | None = None) -> None:
        self._settings = settings
        self._memory = memory or memory_of

    def lacks(self) -> str | None:
        memory = self._memory()
        needed = needed_bytes(self._settings, memory.total_bytes)
        return None if memory.free_bytes >= needed else wording.memory_short(memory.free_bytes, needed)


def needed_bytes(settings: Settings, total_bytes: int) -> int:
    """Free memory that a run begins with: its sandbox's limit and the reserve, or half of a small machine."""
    wanted = sandbox_bytes(settings) + settings.memory_reserve_bytes
    return min(wanted, int(total_bytes * MOST_SHARE))


def sandbox_bytes(settings: Settings) -> int:
    """What one submission's sandbox may use at most."""
    return SANDBOX_BYTES if settings.sandbox == "docker" else settings.jobs * STANDING_LIMITS.memory_bytes


def sized(settings: Settings, cores: float | None = None, memory: Memory | None = None) -> Settings:
    """The settings with `slots` filled in where they leave it open."""
    if settings.slots:
        return settings
    by_cores = int((cores or cores_of()) // settings.jobs)
    by_memory = (memory or memory_of()).total_bytes // (sandbox_bytes(settings) + settings.memory_reserve_bytes)
    return replace(settings, slots=max(1, min(by_cores, by_memory, MOST_SLOTS)))


def cores_of(root: Path = Path("/")) -> float:
    """The cores this process may use: its affinity, and less if its cgroup has a quota."""
    cores = float(len(os.sched_getaffinity(0)))
    quota = _numbers(root / "sys/fs/cgroup/cpu.max")
    if len(quota) != 2:
        quota = [
            *_numbers(root / "sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
            *_numbers(root / "sys/fs/cgroup/cpu/cpu.cfs_period_us"),
        ]
    if len(quota) == 2 and quota[0] > 0 and quota[1] > 0:
        cores = min(cores, quota[0] / quota[1])
    return cores


def memory_of(root: Path = Path("/")) -> Memory:
    """The machine's memory, and less if this process's cgroup has a limit. Pages of files count as free."""
    table = dict(
        line.split(":", 1) for line in (root / "proc/meminfo").read_text(encoding="ascii").splitlines() if ":" in line
    )
    total, free = (int(table[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    for folder, limit_name, used_name, cached in (
        ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        limit, used = (_numbers(root / folder / name) for name in (limit_name, used_name))
        if limit and used and limit[0] < total:
            total = limit[0]
            free = min(free, max(0, limit[0] - used[0] + _cached_bytes(root / folder / "memory.stat", cached)))
    return Memory(total, free)


def _cached_bytes(stat: Path, name: str) -> int:
    try:
        lines = stat.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[0] == name), 0)


def _numbers(path: Path) -> list[int]:
    """The whole numbers in a file of the kernel's; none if it is not there or says "max"."""
    try:
        words = path.read_text(encoding="ascii").split()
        return [int(word) for word in words]
    except (OSError, ValueError):
        return []
