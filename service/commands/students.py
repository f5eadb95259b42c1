"""A student's name goes in; everything stored of the student comes out as a zip, or is erased."""

import os
import time
from pathlib import Path

import click
import sqlalchemy as sa

from service import audit, database, students, wording
from service.audit import By
from service.commands.connected import connected, data_option, usage_errors
from service.dbos_queue import DbosQueue
from service.processes import prepare
from service.tables import submissions


@click.group("student")
def student() -> None:
    """Hand out, or erase, everything stored of a student."""


@student.command("export")
@click.argument("name")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@data_option
def export_student(name: str, file: Path, data: Path | None) -> None:
    """Write everything stored of the student NAME to FILE, a zip."""
    now = time.time()
    with usage_errors(), connected(data) as (_, engine):
        _find(engine, name)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as target, database.reading(engine) as connection:
            count = students.export(connection, name, target, now)
        with database.writing(engine) as connection:
            audit.note(connection, By(None, now), action="student.export", object=name, student=name)
    click.echo(wording.exported(file, count))


@student.command("erase")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@data_option
def erase_student(name: str, yes: bool, data: Path | None) -> None:
    """Erase the student NAME: submissions, grades, files, extensions, tokens. There is no way back."""
    with usage_errors(), connected(data) as (settings, engine):
        count = _find(engine, name)
        if not yes:
            click.confirm(wording.erase_question(name, count), abort=True)
        prepare(settings)
        queue = DbosQueue(engine)
        try:
            erased = students.erase(engine, queue, name, who=None)
        finally:
            queue.close()
    click.echo(wording.erased(erased.pseudonym, erased.submissions, erased.tokens, erased.blobs))


def _find(engine: sa.Engine, name: str) -> int:
    """How many submissions the student has; a person who names nobody is told so."""
    with database.reading(engine) as connection:
        if not students.is_known(connection, name):
            raise click.ClickException(wording.STUDENT_UNKNOWN)
        mine = sa.select(sa.func.count()).select_from(submissions).where(submissions.c.student == name)
        return connection.execute(mine).scalar_one()
