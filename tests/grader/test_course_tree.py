"""A course tree as files by path: read, uploaded, laid over another, laid out on disk, compared."""

import io
import tarfile
import zipfile

import pytest

from grader import course_tree
from grader.course_tree import Change
from grader.errors import Rejected
from grader.submission import Upload
from grader.units import load_course
from tests.grader.small_course import FILES, write_course

MUTANT = "course/mutants/Z1/s01.patch"


def zipped(files, name="tree.zip"):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return Upload(name, written.getvalue())


@pytest.fixture
def root(tmp_path):
    return write_course(tmp_path)


def test_a_tree_that_is_read_packed_uploaded_and_laid_out_loads_the_same(root, tmp_path):
    files = course_tree.read(root)
    assert set(files) <= set(FILES) and not any(path.endswith(".pyc") for path in files)
    sent = course_tree.taken([Upload("course.zip", course_tree.packed(files))], "")
    again = course_tree.laid_over({**files, "course/old": b""}, sent, whole=True)
    assert again == files
    laid = course_tree.lay(again, tmp_path / "elsewhere" / "tree")
    assert load_course(laid).digest == load_course(root).digest
    assert course_tree.lay({}, tmp_path / "elsewhere" / "tree") == laid  # it is there already
    assert load_course(laid).units


def test_a_folder_around_everything_is_taken_off_and_leftovers_are_dropped():
    files = {"mine/course/modules/Z1.toml": "", "mine/tinyllm/a.py": "", "mine/.git/config": ""}
    assert set(course_tree.taken([zipped(files)], "")) == {"course/modules/Z1.toml", "tinyllm/a.py"}


def test_single_files_lie_in_the_folder_that_was_named():
    found = course_tree.taken([Upload("s01.patch", b"1"), zipped({"course/a.txt": "2"})], "course/mutants/Z1/")
    assert found == {MUTANT: b"1", "course/a.txt": b"2"}
    arrays = Upload("data.npz", zipped({"x.npy": ""}).data)  # an archive to those who look at its first bytes only
    assert set(course_tree.taken([arrays], "course/fixtures")) == {"course/fixtures/data.npz"}


@pytest.mark.parametrize(
    ("uploads", "into", "code"),
    [
        ([zipped({"../course/a": ""})], "", "path_traversal"),
        ([zipped({"/course/a": ""})], "", "absolute_name"),
        ([zipped({"course/a\x07": ""})], "", "name_characters"),
        ([Upload("a.toml", b"")], "../etc", "path_traversal"),
        ([Upload("../a.toml", b"")], "course", "path_traversal"),
        ([Upload("a.zip", b"no archive")], "", "not_an_archive"),
        ([Upload("a", b"1"), zipped({"course/a": "2"})], "course", "repeated_name"),
    ],
)
def test_what_is_no_path_of_a_tree_is_refused(uploads, into, code):
    with pytest.raises(Rejected) as refused:
        course_tree.taken(uploads, into)
    assert refused.value.code == code


def test_links_are_refused():
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        link = tarfile.TarInfo("course/oracle")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
    with pytest.raises(Rejected) as refused:
        course_tree.taken([Upload("tree.tar", written.getvalue())], "")
    assert refused.value.code == "special_file"


@pytest.mark.parametrize(
    ("files", "removed", "code"),
    [
        ({"elsewhere/a": b""}, [], "outside_tree"),
        ({"course": b""}, [], "outside_tree"),
        ({"course/A": b""}, [], "colliding_names"),
        ({"course/a/b": b""}, [], "colliding_names"),
        ({}, ["course/b"], "file_unknown"),
    ],
)
def test_what_cannot_stand_in_the_tree_is_refused(files, removed, code):
    with pytest.raises(Rejected) as refused:
        course_tree.laid_over({"course/a": b"1"}, files, removed)
    assert refused.value.code == code


def test_files_replace_and_add_and_folders_go():
    before = {"course/a": b"1", "course/b/c": b"2", "course/b/d": b"3", "course/bb": b"4"}
    after = course_tree.laid_over(before, {"course/a": b"5", "course/e": b"6"}, ["course/b/", ""])
    assert after == {"course/a": b"5", "course/bb": b"4", "course/e": b"6"}


def test_the_lines_of_so_many_files_only_are_compared(monkeypatch):
    monkeypatch.setattr(course_tree, "MOST_DIFFS", 1)
    told = course_tree.changes({}, {"course/a": b"1", "course/b": b"2"})
    assert [(each.path, bool(each.lines)) for each in told] == [("course/a", True), ("course/b", False)]


def test_what_runs_outside_of_the_sandbox_stands_first(monkeypatch):
    monkeypatch.setattr(course_tree, "MOST_DIFFS", 1)
    told = course_tree.changes({}, {"course/a": b"1", "course/oracle/Z1/live.py": b"2"})
    assert [(each.path, bool(each.lines), each.is_trusted) for each in told] == [
        ("course/oracle/Z1/live.py", True, True),
        ("course/a", False, False),
    ]


def test_lines_of_large_files_are_not_compared(monkeypatch):
    monkeypatch.setattr(course_tree, "MOST_DIFF_BYTES", 3)
    told = course_tree.changes({"course/a": b"1"}, {"course/a": b"1234", "course/b": b"123"})
    assert [bool(each.lines) for each in told] == [False, True]


def test_changes_are_told_file_by_file_with_their_lines():
    before = {"course/a": b"1\n2\n", "course/b": b"x", "course/c": b"\xff"}
    after = {"course/a": b"1\n3\n", "course/c": b"\xfe", "course/d": b"y"}
    assert course_tree.changes(before, after) == [
        Change("course/a", "changed", ("@@ -1,2 +1,2 @@", " 1", "-2", "+3")),
        Change("course/b", "removed", ("@@ -1 +0,0 @@", "-x")),
        Change("course/c", "changed", ()),
        Change("course/d", "added", ("@@ -0,0 +1 @@", "+y")),
    ]
