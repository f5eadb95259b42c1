import csv
import stat

import pytest
from click.testing import CliRunner

from service import spreadsheet
from service.cli import main
from service.database import reading, writing
from service.tables import courses

pytestmark = pytest.mark.both_databases


@pytest.fixture
def export(bench, tmp_path, monkeypatch):
    """The rows of the CSV, and the file."""
    monkeypatch.setenv("AUTOGRADER_DATABASE_URL", bench.settings.url)

    def export(*words):
        file = tmp_path / "grades.csv"
        result = CliRunner().invoke(main, ["export", str(file), *words, "--data", str(bench.settings.data)])
        assert result.exit_code == 0, result.output
        with file.open(encoding="utf-8-sig", newline="") as source:
            return list(csv.DictReader(source)), file

    return export


def test_every_student_has_a_row_with_the_grade_that_counts(bench, export):
    graded = bench.submitted("zoë")
    bench.graded()
    bench.submitted("ada")
    rows, _ = export()
    ada, zoe = rows
    assert (ada["student"], ada["submission"], ada["score"], ada["pending"]) == ("ada", "", "", "1")
    assert (zoe["student"], zoe["submission"], zoe["verdict"]) == ("zoë", graded, "pass")
    assert float(zoe["final_score"]) == 1.0


@pytest.mark.parametrize("name", ["=1+1", "+49", "-2", "@SUM(A1)", '=HYPERLINK("x")'])
def test_no_name_becomes_a_formula(bench, export, name):
    bench.submitted("lms", student=name)
    (row,), file = export()
    assert row["student"] == f"'{name}"
    assert not [line for line in file.read_text(encoding="utf-8-sig").splitlines() if line.lstrip('"')[0] in "=+-@"]


def test_a_large_class_is_written_to_its_end(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(spreadsheet, "STUDENTS_AT_A_TIME", 2)
    for number in range(5):
        bench.submitted("lms", student=f"s{number}")
    with reading(bench.engine) as connection, (tmp_path / "x").open("w") as target:
        assert spreadsheet.write(connection, "default", target) == 5


def test_only_the_course_that_was_asked_for_is_written_for_its_owner_alone(bench, export):
    with writing(bench.engine) as connection:
        connection.execute(courses.insert().values(id="other", title="", created_at=0))
    bench.submitted("ada")
    bench.submitted("bob", course="other")
    rows, file = export("--course", "other")
    assert [row["student"] for row in rows] == ["bob"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_course_that_is_not_there_is_said_in_words(tmp_path):
    file = tmp_path / "x.csv"
    result = CliRunner().invoke(main, ["export", str(file), "--course", "none", "--data", str(tmp_path)])
    assert result.exit_code == 1 and "no course" in result.output
    assert not file.exists()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("ada;=1+1;", "ada;'=1+1;"),
        ("test_a\n@SUM(A1)", "test_a\n'@SUM(A1)"),
        ("late; -10 points", "late; -10 points"),
        ("a-b;c", "a-b;c"),
    ],
)
def test_no_cell_is_a_formula_wherever_the_spreadsheet_ends_cells(text, shown):
    assert spreadsheet.as_text(text) == shown
