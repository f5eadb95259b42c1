from dataclasses import replace

import pytest

from grader.submission import Upload
from grader.unit import Course, UnitFile
from service import posted, tables
from service.problems import Problem
from service.upload import Form
from service.worker import FakeGrading
from tests.service import samples

PATH = "/v1/units/L0.0/submissions"


def send(bench, files, data=None, who="ada", query=""):
    return bench.client.request("POST", PATH + query, headers=bench.auth(who), files=files, data=data or {})


def body(parts, boundary="frontier"):
    """A multipart body, by hand."""
    lines = []
    for head, content in parts:
        lines.append(f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n")
    return b"".join(lines) + f"--{boundary}--\r\n".encode()


def send_raw(bench, content, content_type="multipart/form-data; boundary=frontier", **headers):
    return bench.client.request(
        "POST", PATH, headers={**bench.auth("ada"), "Content-Type": content_type, **headers}, content=content
    )


GOOD = body([('name="twice"; filename="twice.py"', samples.SOURCE), ('name="tests"; filename="test_a.py"', b"")])


def test_a_body_made_by_hand_is_taken_in(bench):
    assert send_raw(bench, GOOD).status_code == 202


def test_a_body_that_ends_too_early_is_not_taken_for_a_smaller_one(bench):
    whole = GOOD[:-2]
    parts = body([('name="tests"; filename="test_b.py"', b"x = 1")])
    for cut in (whole.removesuffix(b"--"), whole.removesuffix(b"--") + parts[12:40], GOOD[:90], b""):
        answer = send_raw(bench, cut)
        assert (answer.status_code, answer.json()["code"]) == (400, "upload_broken"), cut
    assert bench.rows(tables.submissions) == []


def test_what_follows_the_last_part_does_not_matter(bench):
    assert send_raw(bench, GOOD + b"\r\nan epilogue\r\n").status_code == 202
    assert send_raw(bench, GOOD[:-2], 'Multipart/Form-Data; Boundary="frontier"').status_code == 202


def test_a_refused_upload_is_a_422_with_intakes_code_and_path_and_nothing_is_stored(bench):
    answer = send(bench, [("twice", ("twice.py", b"\xff")), ("tests", ("test_a.py", b""))])
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == f"/problems/{problem['code']}"
    assert problem["path"] == "twice.py"
    assert problem["message"] == problem["detail"] != ""
    for table in (tables.submissions, tables.runs, tables.files, tables.blobs):
        assert bench.rows(table) == []
    assert bench.queue.submitted == []


def test_an_archive_that_climbs_out_is_refused(bench, tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../test_a.py", "")
    data = (tmp_path / "a.zip").read_bytes()
    answer = send(bench, [("twice", ("twice.py", samples.SOURCE)), ("tests", ("a.zip", data))])
    assert answer.status_code == 422
    assert "test_a.py" in answer.json()["path"]


@pytest.mark.parametrize(
    ("files", "code", "named"),
    [
        ([("tests", ("test_a.py", b""))], "missing_file", "twice"),
        ([("twice", ("twice.py", b""))], "no_tests_sent", "tests"),
        ([("twice", ("a.py", b"")), ("twice", ("b.py", b"")), ("tests", ("t.py", b""))], "repeated_field", "twice"),
        ([("twice", ("a.py", b"")), ("tests", ("t.py", b"")), ("mha", ("b.py", b""))], "unknown_field", "mha"),
    ],
)
def test_a_wrong_set_of_files_is_answered_with_the_field_and_the_command_to_paste(bench, files, code, named):
    answer = send(bench, files)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert named in answer.json()["message"]
    curl = answer.json()["curl"]
    assert "-F twice=@twice.py -F tests=@tests.zip" in curl
    assert "http://grader.example/v1/units/L0.0/submissions" in curl


def test_a_file_sent_as_text_is_told_to_put_an_at_sign(bench):
    answer = send(bench, [("tests", ("test_a.py", b""))], {"twice": "twice.py"})
    assert (answer.status_code, answer.json()["code"]) == (422, "file_as_text")
    assert "@" in answer.json()["message"]


@pytest.mark.parametrize("value", ["a" * 129, "a\x00b", "a\nb", "\x1b[31m", "a\u202eb"])
def test_a_students_name_is_short_and_printable(bench, value):
    files = [("twice", ("twice.py", samples.SOURCE)), ("tests", ("test_a.py", b""))]
    answer = send(bench, files, {"student": value}, who="teacher")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_field")


def test_an_unknown_course_is_refused_and_nothing_stored(bench):
    answer = bench.post("ada", course="spring")
    assert (answer.status_code, answer.json()["code"]) == (422, "course_unknown")
    assert bench.rows(tables.submissions) == []


def test_an_unknown_unit_is_a_404_that_names_the_units_there_are(bench):
    answer = bench.client.request("POST", "/v1/units/L9.9/submissions", headers=bench.auth("ada"), **samples.form())
    assert (answer.status_code, answer.json()["code"]) == (404, "unit_unknown")
    assert "L0.0" in answer.json()["message"]


@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded", ""])
def test_another_content_type_is_a_415(bench, content_type):
    answer = send_raw(bench, b"{}", content_type)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        GOOD[:-20],
        GOOD.replace(b"name=", b"nome="),
        body([(f'name="f{i}"', b"") for i in range(100)]),
        body([('name="student"', b"x" * 2**17)]),
    ],
)
def test_a_broken_body_is_a_problem_of_the_clients(bench, content):
    answer = send_raw(bench, content)
    assert answer.status_code in (400, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert bench.rows(tables.submissions) == []


def test_a_multipart_type_without_boundary_is_a_400(bench):
    assert send_raw(bench, GOOD, "multipart/form-data").status_code == 400


def test_a_body_over_the_limit_is_a_413_by_its_declared_length(make_bench):
    bench = make_bench(max_body_bytes=1000)
    answer = send_raw(bench, b"x" * 1001)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_a_body_over_the_limit_is_a_413_as_it_streams_and_the_rest_is_not_read(make_bench):
    bench = make_bench(max_body_bytes=10_000)
    sent = 0

    async def endless():
        nonlocal sent
        yield body([('name="twice"; filename="twice.py"', b"")])[: -len("\r\n--frontier--\r\n")]
        while True:
            sent += 1000
            yield b"x" * 1000

    answer = send_raw(bench, endless())
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert sent <= 20_000


def test_an_upload_that_takes_too_long_is_a_408(make_bench):
    import asyncio

    bench = make_bench(max_upload_seconds=0.05)

    async def slow():
        yield GOOD[:50]
        await asyncio.sleep(30)
        yield GOOD[50:]

    answer = send_raw(bench, slow())
    assert (answer.status_code, answer.json()["code"]) == (408, "upload_too_slow")


def test_repeated_test_files_are_all_taken(bench):
    files = [
        ("twice", ("twice.py", samples.SOURCE)),
        ("tests", ("test_a.py", samples.TESTS)),
        ("tests", ("conftest.py", b"# nothing\n")),
    ]
    assert send(bench, files).status_code == 202
    assert {row.path for row in bench.rows(tables.files) if row.kind == "test"} == {"test_a.py", "conftest.py"}


def test_the_same_bytes_are_stored_once(bench):
    bench.submitted("ada")
    count = len(bench.rows(tables.blobs))
    bench.submitted("bob")
    assert len(bench.rows(tables.blobs)) == count == 2
    assert len(bench.rows(tables.files)) == 4


def test_a_field_may_have_the_other_name_that_a_unit_gives_its_file():
    unit = samples.course().units["L0.0"]
    (path,) = [file.path for file in unit.files]
    unit = replace(unit, aliases={"adapters.py": path})
    tests = (Upload("test_a.py", samples.TESTS),)
    taken = posted.taken_in(unit, Form({"adapters": (Upload("adapters.py", samples.SOURCE),), "tests": tests}, {}), "")
    assert taken.files == {path: samples.SOURCE}
    both = {"adapters": (Upload("a.py", b""),), "twice": (Upload("b.py", b""),), "tests": tests}
    with pytest.raises(Problem) as refused:
        posted.taken_in(unit, Form(both, {}), "")
    assert refused.value.code == "repeated_field"


def test_of_two_files_the_one_that_is_missing_is_named_and_both_are_stored(make_bench):
    other = UnitFile("python/tinyllm/demo/thrice.py", "tinyllm.demo.thrice", b"def thrice(x): ...\n")
    unit = replace(samples.unit(), files=(*samples.unit().files, other))
    bench = make_bench(Course({unit.id: unit}, (), "0" * 64))
    files = [("twice", ("twice.py", samples.SOURCE)), ("tests", ("test_a.py", samples.TESTS))]
    answer = send(bench, files)
    assert (answer.status_code, answer.json()["code"]) == (422, "missing_file")
    assert "lacks the file field 'thrice'. " in answer.json()["detail"]
    assert "-F twice=@twice.py -F thrice=@thrice.py" in answer.json()["curl"]
    assert bench.rows(tables.submissions) == []
    assert send(bench, [*files, ("thrice", ("thrice.py", other.reference))]).status_code == 202
    seen = []

    def grade(unit, submission, about, progress):
        seen.append(submission)
        return samples.report(about)

    bench.graded(bench.worker(FakeGrading(grade)))
    assert seen[0].files == {samples.PATH: samples.SOURCE, other.path: other.reference}
