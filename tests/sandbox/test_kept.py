"""What follows from its parts is made once."""

import os
import time
from pathlib import Path

from sandbox.kept import forget_unused, kept_in, made_once


class Maker:
    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> bytes:
        self.made += 1
        return b"bytes"


def ask(make: Maker, *parts: bytes) -> bytes:
    return made_once("thing", parts, make)


def test_it_is_made_once_for_all_processes_of_a_folder(tmp_path: Path) -> None:
    make = Maker()
    for _ in range(3):
        with kept_in(tmp_path / "new" / "folder"):
            assert ask(make, b"a") == b"bytes"
    assert make.made == 1


def test_without_a_folder_it_is_made_each_time() -> None:
    make = Maker()
    assert ask(make, b"a") == ask(make, b"a") == b"bytes" and make.made == 2


def test_other_parts_are_another_thing(tmp_path: Path) -> None:
    make = Maker()
    with kept_in(tmp_path):
        for parts in ([b"ab"], [b"a", b"b"], [b"", b"ab"], [b"ab"]):
            ask(make, *parts)
    assert make.made == 3


def test_a_file_that_is_not_whole_is_made_again(tmp_path: Path) -> None:
    make = Maker()
    with kept_in(tmp_path):
        ask(make, b"a")
        [path] = tmp_path.iterdir()
        for damaged in (b"", path.read_bytes()[:-1], b"x" * 40):
            path.write_bytes(damaged)
            assert ask(make, b"a") == b"bytes"
    assert make.made == 4


def test_where_nothing_can_be_kept_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    make = Maker()
    with kept_in(tmp_path / "file"):
        assert ask(make, b"a") == b"bytes"


def test_what_nobody_used_for_a_month_goes(tmp_path: Path) -> None:
    make = Maker()
    with kept_in(tmp_path):
        ask(make, b"a"), ask(make, b"b")
        long_ago = time.time() - 40 * 86_400
        for path in tmp_path.iterdir():
            os.utime(path, (long_ago, long_ago))
        ask(make, b"a")
    with kept_in(tmp_path):
        ask(make, b"a"), ask(make, b"b")
    assert make.made == 3


def test_the_folder_may_hold_what_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    forget_unused(tmp_path, time.time() + 1)
    assert (tmp_path / "inner").is_dir()
