"""How runs are kept apart: a slot comes in, an identity for its next run leaves, and after the run an empty slot.

In a container each run has a uid and gid of its own, and each slot is a small tmpfs. Without one (`ProcessTrees`) runs
share our uid and are told apart by descent: good against accidents, not against malice.
"""

import contextlib
import ctypes
import os
import random
import secrets
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sandbox.inside.procfs import Process, processes

UIDS_PER_CONTAINER = 1024
FIRST_UID = 2048
SWEEP_SECONDS = 10.0
WALK_SECONDS = 0.25
PR_SET_CHILD_SUBREAPER = 36


class SlotNotEmpty(Exception):
    """Something of a run outlived it: this sandbox must not be used again."""


@dataclass
class Tenant:
    """The run in a slot. `uid` (its gid too) is None where runs have none of their own; `known` are pids seen."""

    slot: str
    uid: int | None
    pid: int = 0
    known: dict[int, int] = field(default_factory=dict)


class Confinement(Protocol):
    ours: set[int]
    """processes that are none of a run's as long as they live, and without which the supervisor leaves"""

    def admit(self, slot: str) -> Tenant:
        """Open an empty slot to a new run."""
        ...

    def members(self, tenant: Tenant, snapshot: Sequence[Process]) -> list[Process]:
        """The run's living processes."""
        ...

    def disk_use(self, tenant: Tenant) -> tuple[int, int, bool]:
        """Bytes and files in the slot, and whether it is full."""
        ...

    def evict(self, tenant: Tenant) -> None:
        """Kill every process of the run that can be told yet and remove all its files, or raise SlotNotEmpty.

        Never files alone: a run that lost its tests, and lives, would end as if it had had none."""
        ...


class UserIds:
    """A uid per run. Needs root with CAP_SETUID, CAP_SETGID and CAP_KILL only; see decision 0032 for each step."""

    def __init__(self, uid_index: int, ours: Iterable[int] = ()) -> None:
        self.ours = set(ours)
        ranges = max(1, (_mapped_ids() - FIRST_UID) // UIDS_PER_CONTAINER)
        base = FIRST_UID + uid_index % ranges * UIDS_PER_CONTAINER
        self._sweeper = base
        self._free = list(range(base + 1, base + UIDS_PER_CONTAINER))
        random.SystemRandom().shuffle(self._free)

    def admit(self, slot: str) -> Tenant:
        uid = self._free.pop()
        self._free.insert(0, uid)
        # Without CAP_CHOWN an owner may still give a directory to a group of its own.
        os.setgroups([uid])
        os.chown(slot, -1, uid)
        os.chmod(slot, 0o1730)  # the group may create and enter, not list, and not remove what is another's
        return Tenant(slot, uid)

    def members(self, tenant: Tenant, snapshot: Sequence[Process]) -> list[Process]:
        return [process for process in snapshot if process.uid == tenant.uid and not process.dead]

    def disk_use(self, tenant: Tenant) -> tuple[int, int, bool]:
        disk = os.statvfs(tenant.slot)
        full = disk.f_bfree == 0 or disk.f_ffree == 0
        return (disk.f_blocks - disk.f_bfree) * disk.f_frsize, disk.f_files - disk.f_ffree, full

    def evict(self, tenant: Tenant) -> None:
        deadline = time.monotonic() + SWEEP_SECONDS
        while True:
            names = [os.fsencode(name) for name in os.listdir(tenant.slot)]
            self._sweep(tenant, names)
            if not os.listdir(tenant.slot) and not self.members(tenant, tuple(processes(self.ours))):
                return
            if time.monotonic() > deadline:
                raise SlotNotEmpty(tenant.slot)
            time.sleep(0.001)  # a killed process may take a moment to give back its memory

    def _sweep(self, tenant: Tenant, names: Iterable[bytes]) -> None:
        """With the run's effective uid, and a real and a saved one that the run cannot signal."""
        assert tenant.uid is not None
        os.setgroups([tenant.uid])
        os.setresgid(0, tenant.uid, 0)
        os.setresuid(self._sweeper, tenant.uid, 0)
        try:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            empty(os.fsencode(tenant.slot), names)
        finally:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)


