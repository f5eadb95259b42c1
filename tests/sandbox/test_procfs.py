"""Where the kernel says how often memory ran out, and that nothing breaks where it does not."""

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
