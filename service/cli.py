"""The command `autograder`: words go in; a running service, a token, or a graded submission comes out."""

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import sqlalchemy as sa

from grader.units import load_course
from service import accounts, database, wording
from service.accounts import Role
from service.processes import UNUSABLE, prepare, run_worker
from service.serve import serve
from service.settings import Settings, from_environment

SECONDS_PER_DAY = 86_400
DEV_LABEL = "dev token"

data_option = click.option(
    "--data", type=click.Path(file_okay=False, path_type=Path), help="Directory of the database.  [default: data]"
)
course_option = click.option("--course", type=click.Path(file_okay=False, path_type=Path), help="Another course tree.")
sandbox_option = click.option("--sandbox", type=click.Choice(["docker", "process"]), help="[default: docker]")
jobs_option = click.option("--jobs", type=click.IntRange(1), help="Runs at a time within one submission.")
host_option = click.option("--host", default="127.0.0.1", show_default=True)
port_option = click.option("--port", type=click.IntRange(1, 65_535), default=8000, show_default=True)
child_option = click.option("--until-stdin-closes", is_flag=True, hidden=True)


class Commands(click.Group):
    """The commands; those that grade are imported when called for: the web process never loads a sandbox."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*super().list_commands(context), "course", "grade"])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name == "grade":
            from grader.cli import grade

            return grade
        if name == "course":
            from grader.course_cli import course

            return course
        return super().get_command(context, name)


@click.group(cls=Commands)
def main() -> None:
    """Grade machine-learning code and the tests written for it."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")


@main.command("serve")
@host_option
@port_option
@data_option
@course_option
@sandbox_option
@jobs_option
@click.option("--dev-token", help="Accept this token as an administrator's, for as long as it is given.")
def serve_command(
    host: str,
    port: int,
    data: Path | None,
    course: Path | None,
    sandbox: str | None,
    jobs: int | None,
    dev_token: str | None,
) -> None:
    """Run the whole service: the web process and the worker."""
    with usage_errors():
        settings = from_environment(data=data, course=course, sandbox=sandbox, jobs=jobs)
        if not settings.course.is_dir():
            raise click.UsageError(wording.course_tree_missing(settings.course))
        if settings.sandbox == "process":
            click.echo(wording.NOT_ISOLATED, err=True)
        prepare(settings)
        admit_admin(settings, dev_token)
        sys.exit(serve(settings, host, port, click.echo))


@main.command("web")
@host_option
@port_option
@data_option
@course_option
@child_option
def web_command(host: str, port: int, data: Path | None, course: Path | None, until_stdin_closes: bool) -> None:
    """Run the web process alone; it never touches the sandbox."""
    from service.web import run_web

    with usage_errors():
        settings = from_environment(data=data, course=course)
        run_web(settings, load_course(settings.course), host, port, until_stdin_closes=until_stdin_closes)


@main.command("worker")
@data_option
@course_option
@sandbox_option
@jobs_option
@child_option
def worker_command(
    data: Path | None, course: Path | None, sandbox: str | None, jobs: int | None, until_stdin_closes: bool
) -> None:
    """Run a worker alone: it grades what the web process has queued."""
    from service.grading import SandboxGrading

    with usage_errors():
        settings = from_environment(data=data, course=course, sandbox=sandbox, jobs=jobs)
        found = load_course(settings.course)
        run_worker(settings, found, SandboxGrading(settings, found), until_stdin_closes=until_stdin_closes)


@main.group("token")
def token_group() -> None:
    """Make, list and revoke the tokens that callers need."""


@token_group.command("create")
@click.option("--role", type=click.Choice([role.value for role in Role]), required=True)
@click.option("--student", help="Whom a student's token stands for.")
@click.option("--label", default="", help="A note for the list.")
@click.option("--days", type=click.FloatRange(0, min_open=True), help="Valid for so long; for ever without.")
@data_option
def create_token(role: str, student: str | None, label: str, days: float | None, data: Path | None) -> None:
    """Print a new token. It is shown this once: the database holds only its hash."""
    if (role == Role.STUDENT) != bool(student):
        raise click.UsageError(wording.ROLE_AND_STUDENT)
    secret, now = accounts.new_secret(), time.time()
    expires_at = now + days * SECONDS_PER_DAY if days is not None else None
    with transaction(data) as connection:
        accounts.create(
            connection,
            secret=secret,
            role=Role(role),
            now=now,
            student=student,
            label=label,
            expires_at=expires_at,
        )
    click.echo(secret)


@token_group.command("list")
@data_option
def list_tokens(data: Path | None) -> None:
    """Show every token's id, role, student, state and label; never the token."""
    now = time.time()
    with transaction(data) as connection:
        found = accounts.list_all(connection)
    for account in found:
        click.echo(
            f"{account.id}  {account.role.value:8} {account.student or '-':16} "
            f"{_date(account.created_at)}  {_state(account, now):20} {account.label}"
        )


@token_group.command("revoke")
@click.argument("token_id")
@data_option
def revoke_token(token_id: str, data: Path | None) -> None:
    """Make the token with this id (see `token list`) useless."""
    with transaction(data) as connection:
        known = accounts.revoke(connection, token_id, time.time())
    if not known:
        raise click.ClickException(wording.token_unknown(token_id))


def admit_admin(settings: Settings, dev_token: str | None) -> None:
    """Let somebody in: the dev token while it is given, else, if there is no administrator, a new one, shown once."""
    engine = database.open_engine(settings.url)
    try:
        with database.writing(engine) as connection:
            now = time.time()
            for account in accounts.list_all(connection):
                if account.label == DEV_LABEL and account.revoked_at is None:
                    accounts.revoke(connection, account.id, now)
            if dev_token is not None:
                known = accounts.find_by_secret(connection, dev_token)
                if known is None:
                    accounts.create(connection, secret=dev_token, role=Role.ADMIN, now=now, label=DEV_LABEL)
                elif known.label == DEV_LABEL:
                    accounts.revive(connection, known.id)
                else:
                    raise click.UsageError(wording.DEV_TOKEN_TAKEN)
            elif not accounts.any_admin(connection, now):
                secret = accounts.new_secret()
                accounts.create(connection, secret=secret, role=Role.ADMIN, now=now, label="first start")
                click.echo(wording.admin_token(secret))
    finally:
        engine.dispose()


@contextlib.contextmanager
def transaction(data: Path | None) -> Iterator[sa.Connection]:
    """A transaction on the service's database, which is made if it is not there."""
    settings = from_environment(data=data)
    if not database.exists(settings):
        click.echo(wording.new_database(settings.data), err=True)
    database.migrate(settings)
    engine = database.open_engine(settings.url)
    try:
        with database.writing(engine) as connection:
            yield connection
    finally:
        engine.dispose()


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """What a person can put right leaves as a message and UNUSABLE, not as a traceback."""
    try:
        yield
    except (database.Held, ValueError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(UNUSABLE)
    except OSError as error:
        click.echo(f"Error: {error.strerror or error}", err=True)
        sys.exit(UNUSABLE)


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _state(account: accounts.Account, now: float) -> str:
    if account.revoked_at is not None:
        return "revoked"
    if account.expires_at is None:
        return "valid"
    return f"{'expired' if account.expires_at <= now else 'until'} {_date(account.expires_at)}"


if __name__ == "__main__":
    main()
