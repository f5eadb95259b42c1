"""Whatever is uploaded: a submission that keeps every promise of `Submission` leaves, or Rejected; nothing else."""

import gzip
import io
import tracemalloc
import zipfile

from hypothesis import example, given
from hypothesis import strategies as st

from grader.errors import Rejected
from grader.intake import IntakeLimits, take_in
from grader.names import collision_key
from grader.submission import Submission, Upload
from tests.fuzzing import damaged, fuzzed
from tests.grader.archive_makers import Content, make_tar, make_zip, raw_zip, tar_entry
from tests.service.samples import SOURCE, unit

FILES: Content = {
    "tests/test_a.py": b"def test_a():\n    assert True\n",
    "tests/deep/er/test_b.py": "# größe\r\n".encode(),
    "tests/data.json": b"{}" * 50,
    "tests/__pycache__/x.pyc": b"\0",
}
LIMITS = IntakeLimits(
    upload_bytes=2**18,
    expanded_bytes=2**20,
    members=200,
    source_bytes=2**14,
    data_bytes=2**15,
    total_bytes=2**17,
    files=20,
)
MOST_MEMORY = 16 * 2**20  # a few times what may be decompressed
ARCHIVES = [
    make_zip(FILES),
    make_zip(FILES, zipfile.ZIP_STORED),
    make_zip({"b.bin": bytes(2**21)}),
    make_tar(FILES),
    make_tar(FILES, "w"),
    make_tar(FILES, "w", [tar_entry("link.py", b"2", "/etc/passwd"), tar_entry("dev", b"3")]),
    raw_zip((b"a.py", b"x = 1\n"), (b"A.py", b"x = 2\n")),
    raw_zip((b"t\x81st.py", b"x = 1\n"), flags=0x800),
    raw_zip((b"a.py", bytes(100_000)), method=8, stated_size=10),
    gzip.compress(gzip.compress(make_tar(FILES, "w"))),
]  # fmt: skip


def taken(uploads: list[Upload], mha: bytes = SOURCE) -> Submission | None:
    tracemalloc.start()
    try:
        return take_in(unit(), {"twice": Upload("twice.py", mha)}, uploads, LIMITS)
    except Rejected as refusal:
        assert refusal.code and refusal.message and refusal.message.isprintable()
        assert refusal.path.isprintable()
        return None
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MOST_MEMORY


def assert_keeps_promises(submission: Submission | None) -> None:
    if submission is None:
        return
    paths = [file.path for file in submission.tests]
    assert paths == sorted(paths) and len(paths) <= LIMITS.files
    assert sum(len(file.data) for file in submission.tests) <= LIMITS.total_bytes
    keys = {collision_key(tuple(path.split("/"))) for path in paths}
    assert len(keys) == len(paths)
    for path, file in zip(paths, submission.tests, strict=True):
        parts = path.split("/")
        assert path.isprintable() and not path.startswith("/") and "\\" not in path
        assert not {"", ".", ".."} & set(parts)
        assert not any(collision_key(tuple(parts[:length])) in keys for length in range(1, len(parts)))
        path.encode("utf-8")
        if path.endswith(".py"):
            assert "\r\n" not in file.data.decode("utf-8") and not file.data.startswith(b"\xef\xbb\xbf")
    for source in submission.files.values():
        source.decode("utf-8")
    assert all(note.path.isprintable() and note.message.isprintable() for note in submission.notes)


@fuzzed(400)
@given(damaged(ARCHIVES), st.sampled_from(["tests.zip", "tests.tar.gz", "tests", "t.tar", "x.py", "data.npz"]))
@example(make_zip({"__init__.py/x.py": b"", "__init__.py": b""}), "tests.zip")
@example(make_zip({"CON": b"", "a.py:x": b""}), "tests.zip")
@example(b"PK\x05\x06" + bytes(18), "tests.zip")
@example(b"\x1f\x8b" + bytes(30), "tests.tar.gz")
def test_archives(data: bytes, name: str) -> None:
    assert_keeps_promises(taken([Upload(name, data)]))


ODD = st.text(st.sampled_from("aA.ßéﬁİ/\\:\0\u202e\ud800 \n*~-_é1"), max_size=12)
ENDINGS = st.sampled_from(["", ".py", ".json", "/test_a.py", ".pyc"])
NAMES = st.builds(lambda stem, end: stem + end, ODD | st.text(max_size=8), ENDINGS)


@fuzzed(400)
@given(st.lists(st.tuples(NAMES, st.binary(max_size=20)), min_size=1, max_size=4))
@example([("a.py", b""), ("A.py", b"")])
@example([("stra\u00dfe.py", b""), ("STRASSE.py", b"")])
@example([("e\u0301.py", b""), ("\u00e9.py", b"")])
@example([("../a.py", b"")])
@example([("a/../../b.py", b"")])
@example([("C:a.py", b"")])
@example([("1:.py", b"")])  # no drive, and no harm
@example([("x" * 5000, b"")])
def test_names(files: list[tuple[str, bytes]]) -> None:
    assert_keeps_promises(taken([Upload(name, data) for name, data in files]))


@fuzzed(300)
@given(st.lists(st.tuples(NAMES, st.binary(max_size=20)), min_size=1, max_size=4))
def test_names_inside_an_archive(files: list[tuple[str, bytes]]) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in files:
            info = zipfile.ZipInfo("x")
            info.filename = name.encode("utf-8", "replace").decode("utf-8") or "x"
            archive.filelist = [known for known in archive.filelist if known.filename != info.filename]
            archive.NameToInfo.pop(info.filename, None)
            archive.writestr(info, data)
    assert_keeps_promises(taken([Upload("tests.zip", stream.getvalue())]))


SOURCES = [
    SOURCE,
    b"\xef\xbb\xbf" + SOURCE,
    SOURCE.replace(b"\n", b"\r\n"),
    "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
    SOURCE.decode().encode("utf-16"),
]


@fuzzed(300)
@given(damaged(SOURCES))
def test_encodings_of_the_unit_s_file(data: bytes) -> None:
    submission = taken([Upload("test_a.py", b"def test_a(): pass\n")], data)
    assert_keeps_promises(submission)
