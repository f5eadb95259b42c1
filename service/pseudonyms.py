"""A student's name and a pseudonym go in; texts, and JSON, that said the one say the other. Pure.

In free text a name is replaced where it stands as a whole: "ada" in "as ada said.", not in "ada@example.org" or
"ada-2", who are others. Where text holds nothing but names, only what equals the name is replaced.
"""

import re
import secrets
from collections.abc import Callable
from typing import Any

NAMES_ONLY = frozenset({"student", "students"})
"""Keys of JSON objects that hold names and nothing else."""


def new_pseudonym() -> str:
    """Stands for one erased student from then on; nothing leads back."""
    return f"erased-{secrets.token_hex(8)}"


def in_text(name: str, pseudonym: str) -> Callable[[str], str]:
    """Replaces the name in free text."""
    # What may belong to a longer name before and after it; a full stop does if more follows.
    whole = re.compile(rf"(?<![\w@+\-])(?<!\w\.){re.escape(name)}(?![\w@+\-])(?!\.\w)")
    return lambda text: whole.sub(pseudonym, text)


def in_segments(name: str, pseudonym: str) -> Callable[[str], str]:
    """Replaces the name in an object's id, which may be made of several, parted by slashes."""
    if "/" in name:
        return lambda text: text.replace(name, pseudonym)
    return lambda text: "/".join(pseudonym if part == name else part for part in text.split("/"))


def in_json(name: str, pseudonym: str) -> Callable[[Any], Any]:
    """Replaces the name in a JSON value: in its texts, its keys, and where it stands alone."""
    replace_text = in_text(name, pseudonym)

    def replace(value: Any, names_only: bool = False) -> Any:
        match value:
            case str():
                if value == name:
                    return pseudonym
                return value if names_only else replace_text(value)
            case list():
                return [replace(item, names_only) for item in value]
            case dict():
                return {
                    pseudonym if key == name else key: replace(item, names_only or key in NAMES_ONLY)
                    for key, item in value.items()
                }
            case _:
                return value

    return replace
