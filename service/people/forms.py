"""The text of a form's field goes in; the number or the choice it stands for comes out, or Problem; and back again."""

from enum import Enum

from starlette.datastructures import FormData

from service.people import wording
from service.problems import Problem
from service.views import text


class Number(Enum):
    """What a field holds: whole things, or any amount."""

    COUNT = "whole"
    SHARE = "any"


def flag(form: FormData, name: str) -> bool:
    """Whether the box was ticked."""
    return text(form, name) != ""


def amount(form: FormData, name: str, kind: Number, unit: float = 1) -> float | int | None:
    """The number in the field, times `unit`; None for an empty one. Raises Problem 422."""
    said = text(form, name).replace(",", ".")
    if not said:
        return None
    try:
        value = int(said) if kind is Number.COUNT else float(said)
    except ValueError as error:
        raise Problem(422, "number_unreadable", wording.number_unreadable(name, said)) from error
    return value if unit == 1 else round(value * unit, 9)


def number(value: float | None, unit: float = 1) -> str:
    """A number as a field shows it; '' for None."""
    return "" if value is None else f"{round(value / unit, 6):g}" if unit != 1 or value % 1 else str(int(value))
