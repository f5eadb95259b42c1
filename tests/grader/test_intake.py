import gzip
import io
import random
import stat
import tarfile
import unicodedata
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.errors import Rejected
from grader.intake import IntakeLimits, take_in
from grader.submission import Submission, Upload
from grader.unit import Unit
from tests.grader.archive_makers import Content, make_tar, make_zip, raw_zip, tar_entry, unicode_path

CODE = b"class Double: pass\n"
TEST = b"def test_it():\n    pass\n"
SMALL = IntakeLimits(
    upload_bytes=40_000, expanded_bytes=60_000, members=50, source_bytes=2_000, data_bytes=4_000, total_bytes=8_000,
    files=10, name_bytes=60, depth=4,
)  # fmt: skip


def intake(unit: Unit, *tests: Upload, code: bytes = CODE, limits: IntakeLimits | None = None) -> Submission:
    return take_in(unit, {"double": Upload("double.py", code)}, tests, limits)


def taken(unit: Unit, files: Content, limits: IntakeLimits | None = None) -> dict[str, bytes]:
    """What is taken from files packed as a zip."""
    return laid(intake(unit, Upload("tests.zip", make_zip(files)), limits=limits))


def laid(submission: Submission) -> dict[str, bytes]:
    return {file.path: file.data for file in submission.tests}


def refused(unit: Unit, *tests: Upload, code: bytes = CODE, limits: IntakeLimits | None = None) -> Rejected:
    with pytest.raises(Rejected) as caught:
        intake(unit, *tests, code=code, limits=limits)
    assert caught.value.message
    assert caught.value.path.isprintable()
    return caught.value


def told(submission: Submission) -> str:
    return "\n".join(f"{note.action} {note.path} {note.message}" for note in submission.notes)


# -- the unit's file


def test_the_units_file_is_taken_by_its_stem(unit: Unit) -> None:
    submission = intake(unit, Upload("test_a.py", TEST))
    assert submission.files == {"python/tinyllm/demo/double.py": CODE}
    assert submission.notes == ()


def test_a_missing_file_is_asked_for_by_name(unit: Unit) -> None:
    with pytest.raises(Rejected) as caught:
        take_in(unit, {}, [Upload("test_a.py", TEST)])
    assert caught.value.code == "missing_file"
    assert "-F double=@double.py" in caught.value.message


def test_an_unknown_file_is_answered_with_what_the_unit_takes(unit: Unit) -> None:
    with pytest.raises(Rejected) as caught:
        take_in(unit, {"double": Upload("x", b""), "mha\x1b[2J": Upload("y", b"")}, [Upload("test_a.py", TEST)])
    assert caught.value.code == "unknown_file"
    assert "double" in caught.value.message
    assert "\x1b" not in caught.value.message + caught.value.path


@pytest.mark.parametrize("code", [b"", b"def f(:\n", b"class"])
def test_empty_and_broken_source_is_taken_in_to_be_graded(unit: Unit, code: bytes) -> None:
    assert intake(unit, Upload("test_a.py", TEST), code=code).files["python/tinyllm/demo/double.py"] == code


