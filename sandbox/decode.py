"""Reads a run's record: bytes that untrusted code wrote come in, a `Record` and where it broke off leave.

Lines of JSON as `inside/recorder.py` states them, in the order pytest makes them. Reading stops at the first line
that is not as it must be; everything before it is kept.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sandbox.records import CollectionError, ItemOutcome, Record, Resource, TestItem
from sandbox.wire import WireError, expect, parse

MOST_ITEMS = 5000
MOST_ERRORS = 500
TEXT_CHARACTERS = 4000
COLLECTED = b'{"event": "collected", '
GOES_ON = b'{"event": "goes on"}\n'
"""behind the record of a run whose process has gone on with another version; that of what it did there follows"""
REMEMBERED_BYTES = 64 << 10
MARKED = re.compile(r"[0-9a-f]{1,512}")


@dataclass(frozen=True)
class End:
    """The last line of a record: pytest's exit status, and how many of the selected tests ran."""

    status: int
    interrupted: bool
    selected: int
    ran: int


@dataclass(frozen=True)
class Decoded:
    """`running` is the test that had begun and not ended; `problem` says what is wrong with the record, if anything."""

    record: Record
    end: End | None = None
    running: str | None = None
    problem: str = ""


def decode_record(data: bytes) -> Decoded:
    """The record, as far as it is one. A last line without its newline is one that was cut off: it is left out."""
    reader = _Reader()
    lines = data.split(b"\n")
    cut_off = lines.pop()
    problem = ""
    try:
        for line in lines:
            reader.read(_remembered(line) if line.startswith(COLLECTED) else parse(line))
        if cut_off and reader.end:
            raise WireError("bytes after the end of the record")
    except (WireError, ValueError) as error:
        problem = str(error)
    record = Record(tuple(reader.collected), tuple(reader.items.values()), tuple(reader.errors))
    return Decoded(record, reader.end, reader.running, problem)


def _remembered(line: bytes) -> dict[str, Any]:
    """As `parse`, of a line that is often the same for all runs of a suite."""
    return parse(line) if len(line) > REMEMBERED_BYTES else dict(_parsed(line))


@lru_cache(maxsize=16)
def _parsed(line: bytes) -> Any:
    return parse(line)


class _Reader:
    def __init__(self) -> None:
        self.collected: dict[str, None] = {}
        self.items: dict[str, TestItem] = {}
        self.errors: list[CollectionError] = []
        self.running: str | None = None
        self.end: End | None = None

    def read(self, line: Any) -> None:
        if self.end:
            raise WireError("a line after the end of the record")
        if not isinstance(line, dict):
            raise WireError("a line that is no object")
        event = line.pop("event", None)
        if event == "collected":
            self._collected(**expect(line, ids=list))
        elif event == "error":
            self._error(**expect(line, path=str, message=str, where=str))
        elif event == "start":
            self._start(**expect(line, id=str))
        elif event == "item":
            self._item(line)
        elif event == "end":
            self._end(**expect(line, status=int, interrupted=bool, selected=int, ran=int))
        else:
            raise WireError("a line of no known kind")

    def _collected(self, ids: list[Any]) -> None:
        if self.items or self.running:
            raise WireError("collection after a test began")
        known = len(self.collected)
        if not all(isinstance(id, str) and _short(id) for id in ids):
            raise WireError("a collected id that is no text")
        self.collected |= dict.fromkeys(ids)
        if len(self.collected) != known + len(ids):
            raise WireError("a collected id twice")
        if len(self.collected) > MOST_ITEMS:
            raise WireError(f"more than {MOST_ITEMS} tests")

    def _error(self, path: str, message: str, where: str) -> None:
        if len(self.errors) >= MOST_ERRORS:
            raise WireError(f"more than {MOST_ERRORS} errors of collection")
        self.errors.append(CollectionError(_short(path), _short(message), _short(where)))

    def _start(self, id: str) -> None:
        if self.running is not None:
            raise WireError("a test began inside another")
        if id not in self.collected or id in self.items:
            raise WireError("a test began that was not collected, or had run")
        self.running = id

    def _item(self, line: dict[str, Any]) -> None:
        resource, marked = line.pop("resource", None), line.pop("marked", None)
        expect(line, id=str, outcome=str, seconds=float, message=str, where=str)
        if line["id"] != self.running:
            raise WireError("an outcome of a test that was not running")
        if resource is not None and not isinstance(resource, str):
            raise WireError("a resource that is no text")
        if marked is not None and (not isinstance(marked, str) or not MARKED.fullmatch(marked)):
            raise WireError("marks that are no number in hexadecimal digits")
        self.items[line["id"]] = TestItem(
            id=line["id"],
            outcome=ItemOutcome(line["outcome"]),
            seconds=min(max(0.0, float(line["seconds"])), 1e6),
            message=_short(line["message"]),
            where=_short(line["where"]),
            resource=None if resource is None else Resource(resource),
            marked=None if marked is None else int(marked, 16),
        )
        self.running = None

    def _end(self, status: int, interrupted: bool, selected: int, ran: int) -> None:
        if not interrupted and ran != len(self.items):
            raise WireError("the end counts other outcomes than were reported")
        self.end = End(status, interrupted, selected, ran)


def _short(text: str) -> str:
    if len(text) > TEXT_CHARACTERS:
        raise WireError(f"a text of more than {TEXT_CHARACTERS} characters")
    return text
