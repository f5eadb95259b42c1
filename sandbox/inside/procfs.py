"""What /proc and the cgroup files say: processes with their owner and use, and how often memory ran out."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    session: int
    uid: int
    threads: int
    cpu_seconds: float
    """of the process and of the children it has waited for"""
    started: int
    dead: bool
    """a zombie: it holds nothing but its number"""


def processes() -> Iterator[Process]:
    for name in os.listdir("/proc"):
        if name.isdigit() and (process := read_process(int(name))):
            yield process


def read_process(pid: int) -> Process | None:
    """The process, or None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name, in parentheses, may hold anything: fields count from the last parenthesis.
            fields = file.read().rpartition(b")")[2].split()
        with open(f"/proc/{pid}/status", "rb") as file:
            uid = next(int(line.split()[1]) for line in file if line.startswith(b"Uid:"))
    except (OSError, StopIteration):
        return None
    return Process(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        uid=uid,
        threads=int(fields[17]),
        cpu_seconds=sum(map(int, fields[11:15])) / TICKS_PER_SECOND,
        started=int(fields[19]),
        dead=fields[0] in (b"Z", b"X"),
    )


OOM_FILES = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")  # of cgroup v2, of v1


def oom_kills() -> int | None:
    """How many processes of this container the kernel has ended for memory; None where no file says."""
    for path in OOM_FILES:
        try:
            with open(path, "rb") as file:
                for line in file:
                    key, _, value = line.partition(b" ")
                    if key == b"oom_kill":
                        return int(value)
        except (OSError, ValueError):
            continue
    return None
