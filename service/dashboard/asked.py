"""The address of a page goes in; which part of a class it asks for comes out, and the address of the same elsewhere.

An empty field of a form asks for nothing. What cannot be read is a Problem 422 and never left out in silence.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar, get_args
from urllib.parse import urlencode

from grader.report import Verdict
from service import page_keys, walltime
from service.classroom.answers import State
from service.classroom.overview import By
from service.classroom.selection import Selection
from service.classroom.students import Narrowed, Sort
from service.dashboard import wording
from service.posted import NAME_CHARS
from service.problems import Problem

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

KEPT = ("section", "search", "verdict", "since", "until")  # from one view of a class to the next
NARROWING = ("state", "risk", "failing", "survived", "believes")


@dataclass(frozen=True)
class Asked:
    """The fields as they were sent, and empty where they were not."""

    fields: Mapping[str, str]

    @classmethod
    def of(cls, sent: Mapping[str, str]) -> "Asked":
        """Raises Problem 422 for a text that nothing stored can be equal to."""
        found = {name: sent.get(name, "").strip() for name in (*KEPT, *NARROWING, "sort", "after", "by")}
        for name, text in found.items():
            if len(text) > 4 * NAME_CHARS or "\0" in text:
                raise Problem(422, "filter_unreadable", wording.filter_unreadable(name), field=name)
        return cls(found)

    def __getattr__(self, name: str) -> str:
        """For templates: what stands in the field now."""
        try:
            return self.fields[name]
        except KeyError as error:
            raise AttributeError(name) from error

    def selection(self, course: str, unit: str, zone: str) -> Selection:
        """The students in question. Times are read on the clocks of `zone`."""
        return Selection(
            course=course,
            unit=unit,
            section=self.fields["section"] or None,
            search=self.fields["search"] or None,
            verdict=self._one_of(Verdict, "verdict"),
            since=self._time("since", zone),
            until=self._time("until", zone),
        )

    def narrowed(self) -> Narrowed:
        return Narrowed(
            state=self._one_of(State, "state"),
            at_risk=self.fields["risk"] == "true",
            failing=self.fields["failing"] or None,
            survived=self.fields["survived"] or None,
            believes=self.fields["believes"] or None,
        )

    def sort(self, otherwise: Sort = Sort.STUDENT) -> Sort:
        return self._one_of(Sort, "sort") or otherwise

    def by(self) -> By | None:
        return next((by for by in get_args(By) if by == self.fields["by"]), None)

    @property
    def kept(self) -> str:
        """The query of another view of the same part of the class; empty for the whole class."""
        return _query({name: self.fields[name] for name in KEPT})

    def other(self, **fields: str) -> str:
        """The query of this view with other fields."""
        return _query({**self.fields, **fields})

    def _one_of(self, kind: type[E], name: str) -> E | None:
        text = self.fields[name]
        if not text:
            return None
        try:
            return kind(text)
        except ValueError as error:
            raise Problem(422, "filter_unreadable", wording.filter_unreadable(name), field=name) from error

    def _time(self, name: str, zone: str) -> float | None:
        text = self.fields[name]
        if not text:
            return None
        try:
            return walltime.read(text, zone)
        except walltime.Unreadable as error:
            raise Problem(422, "filter_unreadable", wording.filter_unreadable(name), field=name) from error
        except (walltime.Skipped, walltime.Repeated) as error:  # an hour more or less is no reason to stop here
            return error.earlier.timestamp()


def _query(fields: Mapping[str, str]) -> str:
    said = {name: text for name, text in fields.items() if text}
    return f"?{urlencode(said)}" if said else ""


def page_of(
    rows: Sequence[T], asked: Asked, key_of: Callable[[T], page_keys.Key], made_for: str, limit: int
) -> tuple[Sequence[T], str | None]:
    """The rows of the page asked for, and the query of the next one. Raises BadKey for a key of another order."""
    found, key = page_keys.page(rows, key_of, made_for, limit, asked.fields["after"] or None)
    return found, asked.other(after=key) if key is not None else None