@pytest.mark.parametrize(
    ("code", "expected", "message"),
    [
        (b"x = 1\ny = '\xe9'\n", "not_utf8", "Line 2 is not UTF-8 (byte 0xe9 at offset 11)"),
        (b"\xef\xbb\xbfx\r\n\xff", "not_utf8", "Line 2 is not UTF-8 (byte 0xff at offset 6)"),
        ("x = 1\n".encode("utf-16"), "nul_byte", "UTF-16"),
        (b"x = '\0'\n", "nul_byte", "NUL"),
        (b"# -*- coding: latin-1 -*-\nx = 1\n", "coding_cookie", "Line 1 declares the encoding latin-1"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n", "coding_cookie", "Line 2"),
        (b"x" * 300_000, "file_too_large", "256 KiB"),
    ],
)
def test_source_that_cannot_be_read_is_refused_with_its_place(
    unit: Unit, code: bytes, expected: str, message: str
) -> None:
    for error in (
        refused(unit, Upload("test_a.py", TEST), code=code),
        refused(unit, Upload("test_a.py", code)),
        refused(unit, Upload("tests.zip", make_zip({"test_a.py": code}))),
    ):
        assert error.code == expected
        assert message in error.message
        assert error.path in ("double.py", "test_a.py")


@pytest.mark.parametrize(
    "code",
    [b"# coding: utf-8\n", b"# -*- coding: UTF8 -*-\n", b"x = 1\n# coding: latin-1\n", b"\n\n# coding: latin-1\n"],
)
def test_a_cookie_python_ignores_or_that_says_utf8_is_fine(unit: Unit, code: bytes) -> None:
    assert laid(intake(unit, Upload("test_a.py", code))) == {"test_a.py": code}


def test_byte_order_mark_and_foreign_line_ends_are_normalised_and_told(unit: Unit) -> None:
    submission = intake(
        unit, Upload("test_a.py", b"\xef\xbb\xbfa\r\nb\rc\n"), Upload("data.csv", b"a\r\n"), code=b"x\r\n"
    )
    assert laid(submission) == {"test_a.py": b"a\nb\nc\n", "data.csv": b"a\r\n"}
    assert submission.files["python/tinyllm/demo/double.py"] == b"x\n"
    assert "normalised test_a.py" in told(submission)
    assert "2 files: Windows" in told(submission)


# -- forms of upload


def test_every_form_of_upload_gives_the_same_submission(unit: Unit) -> None:
    files = {"test_a.py": TEST, "conftest.py": b"", "oracle/core.py": b"x = 1\n", "data.json": b"{}"}
    forms = [
        [Upload("tests.zip", make_zip(files))],
        [Upload("tests.zip", make_zip(files, zipfile.ZIP_STORED))],
        [Upload("tests.tar.gz", make_tar(files))],
        [Upload("tests.tgz", make_tar(files, "w:gz"))],
        [Upload("tests.tar", make_tar(files, "w"))],
        [Upload("no suffix", make_tar({f"./{name}": data for name, data in files.items()}, "w"))],
        [Upload("said-to-be.zip", make_tar(files))],
        [Upload("t.zip", make_zip({f"wrap/inner/{name}": data for name, data in files.items()}))],
        [Upload(name, data) for name, data in files.items()],
        [Upload(name.replace("/", "\\"), data) for name, data in reversed(files.items())],
    ]
    assert len({intake(unit, *form).digest for form in forms}) == 1


@given(order=st.permutations(range(4)))
def test_the_order_of_uploads_changes_nothing(unit: Unit, order: list[int]) -> None:
    uploads = [
        Upload("a.zip", make_zip({"x/test_a.py": TEST})),
        Upload("b.tar", make_tar({"test_b.py": TEST}, "w")),
        Upload("test_c.py", TEST),
        Upload("._x", b""),
    ]
    assert intake(unit, *(uploads[index] for index in order)) == intake(unit, *uploads)


def test_numpy_arrays_are_data_and_no_nested_archives(unit: Unit) -> None:
    npz = make_zip({"a.npy": b"\x93NUMPY"})
    assert taken(unit, {"a.npz": npz, "test_a.py": TEST}) == {"a.npz": npz, "test_a.py": TEST}
    assert laid(intake(unit, Upload("a.npz", npz))) == {"a.npz": npz}


def test_no_test_at_all_is_graded_but_nothing_sent_is_refused(unit: Unit) -> None:
    assert intake(unit, Upload("helper.py", b"")).tests
    assert intake(unit, Upload("empty.zip", make_zip({}))).tests == ()
    assert intake(unit, Upload("empty.tar.gz", make_tar({}))).tests == ()
    error = refused(unit)
    assert (error.code, "-F tests=@" in error.message) == ("no_tests_sent", True)


def test_an_upload_named_twice_is_refused(unit: Unit) -> None:
    assert refused(unit, Upload("test_a.py", TEST), Upload("test_a.py", b"")).code == "duplicate_upload"


# -- layouts


@pytest.mark.parametrize(
    "where",
    [
        "",
        "python/tests/z1-double/",
        "tests/z1-double/",
        "z1-double/",
        "repo-main/python/tests/z1-double/",
        "Z1-Double/",
    ],
)
def test_tests_are_found_wherever_students_keep_them(unit: Unit, where: str) -> None:
    assert taken(unit, {f"{where}test_a.py": TEST, f"{where}sub/core.py": b""}) == {
        "test_a.py": TEST,
        "sub/core.py": b"",
    }


def test_of_a_whole_repository_only_the_units_tests_are_taken_with_one_note(unit: Unit) -> None:
    files = {
        "repo/python/tests/z1-double/test_a.py": TEST,
        "repo/python/tests/z0-other/test_b.py": TEST,
        "repo/python/tinyllm/demo/double.py": CODE,
        "repo/README": b"\xff",
        "repo/big.zip": b"PK\x03\x04",
    }
    submission = intake(unit, Upload("repo.zip", make_zip(files)))
    assert laid(submission) == {"test_a.py": TEST}
    assert len(submission.notes) == 1
    assert submission.notes[0].message.startswith("4 files: only repo/python/tests/z1-double/ was taken")


def test_two_folders_for_the_unit_are_refused(unit: Unit) -> None:
    files = {"a/tests/z1-double/test_a.py": TEST, "b/tests/z1-double/test_a.py": TEST}
    assert refused(unit, Upload("t.zip", make_zip(files))).code == "ambiguous_tests"


def test_a_wrapper_that_tests_import_by_name_stays(unit: Unit) -> None:
    files = {"tests/test_a.py": b"from tests.oracle import x\n", "tests/oracle.py": b"x = 1\n"}
    assert set(taken(unit, files)) == set(files)
    plain = {"tests/test_a.py": b"from oracle import x\n", "tests/oracle.py": b"x = 1\n"}
    assert set(taken(unit, plain)) == {"test_a.py", "oracle.py"}


def test_left_overs_are_dropped_with_one_note_for_each_kind(unit: Unit) -> None:
    junk = [
        "__MACOSX/t/._test_a.py", "t/.DS_Store", "t/Icon\r", "t/__pycache__/test_a.cpython-311.pyc", "t/old.pyc",
        "t/.git/config", "t/.git/hooks/x", "t/.venv/lib/numpy.py", "t/.pytest_cache/README.md", "t/.hypothesis/x",
        "t/test_a.py~", "t/.test_a.py.swp", "t/Thumbs.db", "t/desktop.ini", "t/.idea/x.xml", "t/pytest.ini",
        "t/tox.ini", "t/setup.cfg", "t/pyproject.toml", "t/sitecustomize.py", "t/usercustomize.py", "t/evil.pth",
        "t/report.pdf", "t/a.so",
    ]  # fmt: skip
    submission = intake(unit, Upload("t.zip", make_zip({"t/test_a.py": TEST, **dict.fromkeys(junk, b"x")})))
    assert laid(submission) == {"test_a.py": TEST}
    notes = told(submission)
    for part in (
        "4 files: has no effect here",
        "3 files: has no effect here",
        "macOS",
        "version control",
        "cache",
        "virtual",
    ):
        assert part in notes, part
    assert "\r" not in notes
    assert len(submission.notes) == len({(note.action, note.message) for note in submission.notes}) < len(junk) / 2


def test_links_in_a_virtual_environment_are_dropped_unread(unit: Unit) -> None:
    data = make_tar({"test_a.py": TEST}, extra=[tar_entry(".venv/bin/python", tarfile.SYMTYPE, "/usr/bin/python")])
    assert laid(intake(unit, Upload("t.tar.gz", data))) == {"test_a.py": TEST}


# -- names


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("../test_a.py", "path_traversal"),
        ("x/../../test_a.py", "path_traversal"),
        ("x\\..\\..\\test_a.py", "path_traversal"),
        ("__MACOSX/../../etc/passwd", "path_traversal"),
        ("/etc/test_a.py", "absolute_name"),
        ("\\\\server\\test_a.py", "absolute_name"),
        ("C:\\x\\test_a.py", "absolute_name"),
        ("c:test_a.py", "absolute_name"),
        ("test_\x1b[2J.py", "name_characters"),
        ("test_\u202egpj.py", "name_characters"),
        ("test_\u200b.py", "name_characters"),
        ("test_a\n.py", "name_characters"),
        ("a" * 300 + ".py", "name_too_long"),
        ("/".join("abcdefghijk") + ".py", "name_too_deep"),
        ("json.py", "shadows"),
        ("numpy.py", "shadows"),
        ("numpy/__init__.py", "shadows"),
        ("tinyllm/xfmr/sdpa.py", "shadows"),
        ("pytest.py", "shadows"),
        ("_pytest/x.py", "shadows"),
        ("hypothesis.py", "shadows"),
        ("sub/random.py", "shadows"),
        ("double.py", "unit_file_in_tests"),
        ("sub/double.py", "unit_file_in_tests"),
        ("more.zip", "nested_archive"),
        ("more.tar.gz", "nested_archive"),
    ],
)  # fmt: skip
def test_dangerous_names_are_refused_each_with_its_reason(unit: Unit, name: str, code: str) -> None:
    keep = {"test_keep.py": TEST}
    uploads = [Upload("t.zip", make_zip({name: b"", **keep})), Upload("t.tar", make_tar({name: b"", **keep}, "w"))]
    for upload in uploads:
        assert refused(unit, upload).code == code


