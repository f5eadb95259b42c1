"""Course offerings, times, attempts and extensions, as options, go in and are stored; what stands comes out as JSON."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import sqlalchemy as sa
from pydantic import BaseModel

from grader.report import Level
from service import offerings, schedules, wording
from service.audit import By
from service.commands.connected import data_option, transaction
from service.course_files import trees
from service.deadlines import LatePolicy, Per
from service.offerings import Counts, HintLimits, Offering
from service.problems import Problem
from service.settings import from_environment

USUAL = HintLimits()
LEVELS = click.Choice([each.value for each in Level])
BY_HAND = "command line"  # who granted an extension, where there is no token


@click.group("offering")
def offering() -> None:
    """Set up courses: when units are due, how often they may be tried, and who gets more."""


@offering.command("list")
@data_option
def list_offerings(data: Path | None) -> None:
    """Show every course and what it asks of its units."""
    with transaction(data) as connection:
        for found in offerings.all_offerings(connection):
            _say(schedules.shown_course(found, offerings.assignments(connection, found.id)))


@offering.command("set")
@click.argument("course")
@click.option("--title", required=True)
@click.option("--timezone", default="UTC", show_default=True, help="IANA name, such as Europe/Berlin.")
@click.option("--archived", is_flag=True, help="Students can submit no more.")
@click.option("--listed-only", is_flag=True, help="Students' tokens for all courses: only of those on the class list.")
@data_option
def set_offering(course: str, title: str, timezone: str, archived: bool, listed_only: bool, data: Path | None) -> None:
    """Make a course, or change it."""
    now = time.time()
    with refusals(), transaction(data) as connection:
        if not schedules.is_course_id(course):
            raise click.BadParameter(wording.COURSE_ID_INVALID)
        body = schedules.OfferingBody(title=title, timezone=timezone, archived=archived, listed_only=listed_only)
        wanted = schedules.offering(course, body, offerings.find(connection, course), now)
        offerings.put(connection, wanted, By(None, now))
        _say(schedules.shown_offering(wanted))


@offering.command("unit")
@click.argument("course")
@click.argument("unit")
@click.option("--opens", help="A time such as 2026-10-01T08:00, in the course's zone.")
@click.option("--due", help="Later is late.")
@click.option("--closes", help="Later is not taken in.")
@click.option("--attempts", type=click.IntRange(1), help="In all.")
@click.option("--per-hour", type=click.IntRange(1), help="Attempts within 60 minutes.")
@click.option("--cooldown", type=click.FloatRange(0), help="Seconds between two attempts.")
@click.option("--counts", type=click.Choice([each.value for each in Counts]), default="best", show_default=True)
@click.option("--hints", type=click.IntRange(0), default=USUAL.unlocks, show_default=True, help="Unlocks in all.")
@click.option("--hints-per-hour", type=click.IntRange(1), default=USUAL.per_hour, show_default=True)
@click.option(
    "--hint-cooldown",
    type=click.FloatRange(0),
    default=USUAL.cooldown_seconds,
    show_default=True,
    help="Seconds between two.",
)
@click.option("--unlimited-hints", is_flag=True, help="Instead of these three.")
@click.option("--penalty", type=click.FloatRange(0, 1), default=0.0, help="Share of the score lost as time goes by.")
@click.option("--per", type=click.Choice([each.value for each in Per]), default="day", show_default=True)
@click.option("--cap", type=click.FloatRange(0, 1), default=1.0, help="The largest share so lost.")
@click.option("--grace", type=click.FloatRange(0), default=0.0, help="Seconds after --due that are on time.")
@click.option("--zero-after", type=click.FloatRange(0), help="Seconds after --due from which nothing is left.")
@click.option("--feedback", type=LEVELS, default="hints", show_default=True, help="How much reports tell students.")
@click.option("--feedback-past-limit", type=LEVELS, help="Of what is sent after --feedback-attempts.")
@click.option("--feedback-after-deadline", type=LEVELS, help="Once the student's time is over.")
@click.option("--feedback-after-passing", type=LEVELS, help="Once the student has passed.")
@click.option("--feedback-attempts", type=click.IntRange(1), help="Told as --feedback says.  [default: --attempts]")
@data_option
def set_unit(
    course: str,
    unit: str,
    opens: str | None,
    due: str | None,
    closes: str | None,
    attempts: int | None,
    per_hour: int | None,
    cooldown: float | None,
    counts: str,
    hints: int,
    hints_per_hour: int,
    hint_cooldown: float,
    unlimited_hints: bool,
    penalty: float,
    per: str,
    cap: float,
    grace: float,
    zero_after: float | None,
    feedback: str,
    feedback_past_limit: str | None,
    feedback_after_deadline: str | None,
    feedback_after_passing: str | None,
    feedback_attempts: int | None,
    data: Path | None,
) -> None:
    """Say what a course asks of a unit; what is left out has no limit, but for hints."""
    with refusals(), transaction(data) as connection:
        found = _course_and_unit(connection, course, unit)
        body = schedules.AssignmentBody(
            opens_at=opens,
            due_at=due,
            closes_at=closes,
            late_policy=LatePolicy(
                penalty=penalty, per=Per(per), cap=cap, grace_seconds=grace, zero_after_seconds=zero_after
            ),
            attempts=attempts,
            attempts_per_hour=per_hour,
            cooldown_seconds=cooldown,
            counts=Counts(counts),
            hints=None if unlimited_hints else hints,
            hints_per_hour=None if unlimited_hints else hints_per_hour,
            hint_cooldown_seconds=None if unlimited_hints else hint_cooldown,
            feedback=schedules.FeedbackBody(
                normal=Level(feedback),
                past_limit=_level(feedback_past_limit),
                after_deadline=_level(feedback_after_deadline),
                after_passing=_level(feedback_after_passing),
                attempts=feedback_attempts,
            ),
        )
        wanted = schedules.assignment(body, found.timezone)
        offerings.put_assignment(connection, course, unit, wanted, By(None, time.time()))
        _say(schedules.shown_assignment(found, unit, wanted))


@offering.command("extend")
@click.argument("course")
@click.argument("unit")
@click.argument("student")
@click.option("--due")
@click.option("--closes")
@click.option("--attempts", type=click.IntRange(0), default=0, help="More than the others have.")
@click.option("--reason", default="")
@click.option("--withdraw", is_flag=True, help="Take the extension away instead.")
@data_option
def extend(
    course: str,
    unit: str,
    student: str,
    due: str | None,
    closes: str | None,
    attempts: int,
    reason: str,
    withdraw: bool,
    data: Path | None,
) -> None:
    """Give a student more time or attempts, in place of the extension before."""
    now = time.time()
    with refusals(), transaction(data) as connection:
        found = _course_and_unit(connection, course, unit)
        if withdraw:
            if not offerings.withdraw(connection, course, unit, student, By(None, now)):
                raise click.ClickException(wording.EXTENSION_UNKNOWN)
            return
        body = schedules.ExtensionBody(due_at=due, closes_at=closes, extra_attempts=attempts, reason=reason)
        granted = schedules.extension(student, body, found.timezone, BY_HAND, now)
        offerings.grant(connection, course, unit, granted, By(None, now))
        _say(schedules.shown_extension(granted, found.timezone))


@contextmanager
def refusals() -> Iterator[None]:
    """What the API would refuse ends the command, with the same sentence."""
    try:
        yield
    except Problem as problem:
        raise click.ClickException(problem.message) from problem
    except ValueError as error:  # of pydantic: a value out of its range
        raise click.ClickException(str(error)) from error


def _course_and_unit(connection: sa.Connection, course: str, unit: str) -> Offering:
    found = offerings.find(connection, course)
    if found is None:
        raise click.ClickException(wording.offering_unknown(course))
    units = trees.in_use(connection, from_environment()).course.units
    if unit not in units:
        raise click.ClickException(wording.unit_unknown(unit, units))
    return found


def _level(name: str | None) -> Level | None:
    return Level(name) if name is not None else None


def _say(shown: BaseModel) -> None:
    click.echo(shown.model_dump_json(indent=2))
