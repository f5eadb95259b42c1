"""A file name as it was sent goes in; clean path components come out, or the reason why the name is refused.

Also knows which names are left-overs of tools, to be dropped, and which would shadow a library.
"""

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable

from grader import wording
from grader.errors import Rejected

Parts = tuple[str, ...]

LONGEST_NAME = 4096
"""characters of a name that any system could have made, left-overs included"""

_DRIVE = re.compile(r"^[A-Za-z]:")


def split(name: str) -> Parts:
    """Components of a name with either separator, without '.' and empty ones.

    Raises Rejected: name_too_long, name_characters for NUL, absolute_name, path_traversal. Other characters are judged
    by `check`, because left-overs that will be dropped may be named as they like.
    """
    if len(name) > LONGEST_NAME:
        raise Rejected("name_too_long", wording.name_too_long(LONGEST_NAME), wording.shown(name))
    if "\x00" in name:
        raise Rejected("name_characters", wording.NAME_CHARACTERS, wording.shown(name))
    plain = name.replace("\\", "/")
    if plain.startswith("/") or _DRIVE.match(plain):
        raise Rejected("absolute_name", wording.ABSOLUTE_NAME, wording.shown(name))
    parts = tuple(part for part in plain.split("/") if part not in ("", "."))
    if ".." in parts:
        raise Rejected("path_traversal", wording.PATH_TRAVERSAL, wording.shown(name))
    return tuple(unicodedata.normalize("NFC", part) for part in parts)


def check(parts: Parts, most_bytes: int, deepest: int) -> None:
    """Raises Rejected for names no run could be given: bad_name, name_characters, name_too_long, name_too_deep."""
    path = "/".join(parts)
    if not path:
        raise Rejected("bad_name", wording.NAME_EMPTY)
    safe = wording.shown(path)
    if not _encodable(path):
        raise Rejected("bad_name", wording.NAME_ENCODING, safe)
    if not path.isprintable():  # control, format (text direction, zero width), unassigned, odd spaces
        raise Rejected("name_characters", wording.NAME_CHARACTERS, safe)
    if len(path.encode()) > most_bytes:
        raise Rejected("name_too_long", wording.name_too_long(most_bytes), safe)
    if len(parts) > deepest:
        raise Rejected("name_too_deep", wording.name_too_deep(deepest), safe)


def _encodable(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def collision_key(parts: Parts) -> Parts:
    """Equal for names that some file system takes for one: case folded, then NFC."""
    return tuple(unicodedata.normalize("NFC", unicodedata.normalize("NFD", part).casefold()) for part in parts)


# -- left-overs ------------------------------------------------------------------------------------------------------


def _folder(*names: str) -> Callable[[Parts], bool]:
    return lambda parts: any(part in names for part in parts[:-1]) or parts[-1] in names


def _file(pattern: str) -> Callable[[Parts], bool]:
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda parts: compiled.fullmatch(parts[-1]) is not None


_LEFTOVERS: tuple[tuple[Callable[[Parts], bool], str], ...] = (
    (_folder("__MACOSX", ".Spotlight-V100", ".Trashes", ".fseventsd"), wording.NOTE_MAC_METADATA),
    (_file(r"\._.*|\.DS_Store|Icon\r|\.localized|\.AppleDouble"), wording.NOTE_MAC_METADATA),
    (_folder(".git", ".hg", ".svn", ".github", ".gitlab"), wording.NOTE_VERSION_CONTROL),
    (_file(r"\.gitignore|\.gitattributes|\.gitkeep|\.gitmodules"), wording.NOTE_VERSION_CONTROL),
    (_folder(".venv", "venv", ".env", "site-packages", "node_modules", ".conda"), wording.NOTE_ENVIRONMENT),
    (_folder("__pycache__"), wording.NOTE_BYTECODE),
    (_file(r".*\.py[co]"), wording.NOTE_BYTECODE),
    (
        _folder(".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache", ".tox", ".nox", ".ipynb_checkpoints"),
        wording.NOTE_CACHE,
    ),
    (_file(r"\.coverage(\..*)?"), wording.NOTE_CACHE),
    (_folder(".vscode", ".idea"), wording.NOTE_EDITOR),
    (_file(r".*~|\.?#.*#?|.*\.sw[a-p]|.*\.bak|.*\.orig|.*\.rej"), wording.NOTE_EDITOR),
    (_file(r"Thumbs\.db|desktop\.ini|\$RECYCLE\.BIN"), wording.NOTE_EDITOR),
    (_file(r"\.?pytest\.(ini|toml)|tox\.(ini|toml)|setup\.cfg|pyproject\.toml|\.coveragerc"), wording.NOTE_CONFIG),
    (_file(r"(site|user)customize\.py|.*\.pth"), wording.NOTE_STARTUP),
)  # fmt: skip
_DATA = re.compile(r".*\.(json|jsonl|npz|npy|txt|csv|tsv|dat|bin|ya?ml|toml|md|rst|pkl)", re.IGNORECASE)


def leftover(parts: Parts) -> str:
    """Why a file is dropped, or '' for one that is not a left-over."""
    return next((why for matches, why in _LEFTOVERS if matches(parts)), "")


def is_python(parts: Parts) -> bool:
    return parts[-1].endswith(".py")


def is_data(parts: Parts) -> bool:
    return _DATA.fullmatch(parts[-1]) is not None


# -- shadows ---------------------------------------------------------------------------------------------------------

RESERVED = frozenset(sys.stdlib_module_names) | {
    "tinyllm", "numpy", "pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments", "exceptiongroup",
    "hypothesis", "_hypothesis_pytestplugin", "_hypothesis_ftz_detector", "_hypothesis_globals", "sortedcontainers",
    "attr", "attrs", "sandbox", "torch",
}  # fmt: skip


def shadowed(parts: Parts, packages: frozenset[Parts]) -> str:
    """The library a Python file would be imported in place of, or ''. `packages` are folders that hold an __init__.py.

    A file is importable by its path from the tests' root, and, because pytest puts the first folder that is no package
    on the path, from there.
    """
    base = len(parts) - 1
    while base > 0 and parts[:base] in packages:
        base -= 1
    reached = (parts[0], parts[base])
    stems = (name.removesuffix(".py") for name in reached)
    return next((stem for stem in stems if stem in RESERVED), "")


def packages_of(paths: Iterable[Parts]) -> frozenset[Parts]:
    """The folders that hold an __init__.py."""
    return frozenset(parts[:-1] for parts in paths if parts[-1] == "__init__.py")
