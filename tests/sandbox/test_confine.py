"""Emptying a slot, whatever was left in it."""

import os
from pathlib import Path

from sandbox.inside.confine import empty


def test_everything_goes_however_deep_and_locked(tmp_path: Path) -> None:
    slot = tmp_path / "slot"
    slot.mkdir()
    kept = tmp_path / "kept"
    kept.write_text("mine")
    (slot / "link").symlink_to(kept)
    (slot / "folder-link").symlink_to(tmp_path)
    os.mkfifo(slot / "fifo")
    here = os.getcwd()
    os.chdir(slot)
    for _ in range(1500):
        os.mkdir("d")
        os.chdir("d")
    Path("file").write_text("x")
    os.chmod(".", 0)
    os.chdir(here)
    (slot / os.fsdecode(b"odd\xff\n")).write_text("x")
    empty(os.fsencode(slot), [os.fsencode(name) for name in os.listdir(slot)])
    os.chdir(here)
    assert not os.listdir(slot) and kept.read_text() == "mine"
