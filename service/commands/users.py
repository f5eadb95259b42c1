"""Who shall sign in goes in; a link to set a password comes out, and is written down in the audit log."""

import time
from pathlib import Path

import click
import sqlalchemy as sa

from service import accounts, audit, database, offerings, wording
from service.accounts import OF_MEMBERS, Role
from service.audit import By
from service.commands.connected import data_option, transaction
from service.people import invitations, members, users
from service.people import wording as sentences
from service.people.members import Source
from service.people.users import Taken, User
from service.settings import Settings, from_environment

FIRST_LOGIN = "admin"
FIRST_SECONDS = 86_400.0
LOCAL = "http://127.0.0.1:8000"

url_option = click.option(
    "--url",
    default=lambda: from_environment().public_url or LOCAL,
    help=f"Where people reach the service, for the link.  [default: AUTOGRADER_PUBLIC_URL, or {LOCAL}]",
)


@click.group("users")
def people() -> None:
    """Let people sign in: teachers, graders and students, each with a login and a password."""


@people.command("add")
@click.argument("login")
@click.option("--name", default="")
@click.option("--student", default="", help="By which submissions know the person.  [default: the login]")
@click.option("--admin", is_flag=True, help="May do everything.")
@click.option("--course", help="Whose member the person becomes.")
@click.option("--role", type=click.Choice([role.value for role in OF_MEMBERS]), default="student", show_default=True)
@url_option
@data_option
def add_user(
    login: str, name: str, student: str, admin: bool, course: str | None, role: str, url: str, data: Path | None
) -> None:
    """Add a person and print the link with which they set a password. It works once, for a week."""
    now = time.time()
    with transaction(data) as connection:
        try:
            user = users.add(connection, login=login, name=name, student=student, now=now, admin=admin)
        except Taken as error:
            raise click.ClickException(sentences.taken(error.field)) from error
        _note(connection, "user.add", user, now)
        if course is not None:
            if offerings.find(connection, course) is None:
                raise click.ClickException(wording.offering_unknown(course))
            members.put(connection, course, user, Role(role), "", Source.API, By(None, now))
        code = _invite(connection, user, now)
    click.echo(invitations.link(url, code))


@people.command("link")
@click.argument("login")
@url_option
@data_option
def make_link(login: str, url: str, data: Path | None) -> None:
    """Print a new link to set a password, such as for somebody who forgot theirs."""
    with transaction(data) as connection:
        code = _invite(connection, _known(connection, login), time.time())
    click.echo(invitations.link(url, code))


@people.command("list")
@data_option
def list_users(data: Path | None) -> None:
    """Show everybody who can sign in, and in which courses they are."""
    with transaction(data) as connection:
        closed = {each.user for each in accounts.closed(connection)}
        for user in users.list_all(connection):
            state = "closed" if user.id in closed else "password" if user.has_password else "no password"
            parts = [f"{part.course}:{part.role.value}" for part in members.of_user(connection, user.id)]
            click.echo(f"{user.login:32} {state:12} {' '.join([*(['admin'] if user.admin else []), *parts])}")


@people.command("close")
@click.argument("login")
@data_option
def close_user(login: str, data: Path | None) -> None:
    """Let a person in no more; what they did stays. `open` is the way back."""
    now = time.time()
    with transaction(data) as connection:
        user = _known(connection, login)
        users.close(connection, user, now)
        _note(connection, "user.close", user, now)


@people.command("open")
@click.argument("login")
@data_option
def open_user(login: str, data: Path | None) -> None:
    """Let a person in again; tokens of theirs stay revoked."""
    with transaction(data) as connection:
        user = _known(connection, login)
        users.reopen(connection, user)
        _note(connection, "user.open", user, time.time())


def invite_first(settings: Settings, url: str) -> None:
    """Print a link for an administrator as long as none can sign in."""
    engine = database.open_engine(settings.url)
    try:
        with database.writing(engine) as connection:
            if users.any_admin(connection):
                return
            now = time.time()
            user = users.find_by_login(connection, FIRST_LOGIN)
            if user is None:
                user = users.add(connection, login=FIRST_LOGIN, name="", now=now, admin=True)
                _note(connection, "user.add", user, now)
            if user.admin:
                code = _invite(connection, user, now, FIRST_SECONDS)
                base = settings.public_url or url + settings.root_path
                click.echo(sentences.first_link(invitations.link(base, code)))
    finally:
        engine.dispose()


def _known(connection: sa.Connection, login: str) -> User:
    user = users.find_by_login(connection, login)
    if user is None:
        raise click.ClickException(sentences.USER_UNKNOWN)
    return user


def _invite(connection: sa.Connection, user: User, now: float, life_seconds: float = invitations.LIFE_SECONDS) -> str:
    _note(connection, "password.invite", user, now)
    return invitations.invite(connection, user.id, now, life_seconds)


def _note(connection: sa.Connection, action: str, user: User, now: float) -> None:
    audit.note(connection, By(None, now), action=action, object=user.account, student=user.student)
