"""What /proc and the cgroup files say: processes with their owner and use, and how often memory ran out."""

import os
from collections.abc import Container, Iterator
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


def processes(besides: Container[int] = ()) -> Iterator[Process]:
    """All that there are, but for some that are known to live: reading what is told of one is most of the work."""
    for name in os.listdir("/proc"):
        if name.isdigit() and (pid := int(name)) not in besides and (process := read_process(pid)):
            yield process


def read_process(pid: int) -> Process | None:
    """The process, or None if it is gone."""
    try:
        # The name, in parentheses, may hold anything: fields count from the last parenthesis.
        fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        # Here the name has no line breaks.
        uid = int(read(f"/proc/{pid}/status").partition(b"\nUid:")[2].split(maxsplit=1)[0])
    except (OSError, IndexError):
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


def read(path: str) -> bytes:
    """A file of /proc: these are short, and said at once."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 1 << 16)
    finally:
        os.close(fd)


OOM_FILES = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")  # of cgroup v2, of v1


def oom_kills() -> int | None:
    """How many processes of this container the kernel has ended for memory; None where no file says."""
    for path in OOM_FILES:
        try:
            for line in read(path).splitlines():
                key, _, value = line.partition(b" ")
                if key == b"oom_kill":
                    return int(value)
        except (OSError, ValueError):
            continue
    return None
