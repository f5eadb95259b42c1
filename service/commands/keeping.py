"""A file's name goes in; a backup, or a course's grades, are written there, or a database is filled from it.

And what is too old goes.
"""

import os
import time
from pathlib import Path

import click

from service import backup, database, offerings, retention, spreadsheet, wording
from service.commands.connected import connected, data_option, usage_errors
from service.schedules import DEFAULT_COURSE
from service.settings import from_environment

file_argument = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@click.command("backup")
@file_argument
@data_option
def save(file: Path, data: Path | None) -> None:
    """Write everything the service has stored to FILE (.tar.gz), while it runs."""
    with usage_errors():
        settings = from_environment(data=data)
        if not database.exists(settings):
            raise backup.Unusable(wording.NO_DATABASE)
        engine = database.open_engine(settings.url)
        try:
            saved = backup.save(engine, file, time.time())
        finally:
            engine.dispose()
    click.echo(wording.backup_made(file, saved.schema, sum(saved.rows.values()), file.stat().st_size))


@click.command("restore")
@file_argument
@data_option
def restore(file: Path, data: Path | None) -> None:
    """Fill an empty database from FILE, SQLite or PostgreSQL, whichever the backup came from."""
    with usage_errors():
        restored = backup.restore(from_environment(data=data), file, time.time())
    click.echo(wording.backup_restored(file, sum(restored.rows.values())))


@click.command("sweep")
@data_option
def sweep(data: Path | None) -> None:
    """Delete now what is older than AUTOGRADER_KEEP_SUBMISSIONS_DAYS; a worker does so every day."""
    with usage_errors(), connected(data) as (settings, engine):
        swept = retention.sweep(engine, settings, time.time())
    click.echo(wording.swept(swept.submissions, swept.blobs, swept.keys))


@click.command("export")
@file_argument
@click.option("--course", "course_id", default=DEFAULT_COURSE, show_default=True, help="Whose grades.")
@data_option
def export(file: Path, course_id: str, data: Path | None) -> None:
    """Write the grades of a course to FILE, a CSV that spreadsheets open safely."""
    with usage_errors(), connected(data) as (_, engine), database.reading(engine) as connection:
        if offerings.find(connection, course_id) is None:
            raise click.ClickException(wording.course_unknown(course_id))
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        # With its mark a spreadsheet knows it for UTF-8.
        with open(descriptor, "w", encoding="utf-8-sig", newline="") as target:
            count = spreadsheet.write(connection, course_id, target)
    click.echo(wording.grades_written(file, count))
