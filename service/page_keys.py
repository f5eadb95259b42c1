"""Sorted rows, and the key of the page before, go in; one page and the key of the next come out.

Pages are by key, not by number: a page continues behind the last row of the one before, whatever was added since.
"""

import base64
import binascii
import json
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from service import wording
from service.problems import Problem

T = TypeVar("T")
Key = tuple[float, str]
"""What rows are sorted by: a number, and of equals a name."""


class BadKey(Problem):
    """422: the page's key was not made by us, or for another order."""

    def __init__(self) -> None:
        super().__init__(422, "page_unknown", wording.PAGE_UNKNOWN)


def page(
    rows: Sequence[T], key_of: Callable[[T], Key], made_for: str, limit: int, after: str | None
) -> tuple[Sequence[T], str | None]:
    """Up to `limit` of the rows, which are sorted by `key_of`, and the key of the next page. Raises BadKey."""
    if after is not None:
        last = read(after, made_for)
        rows = [row for row in rows if key_of(row) > last]
    found = rows[:limit]
    return found, write(key_of(found[-1]), made_for) if len(rows) > limit else None


def write(key: Key, made_for: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([made_for, *key]).encode()).decode().rstrip("=")


def read(text: str, made_for: str) -> Key:
    try:
        order, number, name = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        key = float(number), name
    except (binascii.Error, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadKey from error
    if order != made_for or not isinstance(name, str) or not math.isfinite(key[0]):
        raise BadKey
    return key
