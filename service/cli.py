"""The command `autograder`: words go in; a running service, or what another command makes, comes out."""

import importlib
import logging
import sys
from dataclasses import replace
from pathlib import Path

import click

from service import database, logs, wording
from service.commands.connected import data_option, usage_errors
from service.commands.tokens import admit_admin
from service.commands.users import invite_first
from service.course_files.trees import InUse, in_use
from service.processes import prepare, run_worker
from service.serve import address, serve
from service.settings import Settings, from_environment

course_option = click.option("--course", type=click.Path(file_okay=False, path_type=Path), help="Another course tree.")
sandbox_option = click.option("--sandbox", type=click.Choice(["docker", "process"]), help="[default: docker]")
jobs_option = click.option("--jobs", type=click.IntRange(1), help="Runs at a time within one submission.")
host_option = click.option("--host", default="127.0.0.1", show_default=True)
port_option = click.option("--port", type=click.IntRange(1, 65_535), default=8000, show_default=True)
public_option = click.option("--public-url", help="Where people reach the service, as https://grader.example.")
child_option = click.option("--until-stdin-closes", is_flag=True, hidden=True)


ELSEWHERE = {
    "backup": "service.commands.keeping:save",
    "course": "grader.course_cli:course",
    "export": "service.commands.keeping:export",
    "grade": "grader.cli:grade",
    "mutants": "grader.mutants_cli:mutants",
    "restore": "service.commands.keeping:restore",
    "offering": "service.commands.offerings:offering",
    "student": "service.commands.students:student",
    "sweep": "service.commands.keeping:sweep",
    "token": "service.commands.tokens:token",
    "users": "service.commands.users:people",
}
"""Commands of other modules, imported when called for: the web process never loads a sandbox."""


class Commands(click.Group):
    """The commands of this module and those of ELSEWHERE."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*super().list_commands(context), *ELSEWHERE])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in ELSEWHERE:
            return super().get_command(context, name)
        module, _, attribute = ELSEWHERE[name].partition(":")
        found: click.Command = getattr(importlib.import_module(module), attribute)
        return found


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
@public_option
@click.option("--dev-token", help="Accept this token as an administrator's, for as long as it is given.")
def serve_command(
    host: str,
    port: int,
    data: Path | None,
    course: Path | None,
    sandbox: str | None,
    jobs: int | None,
    public_url: str | None,
    dev_token: str | None,
) -> None:
    """Run the whole service: the web process, the worker and the sender."""
    with usage_errors():
        settings = from_environment(data=data, course=course, sandbox=sandbox, jobs=jobs, public_url=public_url)
        if not settings.course.is_dir():
            raise click.UsageError(wording.course_tree_missing(settings.course))
        if settings.sandbox == "process":
            click.echo(wording.NOT_ISOLATED, err=True)
        logs.settle(settings.log, settings.logged_from, "serve")

        def begin() -> None:
            prepare(settings)
            admit_admin(settings, dev_token)
            invite_first(settings, address(host, port))

        sys.exit(serve(settings, host, port, click.echo, begin))


@main.command("web")
@host_option
@port_option
@data_option
@course_option
@public_option
@child_option
def web_command(
    host: str, port: int, data: Path | None, course: Path | None, public_url: str | None, until_stdin_closes: bool
) -> None:
    """Run the web process alone; it never touches the sandbox."""
    from service.web import run_web

    with usage_errors():
        settings = from_environment(data=data, course=course, public_url=public_url)
        logs.settle(settings.log, settings.logged_from, "web")
        prepare(settings)
        found = _in_use(settings)
        run_web(settings, found.course, host, port, until_stdin_closes=until_stdin_closes, course_load=found.load)


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
        logs.settle(settings.log, settings.logged_from, "worker")
        prepare(settings)
        found = _in_use(settings)
        run_worker(
            settings,
            found.course,
            SandboxGrading(replace(settings, course=found.root), found.course),
            until_stdin_closes=until_stdin_closes,
            course_load=found.load,
        )


def _in_use(settings: Settings) -> InUse:
    engine = database.open_engine(settings.url)
    try:
        with database.reading(engine) as connection:
            return in_use(connection, settings)
    finally:
        engine.dispose()


@main.command("sender")
@data_option
@child_option
def sender_command(data: Path | None, until_stdin_closes: bool) -> None:
    """Run the sender alone: it tells learning platforms, and whoever asked to be called back, of grades."""
    from service.outbox.process import run_sender

    with usage_errors():
        settings = from_environment(data=data)
        logs.settle(settings.log, settings.logged_from, "sender")
        run_sender(settings, until_stdin_closes=until_stdin_closes)


if __name__ == "__main__":
    main()