class ProcessTrees:
    """No rights needed, and none taken away: a run is its first process, that one's session and their descendants."""

    def __init__(self, ours: Iterable[int]) -> None:
        self.ours = set(ours)
        self._tenants: dict[str, Tenant] = {}
        self._walked: dict[str, tuple[float, tuple[int, int, bool]]] = {}
        # Orphans of a run become our children instead of init's, so that they can be found.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def admit(self, slot: str) -> Tenant:
        self._walked.pop(slot, None)
        self._tenants[slot] = Tenant(slot, None)
        return self._tenants[slot]

    def members(self, tenant: Tenant, snapshot: Sequence[Process]) -> list[Process]:
        living = {process.pid: process for process in snapshot if not process.dead}
        tenant.known = {
            pid: start for pid, start in tenant.known.items() if pid in living and living[pid].started == start
        }
        grew = True
        while grew:
            found = {
                process.pid: process.started
                for process in living.values()
                if process.pid not in tenant.known
                and tenant.pid
                and (tenant.pid in (process.pid, process.session) or process.parent in tenant.known)
            }
            tenant.known |= found
            grew = bool(found)
        return [living[pid] for pid in tenant.known]

    def disk_use(self, tenant: Tenant) -> tuple[int, int, bool]:
        walked, use = self._walked.get(tenant.slot, (0.0, (0, 0, False)))
        if time.monotonic() < walked + WALK_SECONDS:
            return use
        sizes = [0]
        for folder, _, names in os.walk(tenant.slot):
            for name in names:
                with contextlib.suppress(OSError):
                    sizes.append(os.lstat(os.path.join(folder, name)).st_blocks * 512)
        use = sum(sizes), len(sizes) - 1, False
        self._walked[tenant.slot] = time.monotonic(), use
        return use

    def evict(self, tenant: Tenant) -> None:
        if not tenant.pid:  # it may have begun, but which process it is has not been heard
            return
        deadline = time.monotonic() + SWEEP_SECONDS
        while True:
            snapshot = tuple(processes(self.ours))
            members = self.members(tenant, snapshot)
            for process in (*members, *self._strays(snapshot)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            if not members:
                break
            if time.monotonic() > deadline:
                raise SlotNotEmpty(tenant.slot)
            time.sleep(0.001)
        empty(os.fsencode(tenant.slot), [os.fsencode(name) for name in os.listdir(tenant.slot)])
        if os.listdir(tenant.slot):
            raise SlotNotEmpty(tenant.slot)

    def _strays(self, snapshot: Sequence[Process]) -> list[Process]:
        """Daemons that no run can be told to own; no test needs one."""
        known: set[int] = set().union(*(tenant.known for tenant in self._tenants.values()))
        return [
            process
            for process in snapshot
            if process.parent == os.getpid() and process.pid not in known and not process.dead
        ]


def empty(folder: bytes, names: Iterable[bytes]) -> None:
    """Remove the named entries of a folder, however deep: directories inside are moved up before they are emptied,
    so that neither path lengths nor open files nor the stack grow with depth."""
    os.chdir(folder)
    token = secrets.token_hex(8).encode()
    pending, moved = list(names), 0
    while pending:
        name = pending.pop()
        with contextlib.suppress(OSError):
            try:
                os.unlink(name)
                continue
            except IsADirectoryError:
                os.chmod(name, 0o700)
            with os.scandir(name) as entries:
                inside = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
            for path, is_folder in inside:
                if is_folder:
                    os.chmod(path, 0o700)
                    moved += 1
                    target = b"%s-%d" % (token, moved)
                    os.rename(path, target)
                    pending.append(target)
                else:
                    os.unlink(path)
            os.rmdir(name)
    os.chdir(b"/")


def _mapped_ids() -> int:
    """How many uids this user namespace has: all of them, or 65536 under rootless Docker."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return max(int(line.split()[0]) + int(line.split()[2]) for line in file)
