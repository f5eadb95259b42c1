import re
import time

import pytest
from click.testing import CliRunner

from service import accounts, database
from service.cli import main
from service.commands.users import invite_first
from service.people import invitations, users
from service.settings import Settings

LINK = r"(\S+)/set-password\?code=([\w-]+)"


@pytest.fixture
def run(tmp_path):
    def run(*words):
        return CliRunner().invoke(main, [*words, "--data", str(tmp_path)])

    return run


@pytest.fixture
def held(tmp_path):
    """What a function of a connection returns."""

    def held(ask):
        engine = database.open_engine(Settings(data=tmp_path, course=tmp_path).url)
        try:
            with database.writing(engine) as connection:
                return ask(connection)
        finally:
            engine.dispose()

    return held


def test_a_person_is_added_and_the_link_printed_is_theirs(run, held):
    result = run("users", "add", "Ada@Example.org", "--admin", "--url", "https://grader.example/")
    base, code = re.fullmatch(LINK, result.stdout.strip()).groups()
    assert base == "https://grader.example"
    user = held(lambda connection: invitations.invited(connection, code, time.time()))
    assert (user.login, user.admin) == ("ada@example.org", True)
    assert run("users", "add", "ada@example.org").exit_code == 1


def test_a_new_link_makes_the_one_before_useless(run, held):
    first = re.search(LINK, run("users", "add", "ada").stdout)[2]
    second = re.search(LINK, run("users", "link", "ada").stdout)[2]
    found = [
        held(lambda connection, code=code: invitations.invited(connection, code, time.time()))
        for code in (first, second)
    ]
    assert found[0] is None and found[1].login == "ada"
    assert run("users", "link", "nobody").exit_code == 1


def test_a_person_joins_a_course_that_is_there(run):
    assert run("users", "add", "tess", "--course", "default", "--role", "teacher").exit_code == 0
    assert run("users", "add", "tom", "--course", "none").exit_code == 1
    listed = run("users", "list").output
    assert re.search(r"tess +no password +default:teacher", listed)
    assert "tom" not in listed


def test_a_closed_account_is_shown_and_opened_again(run, held):
    run("users", "add", "ada")
    assert run("users", "close", "ada").exit_code == 0
    assert "closed" in run("users", "list").output
    assert run("users", "open", "ada").exit_code == 0
    user = held(lambda connection: users.find_by_login(connection, "ada"))
    assert held(lambda connection: accounts.find(connection, user.account, time.time())) is not None


def test_a_link_is_printed_at_start_until_an_administrator_can_sign_in(run, held, tmp_path, capsys):
    run("users", "list")  # makes the database
    settings = Settings(data=tmp_path, course=tmp_path, root_path="/grader")
    codes = []
    for _ in range(2):
        invite_first(settings, "http://127.0.0.1:8000")
        base, code = re.search(LINK, capsys.readouterr().out).groups()
        assert base == "http://127.0.0.1:8000/grader"
        codes.append(code)
    assert held(lambda connection: invitations.invited(connection, codes[0], time.time())) is None
    held(lambda connection: invitations.accept(connection, codes[1], "a hash", time.time()))
    invite_first(settings, "http://127.0.0.1:8000")
    assert capsys.readouterr().out == ""


def test_a_token_is_limited_to_courses(run, held):
    secret = run("token", "create", "--role", "teacher", "--course", "a", "--course", "b").stdout.strip()
    account = held(lambda connection: accounts.authenticate(connection, secret, time.time()))
    assert account.within("a").sees_class and account.within("c") is None
    assert run("token", "create", "--role", "admin", "--course", "a").exit_code == 2
