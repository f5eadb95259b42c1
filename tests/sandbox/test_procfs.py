"""Where the kernel says how often memory ran out, and that nothing breaks where it does not."""

import os
import subprocess
from pathlib import Path

import pytest

from sandbox.inside import procfs

V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
V2 = "low 0\nhigh 0\nmax 12\noom 4\noom_kill 3\noom_group_kill 0\n"


@pytest.mark.parametrize("text, kills", [(V1, 3), (V2, 3), ("oom_kill many\n", None), ("", None), (None, None)])
def test_kills_for_memory_are_read_from_either_cgroup_version_or_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, kills: int | None
) -> None:
    if text is not None:
        (tmp_path / "events").write_text(text)
    monkeypatch.setattr(procfs, "OOM_FILES", (str(tmp_path / "none"), str(tmp_path / "events")))
    assert procfs.oom_kills() == kills


def test_a_process_is_read_whatever_its_name_is(tmp_path: Path) -> None:
    odd = tmp_path / ") Z\nUid:\t7"
    odd.symlink_to("/bin/sleep")
    with subprocess.Popen([odd, "60"]) as child:
        try:
            found = procfs.read_process(child.pid)
            assert found is not None and (found.pid, found.parent) == (child.pid, os.getpid())
            assert found.uid == os.getuid() and found.threads == 1 and not found.dead
            pids = {process.pid for process in procfs.processes(besides={os.getpid()})}
            assert child.pid in pids and os.getpid() not in pids
        finally:
            child.kill()
    assert procfs.read_process(child.pid) is None