@pytest.mark.parametrize("name", ["../test_a.py", "/test_a.py", "test_\u202e.py", "json.py", "double.py"])
def test_names_of_single_uploads_are_trusted_no_more(unit: Unit, name: str) -> None:
    assert refused(unit, Upload("test_b.py", TEST), Upload(name, b"")).code


def test_a_nul_in_a_zip_name_does_not_hide_what_follows(unit: Unit) -> None:
    assert refused(unit, Upload("t.zip", raw_zip((b"test_a.py\0.txt", b"")))).code == "name_characters"


def test_a_module_inside_a_package_shadows_nothing(unit: Unit) -> None:
    files = {"pkg/__init__.py": b"", "pkg/json.py": b"", "test.py": b"", "test_a.py": TEST, "conftest.py": b""}
    assert set(taken(unit, files)) == set(files)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("test_a.py", "Test_A.py"),
        ("test_\u00e9.py", "test_e\u0301.py"),
        ("x/test_a.py", "x\\test_a.py"),
        ("test_ß.py", "test_ss.py"),
        ("./test_a.py", "test_a.py"),
        ("a.txt", "a.txt/test_a.py"),
    ],
)  # fmt: skip
def test_two_files_that_become_one_are_refused(unit: Unit, first: str, second: str) -> None:
    pair = ((first.encode(), b"1"), (second.encode(), b"2"))
    assert refused(unit, Upload("t.zip", raw_zip(*pair, flags=0x800))).code == "same_name"


