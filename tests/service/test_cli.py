import time

import pytest
from click.testing import CliRunner

from service import accounts, database
from service.cli import main
from service.commands.tokens import admit_admin
from service.settings import Settings


@pytest.fixture
def run(tmp_path):
    def run(*words):
        return CliRunner().invoke(main, [*words, "--data", str(tmp_path)])

    return run


def account_of(folder, secret):
    engine = database.open_engine(Settings(data=folder, course=folder).url)
    try:
        with database.reading(engine) as connection:
            return accounts.authenticate(connection, secret, time.time())
    finally:
        engine.dispose()


def test_a_created_token_is_printed_alone_and_opens_the_service(run, tmp_path):
    result = run("token", "create", "--role", "student", "--student", "s123")
    assert result.exit_code == 0, result.output
    account = account_of(tmp_path, result.stdout.strip())
    assert (account.role, account.student) == ("student", "s123")


def test_a_token_for_a_database_that_was_not_there_says_so_once(run):
    first, second = (run("token", "create", "--role", "teacher") for _ in range(2))
    assert "a new one was made" in first.stderr and "--data" in first.stderr
    assert second.stderr == ""


def test_the_list_shows_every_token_but_not_its_secret(run):
    secret = run("token", "create", "--role", "teacher", "--label", "Ms Noether").stdout.strip()
    run("token", "create", "--role", "student", "--student", "s123", "--days", "1")
    listed = run("token", "list").output
    assert "Ms Noether" in listed and "s123" in listed and "until" in listed
    assert secret not in listed


def test_a_revoked_token_opens_nothing(run, tmp_path):
    secret = run("token", "create", "--role", "lms").stdout.strip()
    account = account_of(tmp_path, secret)
    assert run("token", "revoke", account.id).exit_code == 0
    assert account_of(tmp_path, secret) is None
    assert "revoked" in run("token", "list").output


def test_an_unknown_id_to_revoke_is_an_error(run):
    assert run("token", "revoke", "nothing").exit_code == 1


@pytest.mark.parametrize(
    "words", [["--role", "student"], ["--role", "teacher", "--student", "s1"], ["--role", "boss"], []]
)
def test_a_role_and_a_student_that_do_not_go_together_are_a_usage_error(run, words):
    assert run("token", "create", *words).exit_code == 2


@pytest.fixture
def settings(tmp_path):
    settings = Settings(data=tmp_path, course=tmp_path)
    database.migrate(settings)
    return settings


def test_the_first_start_prints_an_administrators_token_once(settings, capsys):
    admit_admin(settings, None)
    secret = capsys.readouterr().out.split()[-1]
    assert account_of(settings.data, secret).role == "admin"
    admit_admin(settings, None)
    assert capsys.readouterr().out == ""


def test_a_dev_token_is_an_administrators_for_as_long_as_it_is_given(settings, capsys):
    admit_admin(settings, "letmein")
    assert account_of(settings.data, "letmein").role == "admin"
    admit_admin(settings, "letmein")
    assert account_of(settings.data, "letmein").role == "admin"
    assert capsys.readouterr().out == ""
    admit_admin(settings, None)
    assert account_of(settings.data, "letmein") is None
    assert "Administrator" in capsys.readouterr().out


def test_serve_without_a_course_tree_is_a_usage_error(run, tmp_path):
    result = run("serve", "--course", str(tmp_path / "nothing"))
    assert result.exit_code == 2
    assert "--course" in result.output


def test_help_lists_every_command():
    result = CliRunner().invoke(main, ["--help"])
    for command in ("serve", "web", "worker", "token", "grade"):
        assert command in result.output
