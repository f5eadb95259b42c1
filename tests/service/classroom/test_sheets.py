import csv
import io

import pytest

from service.classroom import sheets
from tests.service.classroom import klass
from tests.service.classroom.klass import asked

HOSTILE = '=HYPERLINK("https://example.org")'


@pytest.fixture
def bench(make_bench):
    bench = klass.a_class(make_bench)
    tests = [klass.rejecting("test_b.py::test_x"), klass.rejecting("test_b.py::test_y")]
    klass.submit(bench, HOSTILE, klass.fails(failed=["test_zero"], survived=["s01"], tests=tests))
    klass.submit(bench, "zoë", klass.Says())
    return bench


def sheet(bench, question):
    answer = bench.get(f"{klass.PATH}/{question}", "teacher")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"].startswith('attachment; filename="default-L0.0-')
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))


def test_a_sheet_begins_with_a_mark_by_which_spreadsheets_read_utf_8(bench):
    content = bench.get(f"{klass.PATH}/students?format=csv", "teacher").content
    assert content.startswith("\ufeffstudent,".encode())
    assert "zoë".encode() in content


@pytest.mark.parametrize(
    "question", ["overview?", "tests?", "mutants?", "mutants?table=matrix&", "misconceptions?", "students?"]
)
def test_no_cell_is_one_that_a_spreadsheet_computes(bench, question):
    rows = sheet(bench, f"{question}format=csv")
    assert rows
    for row in rows:
        for cell in (*row, *row.values()):
            assert not cell.startswith(("=", "+", "@", "\t", "\r")), cell
            assert not cell.startswith("-") or cell.lstrip("-").replace(".", "").isdigit()


def test_students_are_told_with_all_columns(bench):
    hostile, zoë = sheet(bench, "students?format=csv&sort=score")
    assert tuple(zoë) == sheets.STUDENTS
    assert hostile["student"] == f"'{HOSTILE}"
    assert (hostile["latest_verdict"], hostile["tests_passed"], hostile["rejecting"]) == ("fail", "3", "2")
    assert (zoë["state"], zoë["latest_score"], zoë["best_score"]) == ("passed", "1.0", "1.0")


def test_a_sheet_holds_all_pages(bench):
    assert len(sheet(bench, "students?format=csv&limit=1")) == 2
    assert len(sheet(bench, "mutants?format=csv&table=matrix&limit=1")) == 2


def test_the_matrix_has_a_column_for_each_mutant(bench):
    hostile, zoë = sheet(bench, "mutants?format=csv&table=matrix")
    assert [hostile[mid] for mid in klass.MUTANTS] == [".", "K", "K", "K"]
    assert zoë["killed"] == "4"


def test_tests_and_mutants_are_told_with_every_outcome(bench):
    zero = sheet(bench, "tests?format=csv")[3]
    assert (zero["id"], zero["passed"], zero["failed"], zero["timeout"], zero["stuck"]) == (
        "test_zero",
        "1",
        "1",
        "0",
        "1",
    )
    first = sheet(bench, "mutants?format=csv")[0]
    assert (first["id"], first["killed"], first["survived"], first["void"]) == ("s01", "1", "1", "0")


def test_every_student_with_a_misconception_has_a_row(bench):
    code, row = sheet(bench, "misconceptions?format=csv&who=0")
    assert (code["key"], code["in_code"], code["tests"]) == ("fault:m02", "True", "")
    assert (row["key"], row["student"]) == ("unknown", f"'{HOSTILE}")
    assert row["tests"] == "test_b.py::test_x\ntest_b.py::test_y"


def test_the_series_is_told_by_its_steps(bench):
    rows = sheet(bench, "overview?format=csv&by=day")
    told = asked(bench, "overview?by=day")["series"]
    assert [int(row["submissions"]) for row in rows] == [point["submissions"] for point in told] == [2]