def test_files_of_two_uploads_may_not_become_one_either(unit: Unit) -> None:
    archive = Upload("t.zip", make_zip({"wrap/test_a.py": TEST}))
    assert refused(unit, archive, Upload("test_a.py", TEST)).code == "same_name"


@pytest.mark.parametrize(
    ("raw", "flags", "extra", "name"),
    [
        ("test_é.py".encode(), 0x800, b"", "test_é.py"),
        ("test_é.py".encode("cp437"), 0, b"", "test_é.py"),
        ("test_é.py".encode(), 0, b"", "test_é.py"),  # macOS: UTF-8 without the flag
        (unicodedata.normalize("NFD", "test_é.py").encode(), 0, b"", "test_é.py"),
        (b"test_\x82.py", 0, unicode_path(b"test_\x82.py", "test_ж.py"), "test_ж.py"),
        (b"test_\x82.py", 0, unicode_path(b"test_\x82.py", "test_ж.py", crc=1), "test_é.py"),
        (b"test_\x82.py", 0, b"\x75\x70\x01\x00\x01", "test_é.py"),
        (b"sub\\test_a.py", 0, b"", "sub/test_a.py"),
    ],
)
def test_zip_names_are_read_in_the_encoding_they_were_written_in(
    unit: Unit, raw: bytes, flags: int, extra: bytes, name: str
) -> None:
    archive = raw_zip((raw, TEST), (b"conftest.py", b""), flags=flags, extra=extra)
    assert set(laid(intake(unit, Upload("t.zip", archive)))) == {name, "conftest.py"}


