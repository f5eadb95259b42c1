"""A file's name goes in; a backup is written there, or a database filled from it. And what is too old goes."""

import time
from pathlib import Path

import click

from service import backup, database, retention, wording
from service.commands.connected import connected, data_option, usage_errors
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
