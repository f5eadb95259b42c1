"""What a command needs goes in: its options, the database, and how a person's mistake is answered; comes out ready."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import sqlalchemy as sa

from service import database, wording
from service.processes import UNUSABLE
from service.settings import Settings, from_environment

data_option = click.option(
    "--data", type=click.Path(file_okay=False, path_type=Path), help="Directory of the database.  [default: data]"
)


@contextlib.contextmanager
def connected(data: Path | None) -> Iterator[tuple[Settings, sa.Engine]]:
    """The service's settings and its database, which is made if it is not there."""
    settings = from_environment(data=data)
    if not database.exists(settings):
        click.echo(wording.new_database(settings.data), err=True)
    database.migrate(settings)
    engine = database.open_engine(settings.url)
    try:
        yield settings, engine
    finally:
        engine.dispose()


@contextlib.contextmanager
def transaction(data: Path | None) -> Iterator[sa.Connection]:
    """A transaction on the service's database, which is made if it is not there."""
    with connected(data) as (_, engine), database.writing(engine) as connection:
        yield connection


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