def test_a_name_that_claims_utf8_and_is_not_is_refused(unit: Unit) -> None:
    assert refused(unit, Upload("t.zip", raw_zip((b"test_\xff.py", TEST), flags=0x800))).code == "bad_name"


def test_a_tar_name_in_no_known_encoding_is_refused(unit: Unit) -> None:
    archive = make_tar({"test_\udcff.py": TEST}, "w")
    assert refused(unit, Upload("t.tar", archive)).code == "bad_name"


PART = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\\"), min_size=1, max_size=8)


@given(path=st.lists(PART, min_size=1, max_size=5).map("/".join), form=st.sampled_from(["zip", "tar", "single"]))
def test_any_name_is_taken_clean_or_refused(unit: Unit, path: str, form: str) -> None:
    uploads = {
        "zip": lambda: Upload("t.zip", raw_zip(((path + ".py").encode(), TEST), flags=0x800)),
        "tar": lambda: Upload("t.tar", make_tar({path + ".py": TEST}, "w")),
        "single": lambda: Upload(path + ".py", TEST),
    }
    try:
        submission = intake(unit, uploads[form]())
    except Rejected as error:
        assert error.path.isprintable()
        assert all(char.isprintable() for char in error.message)
        return
    for file in submission.tests:
        parts = file.path.split("/")
        assert file.path.isprintable()
        assert not {"", ".", ".."} & set(parts)
        assert file.path == unicodedata.normalize("NFC", file.path)
    assert all(note.message.isprintable() and note.path.isprintable() for note in submission.notes)


# -- what is no file


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_links_in_a_tar_are_refused(unit: Unit, kind: bytes) -> None:
    archive = make_tar({"test_a.py": TEST}, extra=[tar_entry("test_b.py", kind, "test_a.py")])
    assert refused(unit, Upload("t.tar.gz", archive)).code == "link"


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"Q"])
def test_devices_and_pipes_in_a_tar_are_refused(unit: Unit, kind: bytes) -> None:
    archive = make_tar({"test_a.py": TEST}, extra=[tar_entry("test_b.py", kind)])
    assert refused(unit, Upload("t.tar.gz", archive)).code in ("special_file",)


@pytest.mark.parametrize(
    ("mode", "code"), [(stat.S_IFLNK, "link"), (stat.S_IFIFO, "special_file"), (stat.S_IFCHR, "special_file")]
)
def test_links_and_devices_in_a_zip_are_refused(unit: Unit, mode: int, code: str) -> None:
    archive = raw_zip((b"test_a.py", b"/etc/passwd"), mode=mode | 0o777)
    assert refused(unit, Upload("t.zip", archive)).code == code


# -- sizes


def test_limits_are_each_refused_with_their_own_code(unit: Unit) -> None:
    noise = random.Random(0).randbytes(50_000)
    cases: list[tuple[Content, str]] = [
        ({"test_a.py": b"#" * 2_001}, "file_too_large"),
        ({"a.bin": noise[:4_001]}, "file_too_large"),
        ({f"a{index}.bin": noise[:3_000] for index in range(3)}, "total_too_large"),
        ({f"a{index}.txt": b"" for index in range(11)}, "too_many_files"),
        ({f"__pycache__/{index}": b"" for index in range(51)}, "too_many_files"),
        ({"a.bin": noise}, "upload_too_large"),
    ]
    for files, code in cases:
        assert refused(unit, Upload("t.zip", make_zip(files)), limits=SMALL).code == code
    tar = make_tar({f"__pycache__/{index}": b"" for index in range(51)})
    assert refused(unit, Upload("t.tgz", tar), limits=SMALL).code in ("too_many_files", "archive_bomb")


