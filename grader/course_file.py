"""A file of the course goes in as bytes; its text, settings or syntax tree comes out, or LoadError with the line."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from grader.errors import LoadError
from grader.source import Unparsed, parse

Settings = TypeVar("Settings", bound=BaseModel)


def text_of(file: str, data: bytes) -> str:
    """UTF-8 with LF line ends, without a byte order mark. `file` names it in errors."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise LoadError(file, data.count(b"\n", 0, error.start) + 1, "is not UTF-8") from error


def tree_of(file: str, source: bytes) -> ast.Module:
    """The syntax tree of Python source. `file` names it in errors."""
    text_of(file, source)  # said of the file, not of its syntax
    tree = parse(source)
    if isinstance(tree, Unparsed):
        raise LoadError(file, tree.line, tree.message)
    return tree


def settings_of(file: str, data: bytes, model: type[Settings]) -> Settings:
    """A TOML file as the model has it. `file` names it in errors."""
    text = text_of(file, data)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise LoadError(file, int(line[1]) if line else text.count("\n") + 1, f"is not TOML: {error}") from error
    except RecursionError as error:
        raise LoadError(file, 0, "is nested too deeply") from error
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        path = first["loc"]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise LoadError(file, line_of(text, path), f"{where}: {first['msg']}") from error


def line_of(text: str, path: Sequence[str | int]) -> int:
    """The line that sets a key, or else that of its table's header, or 0.

    A number in the path chooses among the tables of an array, [[name]]; without one the first is meant.
    """
    wanted = tuple(part for part in path if isinstance(part, str))
    entry = next((part for part in path if isinstance(part, int)), None)
    headers: Counter[str] = Counter()
    table: tuple[str, ...] = ()
    nearest = 0
    here = True
    for number, line in enumerate(text.split("\n"), start=1):
        if header := re.match(r"\s*(\[\[?)\s*([\w.\-\"]+)\s*\]\]?", line):
            table = tuple(part.strip('"') for part in header[2].split("."))
            here = header[1] == "[" or entry is None or headers[header[2]] == entry
            headers[header[2]] += 1
            if here and wanted and wanted[: len(table)] == table and not nearest:
                nearest = number
        elif here and (key := re.match(r"\s*([\w.\-\"]+)\s*=", line)):
            full = (*table, *(part.strip('"') for part in key[1].split(".")))
            if wanted and wanted[: len(full)] == full:
                return number
    return nearest
