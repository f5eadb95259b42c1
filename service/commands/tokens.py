"""A role and a label go in; a token comes out, and is written down in the audit log, as are those taken back."""

import time
from datetime import UTC, datetime
from pathlib import Path

import click
import sqlalchemy as sa

from service import accounts, audit, database, wording
from service.accounts import OF_TOKENS, Account, Role
from service.audit import By
from service.commands.connected import data_option, transaction
from service.people.wording import ADMIN_EVERYWHERE
from service.settings import Settings

SECONDS_PER_DAY = 86_400
DEV_LABEL = "dev token"


@click.group("token")
def token() -> None:
    """Make, list and revoke the tokens that callers need."""


@token.command("create")
@click.option("--role", type=click.Choice([role.value for role in OF_TOKENS]), required=True)
@click.option("--student", help="Whom a student's token stands for.")
@click.option("--course", "courses", multiple=True, help="Good for this course only; repeatable.")
@click.option("--label", default="", help="A note for the list.")
@click.option("--days", type=click.FloatRange(0, min_open=True), help="Valid for so long; for ever without.")
@data_option
def create_token(
    role: str, student: str | None, courses: tuple[str, ...], label: str, days: float | None, data: Path | None
) -> None:
    """Print a new token. It is shown this once: the database holds only its hash."""
    if (role == Role.STUDENT) != bool(student):
        raise click.UsageError(wording.ROLE_AND_STUDENT)
    if role == Role.ADMIN and courses:
        raise click.UsageError(ADMIN_EVERYWHERE)
    secret, now = accounts.new_secret(), time.time()
    expires_at = now + days * SECONDS_PER_DAY if days is not None else None
    with transaction(data) as connection:
        made = accounts.create(
            connection,
            secret=secret,
            role=Role(role),
            now=now,
            student=student,
            label=label,
            expires_at=expires_at,
            courses=courses or None,
        )
        _record(connection, "token.create", made, now)
    click.echo(secret)


@token.command("list")
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


@token.command("revoke")
@click.argument("token_id")
@data_option
def revoke_token(token_id: str, data: Path | None) -> None:
    """Make the token with this id (see `token list`) useless."""
    now = time.time()
    with transaction(data) as connection:
        known = next((account for account in accounts.list_all(connection) if account.id == token_id), None)
        if known is None:
            raise click.ClickException(wording.token_unknown(token_id))
        accounts.revoke(connection, token_id, now)
        _record(connection, "token.revoke", known, now)


def admit_admin(settings: Settings, dev_token: str | None) -> None:
    """Let somebody in: the dev token while it is given, else, if there is no administrator, a new one, shown once."""
    engine = database.open_engine(settings.url)
    try:
        with database.writing(engine) as connection:
            now = time.time()
            known = accounts.find_by_secret(connection, dev_token) if dev_token is not None else None
            for account in accounts.list_all(connection):
                if account.label == DEV_LABEL and account.revoked_at is None and account != known:
                    accounts.revoke(connection, account.id, now)
                    _record(connection, "token.revoke", account, now)
            if dev_token is not None:
                _admit_dev(connection, dev_token, known, now)
            elif not accounts.any_admin(connection, now):
                secret = accounts.new_secret()
                made = accounts.create(connection, secret=secret, role=Role.ADMIN, now=now, label="first start")
                _record(connection, "token.create", made, now)
                click.echo(wording.admin_token(secret))
    finally:
        engine.dispose()


def _admit_dev(connection: sa.Connection, secret: str, known: Account | None, now: float) -> None:
    if known is None:
        made = accounts.create(connection, secret=secret, role=Role.ADMIN, now=now, label=DEV_LABEL)
        _record(connection, "token.create", made, now)
    elif known.label != DEV_LABEL:
        raise click.UsageError(wording.DEV_TOKEN_TAKEN)
    elif known.revoked_at is not None or known.expires_at is not None:
        accounts.revive(connection, known.id)
        _record(connection, "token.revive", known, now)


def _record(connection: sa.Connection, action: str, account: Account, now: float) -> None:
    detail = {"role": account.role.value, "label": account.label}
    audit.note(connection, By(None, now), action=action, object=account.id, student=account.student, detail=detail)


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _state(account: accounts.Account, now: float) -> str:
    if account.revoked_at is not None:
        return "revoked"
    if account.expires_at is None:
        return "valid"
    return f"{'expired' if account.expires_at <= now else 'until'} {_date(account.expires_at)}"