def test_limits_themselves_are_allowed(unit: Unit) -> None:
    files = {"test_a.py": b"#" * 2_000, "a.bin": b"\xff" * 4_000, "b.bin": b"\xff" * 2_000}
    assert taken(unit, files, SMALL) == files


def test_bombs_are_stopped_while_they_unpack(unit: Unit) -> None:
    zeros = b"\0" * 10_000_000
    assert refused(unit, Upload("t.tar.gz", gzip.compress(zeros)), limits=SMALL).code == "archive_bomb"
    assert refused(unit, Upload("t.tar.gz", make_tar({"a.bin": zeros})), limits=SMALL).code == "archive_bomb"
    both = [Upload(f"{n}.zip", make_zip({f"{n}{m}.txt": b"a" * 4_000 for m in range(9)})) for n in range(2)]
    assert refused(unit, *both, limits=IntakeLimits(expanded_bytes=60_000)).code == "archive_bomb"


def test_many_gzip_members_share_one_budget(unit: Unit) -> None:
    members = gzip.compress(b"\0" * 30_000) * 3
    assert refused(unit, Upload("t.tar.gz", members), limits=SMALL).code == "archive_bomb"


@pytest.mark.parametrize("stated", [0, 1, 10, 2**31])
def test_sizes_in_headers_are_not_believed(unit: Unit, stated: int) -> None:
    archive = raw_zip((b"test_a.py", b"# padding\n" * 10), method=8, stated_size=stated)
    assert refused(unit, Upload("t.zip", archive)).code == "corrupt_archive"


def test_a_zip_whose_entries_share_their_bytes_is_counted_in_full(unit: Unit) -> None:
    archive = make_zip({f"t{index:05}.txt": b"a" * 3_000 for index in range(40)})
    assert refused(unit, Upload("t.zip", archive), limits=IntakeLimits(expanded_bytes=60_000)).code == "archive_bomb"


# -- what is no archive


def test_encryption_and_rare_compression_are_refused(unit: Unit) -> None:
    entry = (b"test_a.py", TEST)
    assert refused(unit, Upload("t.zip", raw_zip(entry, flags=1))).code == "encrypted"
    assert refused(unit, Upload("t.zip", raw_zip(entry, method=99))).code == "unsupported_compression"
    assert refused(unit, Upload("t.zip", make_zip({"a.py": TEST}, zipfile.ZIP_LZMA))).code == "unsupported_compression"
    assert refused(unit, Upload("t.tar.bz2", make_tar({"a.py": TEST}, "w:bz2"))).code == "unsupported_archive"
    assert refused(unit, Upload("t.tar.xz", make_tar({"a.py": TEST}, "w:xz"))).code == "unsupported_archive"


@pytest.mark.parametrize("name", ["t.zip", "t.tar.gz", "t.tar", "tests", "tests.pdf"])
def test_what_is_no_archive_is_refused(unit: Unit, name: str) -> None:
    assert refused(unit, Upload(name, b"hello")).code == "not_an_archive"
    assert refused(unit, Upload(name, b"")).code == "not_an_archive"


def test_archives_inside_archives_are_refused_also_under_another_name(unit: Unit) -> None:
    inner = make_zip({"test_a.py": TEST})
    for name in ("inner.zip", "inner.txt", "test_a.py"):
        assert refused(unit, Upload("t.zip", make_zip({name: inner, "test_b.py": TEST}))).code == "nested_archive"
    assert refused(unit, Upload("t.gz", gzip.compress(inner))).code == "nested_archive"
    assert refused(unit, Upload("t.gz", gzip.compress(gzip.compress(b"x")))).code == "nested_archive"
    assert refused(unit, Upload("t.gz", gzip.compress(TEST))).code == "not_an_archive"


WHOLE = [
    make_zip({"test_a.py": TEST * 20, "b/c.txt": bytes(range(256)) * 4}),
    make_tar({"test_a.py": TEST * 20, "b/c.txt": bytes(range(256)) * 4}),
    make_tar({"test_a.py": TEST * 20, "b/c.txt": bytes(range(256)) * 4}, "w"),
]


