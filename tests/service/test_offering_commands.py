import json

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from service import database, tables
from service.cli import main
from service.settings import Settings


@pytest.fixture
def run(tmp_path):
    def run(*words):
        return CliRunner().invoke(main, ["offering", *words, "--data", str(tmp_path)])

    assert run("set", "autumn", "--title", "Autumn", "--timezone", "Europe/Berlin").exit_code == 0
    return run


def audited(folder):
    engine = database.open_engine(Settings(data=folder, course=folder).url)
    try:
        with database.reading(engine) as connection:
            return [(row.action, row.token) for row in connection.execute(sa.select(tables.audit))]
    finally:
        engine.dispose()


def test_a_course_its_unit_and_an_extension_are_set_up_and_written_down(run, tmp_path):
    words = ("--due", "2026-10-25T23:59", "--penalty", "0.1", "--cap", "0.5", "--attempts", "20", "--per-hour", "4")
    asked = json.loads(run("unit", "autumn", "L5.3", *words).output)
    assert (asked["due_at"], asked["attempts"]) == ("2026-10-25T23:59:00+01:00", 20)
    assert (asked["late_policy"]["penalty"], asked["late_policy"]["cap"]) == (0.1, 0.5)
    granted = json.loads(run("extend", "autumn", "L5.3", "ada", "--due", "2026-11-02T12:00", "--reason", "ill").output)
    assert (granted["student"], granted["due_at"]) == ("ada", "2026-11-02T12:00:00+01:00")
    assert '"due_at": "2026-10-25T23:59:00+01:00"' in run("list").output
    assert run("extend", "autumn", "L5.3", "ada", "--withdraw").exit_code == 0
    assert audited(tmp_path) == [
        ("course.create", None),
        ("assignment.update", None),
        ("extension.grant", None),
        ("extension.withdraw", None),
    ]


def test_limits_on_hints_are_the_usual_ones_others_or_none(run):
    def hints(*words):
        asked = json.loads(run("unit", "autumn", "L5.3", *words).output)
        return asked["hints"], asked["hints_per_hour"], asked["hint_cooldown_seconds"]

    assert hints() == (20, 6, 60)
    assert hints("--hints", "0", "--hints-per-hour", "1", "--hint-cooldown", "5") == (0, 1, 5)
    assert hints("--unlimited-hints") == (None, None, None)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("unit", "autumn", "L5.3", "--due", "2026-10-25T02:30"), "2026-10-25T02:30:00+01:00"),
        (("unit", "autumn", "L9.9"), "L5.3"),
        (("unit", "spring", "L5.3"), "no course 'spring'"),
        (("set", "autumn", "--title", "x", "--timezone", "Mars"), "Europe/Berlin"),
        (("set", ".x", "--title", "x"), "letters"),
        (("extend", "autumn", "L5.3", "ada"), "at least one"),
        (("extend", "autumn", "L5.3", "ada", "--withdraw"), "no extension"),
    ],
)
def test_what_the_api_would_refuse_is_refused_with_what_to_do(run, tmp_path, words, says):
    result = run(*words)
    assert result.exit_code != 0
    assert says in result.output
    assert audited(tmp_path) == [("course.create", None)]
