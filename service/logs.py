"""Records of Python's logging go in; lines of text, or one JSON object a line, come out on standard error.

Every line says which request, run and worker it is about, as far as there are any: they are bound around the work with
`about`. Tokens of ours are blotted out wherever they turn up, and no line holds a raw line break or control character.
"""

import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import IO

from service.settings import LogForm

_PROCESS: dict[str, str] = {}
_ABOUT: ContextVar[dict[str, str]] = ContextVar("about")
_TOKEN = re.compile(r"\bag_[A-Za-z0-9_-]{16,}|(?i:bearer)\s+[^\s'\",;]{4,}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
MOST_CHARS = 16_384  # of a message or a traceback


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """What is logged inside is about these, by name: request, run, worker."""
    token = _ABOUT.set({**current(), **ids})
    try:
        yield
    finally:
        _ABOUT.reset(token)


def current() -> dict[str, str]:
    """What the work going on is about."""
    return {**_PROCESS, **_ABOUT.get({})}


def name_process(**ids: str) -> None:
    """Whatever this process logs from now on, in any thread, is about these: worker."""
    _PROCESS.update(ids)


def settle(form: LogForm, level: str, process: str, stream: IO[str] | None = None) -> None:
    """Write everything that this process logs in one form, and nothing below `level`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines(process) if form == "json" else TextLines(process))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    for name in ("dbos", "uvicorn", "uvicorn.error", "uvicorn.access"):  # some come with handlers of their own
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    logging.getLogger("dbos").addHandler(logging.NullHandler())  # or the engine adds one of its own when it starts


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, process, message, the ids, a record's `fields`, and traceback."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": self._process,
            "message": without_secrets(record.getMessage()),
            **current(),
            **{name: _cleared(value) for name, value in getattr(record, "fields", {}).items()},
        }
        if traceback := _traceback(self, record):
            line["traceback"] = traceback
        return json.dumps(line, ensure_ascii=True, default=str)


class TextLines(logging.Formatter):
    """A line a record, for a person; a traceback follows it, indented."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S")
        fields = {**current(), **getattr(record, "fields", {})}
        more = "".join(f" {name}={_escaped(str(_cleared(value)))}" for name, value in fields.items())
        message = _escaped(without_secrets(record.getMessage()))
        lines = [f"{time} {record.levelname} {record.name}: {message}{more}"]
        lines += ["    " + _escaped(line) for line in _traceback(self, record).splitlines()]
        return "\n".join(lines)


def without_secrets(text: str) -> str:
    """The text, cut to a bearable length, with tokens blotted out."""
    return _TOKEN.sub("[token]", text[:MOST_CHARS])


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    if not record.exc_info:
        return ""
    text = formatter.formatException(record.exc_info)
    if len(text) > MOST_CHARS:  # its end says what failed
        text = "..." + text[-MOST_CHARS:]
    return without_secrets(text)


def _cleared(value: object) -> object:
    return without_secrets(value) if isinstance(value, str) else value


def _escaped(text: str) -> str:
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)