@given(which=st.integers(0, 2), data=st.data())
def test_a_cut_archive_is_refused_or_complete(unit: Unit, which: int, data: st.DataObject) -> None:
    whole = WHOLE[which]
    cut = data.draw(st.integers(0, len(whole) - 1))
    try:
        submission = intake(unit, Upload("t.tar.gz", whole[:cut]))
    except Rejected:
        return
    # What follows the first zero block of a tar is padding.
    assert which == 2
    assert laid(submission) == laid(intake(unit, Upload("t", whole)))


@given(which=st.integers(0, 2), flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), max_size=4))
def test_a_damaged_archive_never_raises_anything_else(unit: Unit, which: int, flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(WHOLE[which])
    for position, value in flips:
        damaged[position % len(damaged)] ^= value
    try:
        intake(unit, Upload("t.zip", bytes(damaged)))
    except Rejected as error:
        assert error.code


@given(st.binary(max_size=2_000))
def test_any_bytes_are_taken_or_refused(unit: Unit, data: bytes) -> None:
    for prefix in (b"", b"PK\x03\x04", b"\x1f\x8b\x08"):
        try:
            intake(unit, Upload("t.zip", prefix + data))
        except Rejected as error:
            assert error.code


def test_a_sparse_tar_file_is_not_expanded(unit: Unit) -> None:
    info = tar_entry("test_a.py", tarfile.GNUTYPE_SPARSE)
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[386:410] = b"00000000000\x0000000000000\x00"
    block[483:495] = b"77777777777\x00"
    block[148:156] = b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    assert refused(unit, Upload("t.tar", bytes(block) + b"\0" * 1024)).code == "special_file"


def test_long_and_accented_names_are_read_from_every_tar_format(unit: Unit) -> None:
    files = {f"{'long-folder-name/' * 7}test_é.py": TEST, "test_a.py": TEST, f"{'x' * 110}.txt": b"1"}
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        assert laid(intake(unit, Upload("t.tar", buffer.getvalue()))) == files


def test_a_prefixed_ustar_name_is_put_together(unit: Unit) -> None:
    name = f"{'folder/' * 2}{'n' * 95}.py"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo(name))
        archive.addfile(tarfile.TarInfo("test_a.py"))
    assert set(laid(intake(unit, Upload("t.tar", buffer.getvalue())))) == {name, "test_a.py"}


def test_an_extension_header_of_digits_takes_no_quadratic_time(unit: Unit) -> None:
    info = tar_entry("x", tarfile.XHDTYPE)
    info.size = 4_000_000
    archive = info.tobuf(tarfile.GNU_FORMAT) + b"1" * 4_000_000
    assert refused(unit, Upload("t.tar", archive.ljust(4_001_024, b"\0"))).code == "corrupt_archive"


@pytest.mark.parametrize(
    "record", [b"8 path=a\n", b"-1 path=a\n", b"x", b"11 path=a\n", b"11 size=-5\n", b"0 \n", b"\0"]
)
def test_malformed_extension_records_are_refused(unit: Unit, record: bytes) -> None:
    info = tar_entry("x", tarfile.XHDTYPE)
    info.size = len(record)
    after = tarfile.TarInfo("test_a.py").tobuf(tarfile.GNU_FORMAT)
    archive = info.tobuf(tarfile.GNU_FORMAT) + record.ljust(512, b"\0") + after + b"\0" * 1024
    assert refused(unit, Upload("t.tar", archive)).code == "corrupt_archive"


def test_a_chain_of_long_name_headers_is_bounded(unit: Unit) -> None:
    buffer = io.BytesIO()
    for _ in range(3_000):
        info = tar_entry("././@LongLink", tarfile.GNUTYPE_LONGNAME)
        info.size = 5
        buffer.write(info.tobuf(tarfile.GNU_FORMAT) + b"abcd\0".ljust(512, b"\0"))
    assert refused(unit, Upload("t.tar", buffer.getvalue())).code == "corrupt_archive"
