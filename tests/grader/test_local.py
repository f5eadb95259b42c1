import os
from pathlib import Path

import pytest

from grader.errors import Rejected
from grader.intake import IntakeLimits, take_in
from grader.local import read_directory, read_paths
from grader.submission import Upload
from grader.unit import Unit
from tests.grader.archive_makers import make_zip

TEST = b"def test_it(): ...\n"


def fill(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def test_a_folder_is_read_with_relative_names_and_without_left_overs(tmp_path: Path) -> None:
    junk = {".venv/lib/x.py": b"", "sub/__pycache__/a.pyc": b"", ".git/config": b"", ".DS_Store": b""}
    fill(tmp_path, {"test_b.py": TEST, "sub/core.py": b"1", **junk})
    assert read_directory(tmp_path) == [Upload("sub/core.py", b"1"), Upload("test_b.py", TEST)]


def test_a_folder_and_its_archive_give_one_submission(unit: Unit, tmp_path: Path) -> None:
    files = {"python/tests/z1-double/test_a.py": TEST, "README": b"x", "Makefile": b"y"}
    fill(tmp_path / "repo", files)
    (tmp_path / "t.zip").write_bytes(make_zip(files))
    code = {"double": Upload("double.py", b"")}
    submissions = [take_in(unit, code, read_paths([tmp_path / name])) for name in ("repo", "t.zip")]
    assert submissions[0].digest == submissions[1].digest


def test_files_are_read_by_their_names(tmp_path: Path) -> None:
    fill(tmp_path, {"a/test_a.py": TEST, "b/conftest.py": b""})
    uploads = read_paths([tmp_path / "a/test_a.py", tmp_path / "b/conftest.py"])
    assert uploads == [Upload("test_a.py", TEST), Upload("conftest.py", b"")]


@pytest.mark.parametrize("target", ["test_a.py", "/etc/passwd", "sub", "nowhere"])
def test_links_are_never_followed(tmp_path: Path, target: str) -> None:
    fill(tmp_path, {"test_a.py": TEST, "sub/x.py": b""})
    (tmp_path / "test_link.py").symlink_to(target)
    with pytest.raises(Rejected) as caught:
        read_directory(tmp_path)
    assert (caught.value.code, caught.value.path) == ("link", "test_link.py")


def test_a_pipe_is_refused_without_reading_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "test_pipe.py")
    with pytest.raises(Rejected) as caught:
        read_directory(tmp_path)
    assert caught.value.code == "special_file"


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Rejected) as caught:
        read_paths([tmp_path / "missing.zip"])
    assert caught.value.code == "unreadable"


def test_a_huge_folder_or_file_is_not_read_whole(tmp_path: Path) -> None:
    fill(tmp_path, {f"{index}.txt": b"abcdef" for index in range(9)})
    with pytest.raises(Rejected) as caught:
        read_directory(tmp_path, IntakeLimits(files=4))
    assert caught.value.code == "too_many_files"
    (upload,) = read_paths([tmp_path / "0.txt"], IntakeLimits(upload_bytes=2))
    assert upload.data == b"abc"
